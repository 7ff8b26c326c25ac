#include "common/programs/decoder/quantize.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/file.h"
#include "common/base/folder.h"
#include "common/base/terminal.h"
#include "common/programs/decoder/decoder_session.h"
#include "common/programs/decoder/quantize_awq.h"
#include "common/programs/decoder/quantize_bert.h"
#include "common/programs/decoder/quantize_write.h"
#include "common/programs/program.h"
#include "common/quantize/awq.h"
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
    double *row; /* scratch */
    struct quantize_awq awq;
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

static bool is_method(const struct work *w, const char *name) {
    return strcmp(w->options->method, name) == 0;
}

/* Runs the text through the model piece by piece; for gptq as it was and with what is rounded by
   now. */
static enum status run_text(struct work *w) {
    size_t room = w->session.context - (begins_with_bos(w) ? 1 : 0);
    struct progress progress = progress_create("tokens of the calibration", w->count);
    enum status status = STATUS_OK;
    for (size_t i = 0; i < w->count && status == STATUS_OK; i += room) {
        size_t count = w->count - i < room ? w->count - i : room;
        if (is_method(w, "gptq")) {
            calibration_begin(&w->session.engine);
            status = run_piece(w, i, count);
            calibration_repeat(&w->session.engine);
        }
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
    size_t rows[MOST_SIDE_BY_SIDE];
    size_t K;
    bool is_added; /* to the residual stream */
};

enum { KINDS = 4 };

static void list_beside(const struct work *w, size_t layer, struct side_by_side kinds[KINDS]) {
    const struct llama2_config *c = &w->session.checkpoint.config;
    const struct llama2_layer *l = &w->session.fp32.weights.layers[layer];
    size_t queries = c->NH * c->HS, values = c->KVH * c->HS;
    kinds[0] = (struct side_by_side){{l->wq, l->wk, l->wv}, {queries, values, values}, c->C, false};
    kinds[1] = (struct side_by_side){{l->wo}, {c->C}, queries, true};
    kinds[2] = (struct side_by_side){{l->w1, l->w3}, {c->hidden, c->hidden}, c->C, false};
    kinds[3] = (struct side_by_side){{l->w2}, {c->C}, c->hidden, true};
}

static bool holds(const struct side_by_side *beside, const float *weights) {
    for (size_t i = 0; i < MOST_SIDE_BY_SIDE; i++) {
        if (beside->matrices[i] == weights) {
            return true;
        }
    }
    return false;
}

static enum status gather(struct work *w, const struct side_by_side *beside, size_t tokens) {
    for (size_t i = 0; i < MOST_SIDE_BY_SIDE && beside->matrices[i] != NULL; i++) {
        const struct calibration_matrix matrix = {beside->matrices[i], beside->rows[i], beside->K,
                                                  beside->is_added};
        if (calibration_add(&w->session.engine, &matrix, tokens) != STATUS_OK) {
            return error_set(w->error, STATUS_OUT_OF_MEMORY,
                             "no memory for the calibration of a matrix of %zu columns", beside->K);
        }
    }
    return STATUS_OK;
}

/* Gathers the inputs of a matrix and of those beside it, behind all that is rounded by now. */
static enum status calibrate(struct work *w, size_t layer, const float *weights) {
    struct side_by_side kinds[KINDS];
    list_beside(w, layer, kinds);
    calibration_clear(&w->session.engine);
    for (size_t i = 0; i < KINDS; i++) {
        if (holds(&kinds[i], weights)) {
            TRY(gather(w, &kinds[i], w->session.context));
        }
    }
    return run_text(w);
}

/* Scales all layers by the inputs of their matrices. */
static enum status scale_layers(struct work *w, const struct low_bit_layout *layout) {
    for (size_t layer = 0; layer < w->session.checkpoint.config.L; layer++) {
        struct side_by_side kinds[KINDS];
        list_beside(w, layer, kinds);
        calibration_clear(&w->session.engine);
        for (size_t i = 0; i < KINDS; i++) {
            TRY(gather(w, &kinds[i], 1)); /* nothing is compared */
        }
        TRY(run_text(w));
        TRY(quantize_awq_scale(&w->awq, &w->session, layer, layout, w->error));
    }
    return STATUS_OK;
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
    if (is_method(w, "awq")) {
        return awq_quantize(weights, quantize_awq_inverse(&w->awq, weights), matrix, w->row, error);
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
    TRY(gptq_quantize(weights, sums.hessian, sums.pull, matrix, w->row, error));
    return use_rounded(w, weights, matrix);
}

static enum status allocate_row(struct work *w) {
    const struct llama2_config *c = &w->session.checkpoint.config;
    size_t most = c->C > c->hidden ? c->C : c->hidden, queries = c->NH * c->HS;
    w->row = calloc(most > queries ? most : queries, sizeof *w->row);
    return w->row != NULL ? STATUS_OK
                          : error_set(w->error, STATUS_OUT_OF_MEMORY, "out of memory for a row");
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
    bool rtn = strcmp(o->method, "rtn") == 0;
    if (!rtn && strcmp(o->method, "gptq") != 0 && strcmp(o->method, "awq") != 0) {
        return error_set(error, bad, "--method is 'rtn', 'gptq' or 'awq', not '%s'", o->method);
    }
    if (!rtn && o->calibrate == NULL) {
        return error_set(error, bad,
                         "--method %s wants a text like those that the model will see: "
                         "--calibrate FILE",
                         o->method);
    }
    if (rtn && o->calibrate != NULL) {
        return error_set(error, bad, "--calibrate has no effect with --method rtn");
    }
    if (o->tokens < 1) {
        return error_set(error, bad, "--tokens %d: at least 1", o->tokens);
    }
    return o->shared.window == 0 ? STATUS_OK : error_set(error, bad, "--window has no effect here");
}

static struct packed_config config_of(const struct options *o) {
    return (struct packed_config){.format = PACKED_COMPRESSED,
                                  .bits = (size_t)o->bits,
                                  .group = (size_t)o->group,
                                  .symmetric = o->bits == 8};
}

static enum status round_bert(const struct options *o, struct error *error) {
    const struct packed_config config = config_of(o);
    size_t matrices;
    if (strcmp(o->method, "rtn") != 0) {
        return error_set(error, STATUS_UNSUPPORTED, "%s: a BERT is rounded by --method rtn only",
                         o->shared.checkpoint);
    }
    TRY(quantize_bert(o->output, o->shared.checkpoint, &config, &matrices, error));
    printf("%s: %zu matrices in %d bits, %s\n", o->output, matrices, o->bits, o->method);
    return program_output_end(error);
}

static enum status quantize(struct work *w, const struct decoder_stages *stages) {
    const struct options *o = w->options;
    if (o->shared.checkpoint != NULL && quantize_is_bert(o->shared.checkpoint)) {
        return round_bert(o, w->error);
    }
    TRY(decoder_session_open(&w->session, &o->shared, stages, 0, w->error));
    if (w->session.is_gpt_neox) {
        return error_set(w->error, STATUS_UNSUPPORTED, "%s: a GPT-NeoX is not supported",
                         o->shared.checkpoint);
    }
    TRY(allocate_row(w));
    TRY(o->calibrate != NULL ? read_calibration(w) : STATUS_OK);
    const struct quantize_rounding rounding = {
        .config = config_of(o),
        .method = o->method,
        .round = round_matrix,
        .context = w,
    };
    if (is_method(w, "awq")) {
        const struct low_bit_layout layout = {.type = o->bits == 4 ? LOW_BIT_INT4 : LOW_BIT_INT8,
                                              .group = (size_t)o->group,
                                              .scale_dtype = NN_BF16,
                                              .has_zeros = o->bits == 4};
        TRY(scale_layers(w, &layout));
    }
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
    free(w.row);
    decoder_session_close(&w.session);
    quantize_awq_free(&w.awq);
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
    "perplexity,\n"
    "the decoder's bench, classify and evaluate read it, and dequantise it when they load it.\n"
    "\n"
    "rtn rounds to nearest. gptq runs the text of --calibrate through the model for each matrix\n"
    "(q, k and v together, and gate and up), as it was and with the matrices before as they\n"
    "were rounded. It rounds each column so that the columns behind it make good what it does\n"
    "to the products, and so that these, and what the products of wo and w2 are added to, come\n"
    "near to those of the model as it was. awq multiplies the weights of large inputs before\n"
    "they are rounded, and divides the norm, wv or up before them by as much. Both compute on\n"
    "the CPU. A BERT is rounded by rtn.\n"
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
        {"method", 'm', FLAG_STRING, &o.method, "NAME", "rtn, gptq or awq"},
        {"calibrate", 'c', FLAG_STRING, &o.calibrate, "FILE", "text for gptq and awq, in UTF-8"},
        {"tokens", 'n', FLAG_INT, &o.tokens, "N", "most tokens of the calibration"},
        {"output", 'o', FLAG_STRING, &o.output, "DIR", "folder to write"},
    };
    const struct decoder_command command = {
        .program = program,
        .summary = "rounds the weights of the layers of a Llama2 or a BERT to 8 or 4 bits.\n"
                   "CHECKPOINT: a file of llama2.c, a GGUF file of a Llama, or a Hugging Face "
                   "folder",
        .options = &o.shared,
        .own = own,
        .own_count = sizeof own / sizeof *own,
        .epilogue = epilogue,
    };
    return decoder_command_main(&command, &stages, argc, argv, run, &o);
}
