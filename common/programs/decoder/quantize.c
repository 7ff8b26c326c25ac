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
    size_t layers; /* whose inputs have been gathered */
    double *row;   /* scratch for a row */
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

/* Runs the text through the model, in windows that begin with BOS. */
static enum status run_text(struct work *w) {
    int32_t bos = bpe_bos(w->session.tokenizer);
    size_t context = w->session.context, room = context - (bos >= 0 ? 1 : 0);
    room = room > 0 ? room : 1;
    struct progress progress = progress_create("tokens of the calibration", w->count);
    enum status status = STATUS_OK;
    for (size_t i = 0; i < w->count && status == STATUS_OK;) {
        size_t at = i % room, position = at + (bos >= 0 && context > 1 ? 1 : 0);
        size_t left = w->count - i, batch = w->session.batch;
        size_t count = room - at < left ? room - at : left;
        count = count < batch ? count : batch;
        if (position == 1 && at == 0) {
            status = language_model_forward(&w->session.model, &bos, 1, 0, NULL);
        }
        if (interrupt_seen() != 0) {
            status = STATUS_INTERRUPTED;
        }
        if (status == STATUS_OK) {
            status =
                language_model_forward(&w->session.model, w->tokens + i, count, position, NULL);
        }
        i += count;
        progress_update(&progress, i);
    }
    progress_finish(&progress);
    return status == STATUS_OK || status == STATUS_INTERRUPTED
               ? status
               : error_set(w->error, status, "the model failed on the calibration: %s",
                           status_message(status));
}

static enum status gather(struct work *w, const float *weights, size_t K) {
    return calibration_add(&w->session.engine, weights, K) == STATUS_OK
               ? STATUS_OK
               : error_set(w->error, STATUS_OUT_OF_MEMORY,
                           "no memory for the calibration of a matrix of %zu columns", K);
}

static enum status gather_layer(struct work *w, size_t layer) {
    const struct llama2_config *c = &w->session.checkpoint.config;
    const struct llama2_layer *l = &w->session.fp32.weights.layers[layer];
    const struct {
        const float *weights;
        size_t K;
    } matrices[] = {{l->wq, c->C}, {l->wk, c->C}, {l->wv, c->C},     {l->wo, c->NH * c->HS},
                    {l->w1, c->C}, {l->w3, c->C}, {l->w2, c->hidden}};
    for (size_t i = 0; i < sizeof matrices / sizeof *matrices; i++) {
        TRY(gather(w, matrices[i].weights, matrices[i].K));
    }
    return STATUS_OK;
}

/* Gathers the inputs of a layer's matrices, from the layers before it as they were rounded. */
static enum status calibrate(struct work *w, size_t layer) {
    calibration_clear(&w->session.engine);
    TRY(gather_layer(w, layer));
    w->layers = layer + 1;
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
    TRY(layer >= w->layers ? calibrate(w, layer) : STATUS_OK);
    double *upper = calibration_of(&w->session.engine, weights);
    enum status status = gptq_prepare(upper, matrix->layout.columns);
    if (status != STATUS_OK) {
        return error_set(error, status,
                         "layer %zu: the inputs of a matrix are not finite in the calibration",
                         layer);
    }
    TRY(gptq_quantize(weights, upper, matrix, w->row, error));
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
    TRY(allocate_row(w));
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
    free(w.row);
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
    "rtn rounds to nearest. gptq runs the text of --calibrate through the model once for each\n"
    "layer, with the layers before it as they were rounded, and rounds each column so that\n"
    "the columns behind it make good what it does to the products. It computes on the CPU.\n"
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
