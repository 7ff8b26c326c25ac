#include "common/programs/decoder/quantize.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/file.h"
#include "common/base/folder.h"
#include "common/base/terminal.h"
#include "common/programs/decoder/decoder_session.h"
#include "common/programs/decoder/quantize_write.h"
#include "common/programs/program.h"
#include "common/quantize/calibration.h"
#include "common/quantize/gptq.h"

static const char program[] = "quantize";

static const size_t LONGEST_TEXT = (size_t)1 << 30;

struct options {
    struct decoder_options shared;
    const char *method, *calibrate, *output;
    int bits, group, tokens;
};

/* One run of the program. */
struct work {
    const struct options *options;
    struct decoder_session session;
    int32_t *tokens; /* (count) of the calibration */
    size_t count;
    double *scratch; /* for two rows */
    struct error *error;
};

/* ---- Calibration ---- */

static enum status read_calibration(struct work *w) {
    const struct options *o = w->options;
    char *text;
    size_t size;
    TRY(file_read(o->calibrate, LONGEST_TEXT, &text, &size, w->error));
    enum status status =
        bpe_encode(w->session.tokenizer, text, size, false, false, &w->tokens, &w->count, w->error);
    free(text);
    if (status != STATUS_OK) {
        return error_prefix(w->error, status, o->calibrate);
    }
    if (w->count == 0) {
        return error_set(w->error, STATUS_BAD_FORMAT, "%s: there is no text", o->calibrate);
    }
    w->count = w->count < (size_t)o->tokens ? w->count : (size_t)o->tokens;
    return STATUS_OK;
}

static bool begins_with_bos(const struct work *w) {
    return bpe_bos(w->session.tokenizer) >= 0 && w->session.context > 1;
}

/* Runs tokens from the beginning of the model's context on, behind BOS. */
static enum status run_piece(struct work *w, size_t first, size_t count) {
    int32_t bos = bpe_bos(w->session.tokenizer);
    size_t position = 0;
    enum status status = STATUS_OK;
    if (begins_with_bos(w)) {
        status = language_model_forward(&w->session.model, &bos, 1, position++, NULL);
    }
    for (size_t i = 0; i < count && status == STATUS_OK;) {
        size_t batch = w->session.batch, n = count - i < batch ? count - i : batch;
        status = interrupt_seen() != 0
                     ? STATUS_INTERRUPTED
                     : language_model_forward(&w->session.model, w->tokens + first + i, n,
                                              position + i, NULL);
        i += n;
    }
    return status;
}

/* Runs the text through the model piece by piece, as it was and with what is rounded by now. */
static enum status run_text(struct work *w) {
    size_t room = w->session.context - (begins_with_bos(w) ? 1 : 0);
    struct progress progress = progress_create("tokens of the calibration", w->count);
    enum status status = STATUS_OK;
    for (size_t i = 0; i < w->count && status == STATUS_OK; i += room) {
        size_t count = w->count - i < room ? w->count - i : room;
        calibration_begin(&w->session.engine);
        status = run_piece(w, i, count);
        calibration_repeat(&w->session.engine);
        status = status == STATUS_OK ? run_piece(w, i, count) : status;
        progress_update(&progress, i + count);
    }
    progress_finish(&progress);
    return status == STATUS_OK || status == STATUS_INTERRUPTED
               ? status
               : error_set(w->error, status, "the model failed on the calibration: %s",
                           status_message(status));
}

enum { MOST_SIDE_BY_SIDE = 3 };

/* Matrices that have the same inputs, and of which none changes another's. */
struct side_by_side {
    const float *matrices[MOST_SIDE_BY_SIDE];
    size_t K;
};

/* Those beside @p weights. */
static struct side_by_side find_beside(const struct work *w, size_t layer, const float *weights) {
    const struct llama2_config *c = &w->session.checkpoint.config;
    const struct llama2_layer *l = &w->session.fp32.weights.layers[layer];
    const struct side_by_side all[] = {{{l->wq, l->wk, l->wv}, c->C},
                                       {{l->wo}, c->NH * c->HS},
                                       {{l->w1, l->w3}, c->C},
                                       {{l->w2}, c->hidden}};
    size_t at = 0;
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        for (size_t k = 0; k < MOST_SIDE_BY_SIDE; k++) {
            at = all[i].matrices[k] == weights ? i : at;
        }
    }
    return all[at];
}

/* Gathers the inputs of a matrix and of those beside it, behind all that is rounded by now. */
static enum status calibrate(struct work *w, size_t layer, const float *weights) {
    const struct side_by_side beside = find_beside(w, layer, weights);
    calibration_clear(&w->session.engine);
    for (size_t i = 0; i < MOST_SIDE_BY_SIDE && beside.matrices[i] != NULL; i++) {
        if (calibration_add(&w->session.engine, beside.matrices[i], beside.K, w->session.context) !=
            STATUS_OK) {
            return error_set(w->error, STATUS_OUT_OF_MEMORY,
                             "no memory for the calibration of a matrix of %zu columns", beside.K);
        }
    }
    return run_text(w);
}

/* ---- Rounding ---- */

/* From now on the model computes with the rounded matrix. */
static enum status use_rounded(struct work *w, const float *weights,
                               const struct low_bit_matrix *matrix) {
    const struct low_bit_layout *layout = &matrix->layout;
    float *values = malloc(layout->rows * layout->columns * sizeof *values);
    if (values != NULL) {
        low_bit_dequantize(matrix, 0, layout->rows, values);
    }
    return values != NULL && calibration_replace(&w->session.engine, weights, values) == STATUS_OK
               ? STATUS_OK
               : error_set(w->error, STATUS_OUT_OF_MEMORY, "no memory for rounded weights");
}

static enum status round_matrix(void *context, size_t layer, const float *weights,
                                struct low_bit_matrix *matrix, struct error *error) {
    struct work *w = context;
    if (interrupt_seen() != 0) {
        return STATUS_INTERRUPTED;
    }
    if (w->tokens == NULL) {
        return low_bit_quantize(weights, matrix, error);
    }
    if (calibration_of(&w->session.engine, weights).hessian == NULL) {
        TRY(calibrate(w, layer, weights));
    }
    const struct calibration_sums sums = calibration_of(&w->session.engine, weights);
    enum status status = gptq_prepare(sums.hessian, matrix->layout.columns);
    if (status != STATUS_OK) {
        return error_set(error, status,
                         "layer %zu: the inputs of a matrix are not finite in the calibration",
                         layer);
    }
    TRY(gptq_quantize(weights, sums.hessian, sums.drift, matrix, w->scratch, error));
    return use_rounded(w, weights, matrix);
}

static enum status allocate_scratch(struct work *w) {
    const struct llama2_config *c = &w->session.checkpoint.config;
    size_t most = c->C > c->hidden ? c->C : c->hidden, queries = c->NH * c->HS;
    w->scratch = calloc(most > queries ? most : queries, 2 * sizeof *w->scratch);
    return w->scratch != NULL
               ? STATUS_OK
               : error_set(w->error, STATUS_OUT_OF_MEMORY, "out of memory for two rows");
}

/* ---- The program ---- */

static enum status check_options(const struct options *o, struct error *error) {
    const enum status bad = STATUS_INVALID_ARGUMENT;
    if (o->output == NULL) {
        return error_set(error, bad, "no output: give --output DIR");
    }
    if (path_exists(o->output)) {
        return error_set(error, bad, "--output %s: exists already; choose another name", o->output);
    }
    if (o->bits != 4 && o->bits != 8) {
        return error_set(error, bad, "--bits %d: 8 or 4", o->bits);
    }
    if (o->group < 0) {
        return error_set(error, bad, "--group %d: at least 1, or 0: a scale for each row",
                         o->group);
    }
    bool gptq = strcmp(o->method, "gptq") == 0;
    if (!gptq && strcmp(o->method, "rtn") != 0) {
        return error_set(error, bad, "--method is 'rtn' or 'gptq', not '%s'", o->method);
    }
    if (gptq != (o->calibrate != NULL)) {
        return error_set(error, bad,
                         gptq ? "--method gptq wants a text like those that the model will see: "
                                "--calibrate FILE"
                              : "--calibrate has no effect without --method gptq");
    }
    if (o->tokens < 1) {
        return error_set(error, bad, "--tokens %d: at least 1", o->tokens);
    }
    return o->shared.window == 0 ? STATUS_OK : error_set(error, bad, "--window has no effect here");
}

static enum status quantize(struct work *w, const struct decoder_stages *stages) {
    const struct options *o = w->options;
    TRY(decoder_session_open(&w->session, &o->shared, stages, 0, w->error));
    if (w->session.is_gpt_neox) {
        return error_set(w->error, STATUS_UNSUPPORTED, "%s: a GPT-NeoX is not supported",
                         o->shared.checkpoint);
    }
    TRY(allocate_scratch(w));
    TRY(o->calibrate != NULL ? read_calibration(w) : STATUS_OK);
    const struct quantize_rounding rounding = {
        .config = {.format = PACKED_COMPRESSED,
                   .bits = (size_t)o->bits,
                   .group = (size_t)o->group,
                   .symmetric = o->bits == 8},
        .method = o->method,
        .round = round_matrix,
        .context = w,
    };
    TRY(quantize_write(o->output, &w->session, o->shared.checkpoint, o->shared.tokenizer, &rounding,
                       w->error));
    printf("%s: matrices of %zu layers in %d bits, %s\n", o->output, w->session.checkpoint.config.L,
           o->bits, o->method);
    return program_output_end(w->error);
}

static enum status run(void *options, const struct decoder_stages *stages, struct error *error) {
    struct work w = {.options = options, .error = error};
    TRY(check_options(options, error));
    interrupt_watch();
    enum status status = quantize(&w, stages);
    free(w.tokens);
    free(w.scratch);
    decoder_session_close(&w.session);
    return status;
}

static enum status create_engine(struct engine *engine, int threads, struct error *error) {
    enum status status = calibration_engine_create(engine, threads);
    return status == STATUS_OK ? STATUS_OK : error_set(error, status, "%s", status_message(status));
}

static const char epilogue[] =
    "The matrices of the layers are rounded; embedding, norms and the classifier stay as\n"
    "they are. DIR is a Hugging Face folder in compressed-tensors' layout (pack-quantized,\n"
    "scales in bf16, 4 bits with zero points), which appears complete or not at all; generate, "
    "perplexity\n"
    "and the decoder's bench read it, and dequantise it when they load it.\n"
    "\n"
    "rtn rounds to nearest. gptq runs the text of --calibrate through the model for each matrix\n"
    "(q, k and v together, and gate and up), as it was and with the matrices before as they\n"
    "were rounded. It rounds each column so that the columns behind it make good what it does\n"
    "to the products, and these come near to those of the model as it was. It computes on the "
    "CPU.\n"
    "\n"
    "example:\n"
    "  quantize stories260K.bin -z tok512.bin --bits 4 --group 32 --method gptq \\\n"
    "    --calibrate stories.txt --output stories260K_int4";

int quantize_main(int argc, char **argv) {
    struct options o = {.shared = decoder_options_defaults(),
                        .method = "rtn",
                        .bits = 8,
                        .group = 128,
                        .tokens = 32768};
    const struct decoder_stage cpu = {.name = "cpu", .create = create_engine};
    const struct decoder_stages stages = {.table = &cpu, .count = 1};
    const struct flag own[] = {
        {"bits", 'b', FLAG_INT, &o.bits, "N", "bits of a weight: 8 or 4"},
        {"group", 'g', FLAG_INT, &o.group, "N",
         "columns that share a scale; 0: a scale for each row"},
        {"method", 'm', FLAG_STRING, &o.method, "NAME", "rtn or gptq"},
        {"calibrate", 'c', FLAG_STRING, &o.calibrate, "FILE", "text for gptq, in UTF-8"},
        {"tokens", 'n', FLAG_INT, &o.tokens, "N", "most tokens of the calibration"},
        {"output", 'o', FLAG_STRING, &o.output, "DIR", "folder to write"},
    };
    const struct decoder_command command = {
        .program = program,
        .summary = "rounds the weights of a Llama2's layers to 8 or 4 bits. CHECKPOINT: a file of\n"
                   "llama2.c, a GGUF file of a Llama, or a Hugging Face folder",
        .options = &o.shared,
        .own = own,
        .own_count = sizeof own / sizeof *own,
        .epilogue = epilogue,
    };
    return decoder_command_main(&command, &stages, argc, argv, run, &o);
}
