/**
 * @file decoder_bench.c
 * @brief A token of the low-bit decoder: milliseconds, and the share of the memory's read
 * bandwidth.
 *
 *     decoder_bench [1.1b] [7b] [int8] [fp8] [int4] [int4g32]
 *
 * Weights are random bytes. On the same weights, but for e4m3, one text and eight texts at once. On
 * a GPU the shapes and types named, or all; a row has the kernel alone and a whole step, which
 * draws the token, after a short context and after a long one. Bytes of a token are those of the
 * stored weights, scales included, and of the keys and values before it. On simt a small model,
 * modelled.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "common/base/rng.h"
#include "common/bench/device/device_peaks.h"
#include "common/device/device.h"
#include "common/models/llama2_random.h"
#include "labs/10_llama2_decoder/given/decoder_model.h"
#include "solutions/13_low_bit/decoder/low_bit_decoder.h"
#include "solutions/13_low_bit/rows/rows_decoder.h"

enum { SHORT_CONTEXT = 16, TYPES = 4 };

static const struct {
    const char *name, *title;
    enum low_bit_type type;
    size_t group;
    double deviation; /* of random stored numbers */
} types[TYPES] = {{"int8", "int8 by row", LOW_BIT_INT8, 0, 73.9},
                  {"fp8", "e4m3 by row", LOW_BIT_FP8, 0, 40.0},
                  {"int4", "int4, groups of 128", LOW_BIT_INT4, 128, 4.6},
                  {"int4g32", "int4, groups of 32", LOW_BIT_INT4, 32, 4.6}};

struct bench {
    struct llama2_config config;
    int type;
    struct low_bit_decoder_model model;
    struct decoder_layer *layers;
    struct low_bit_decoder *decoder;
    struct decoder_io io;
    device_stream stream;
    void *values, *scales, *zeros; /* random, which all matrices are views of */
    size_t matrices;
    double read_bandwidth;
    size_t steps;
    bool modelled;
};

/* ---- The model ---- */

static struct low_bit_layout layout_of(const struct bench *b, size_t rows, size_t columns) {
    bool is_int4 = types[b->type].type == LOW_BIT_INT4;
    return (struct low_bit_layout){
        types[b->type].type,        rows,   columns, is_int4 ? types[b->type].group : columns,
        is_int4 ? NN_BF16 : NN_F32, is_int4};
}

/* Random bytes, of which none is NaN as e4m3. */
static enum status put_bytes(void **out, size_t bytes, unsigned mask, struct error *error) {
    struct rng rng = rng_create(bytes);
    uint64_t *host = malloc(bytes + 8);
    if (host == NULL) {
        return error_set(error, STATUS_OUT_OF_MEMORY, "out of memory");
    }
    for (size_t i = 0; i < bytes / 8 + 1; i++) {
        host[i] = rng_u64(&rng) & mask * 0x0101010101010101u;
    }
    enum status status = device_alloc(out, bytes, error);
    if (status == STATUS_OK) {
        status = device_write(*out, host, bytes, NULL, error);
    }
    free(host);
    return status;
}

/* Scales of groups, all alike: what makes a product's outputs as large as its inputs. */
static enum status put_scales(struct bench *b, size_t count, struct error *error) {
    bool is_int4 = types[b->type].type == LOW_BIT_INT4;
    enum nn_dtype dtype = is_int4 ? NN_BF16 : NN_F32;
    float scale = (float)(1.0 / types[b->type].deviation / sqrt((double)b->config.C));
    char *host = malloc(count * nn_dtype_bytes(dtype));
    if (host == NULL) {
        return error_set(error, STATUS_OUT_OF_MEMORY, "out of memory");
    }
    for (size_t i = 0; i < count; i++) {
        nn_dtype_store(host + i * nn_dtype_bytes(dtype), &scale, 1, dtype);
    }
    enum status status = device_alloc(&b->scales, count * nn_dtype_bytes(dtype), error);
    if (status == STATUS_OK) {
        status = device_write(b->scales, host, count * nn_dtype_bytes(dtype), NULL, error);
    }
    free(host);
    return status;
}

/* *out = a matrix in the decoder's order, of other random bytes than the one before. */
static enum status make_matrix(struct bench *b, const void **out, size_t rows, size_t columns,
                               bool paired, struct error *error) {
    struct low_bit_matrix m = {.layout = layout_of(b, rows, columns), .scales = b->scales};
    void *prepared;
    m.values = (char *)b->values + b->matrices++ % 61 * 4096;
    m.zeros = m.layout.has_zeros ? b->zeros : NULL;
    TRY(device_alloc(&prepared, low_bit_decoder_prepared_bytes(&m.layout, paired), error));
    *out = prepared;
    return low_bit_decoder_prepare(&m, paired, prepared, b->stream, error);
}

static enum status make_ones(const float **out, size_t count, struct error *error) {
    void *ones;
    float *host = malloc(count * sizeof *host);
    if (host == NULL) {
        return error_set(error, STATUS_OUT_OF_MEMORY, "out of memory");
    }
    for (size_t i = 0; i < count; i++) {
        host[i] = 1.0f;
    }
    enum status status = device_alloc(&ones, count * sizeof *host, error);
    *out = ones;
    if (status == STATUS_OK) {
        status = device_write(ones, host, count * sizeof *host, NULL, error);
    }
    free(host);
    return status;
}

static enum status make_layers(struct bench *b, struct error *error) {
    const struct llama2_config *c = &b->config;
    size_t heads = c->NH * c->HS;
    for (size_t l = 0; l < c->L; l++) {
        struct decoder_layer *w = &b->layers[l];
        TRY(make_ones(&w->attention_norm, c->C, error));
        TRY(make_ones(&w->ffn_norm, c->C, error));
        TRY(make_matrix(b, &w->qkv, heads + 2 * c->KVH * c->HS, c->C, false, error));
        TRY(make_matrix(b, &w->out, c->C, heads, false, error));
        TRY(make_matrix(b, &w->gate_up, 2 * c->hidden, c->C, true, error));
        TRY(make_matrix(b, &w->down, c->C, c->hidden, false, error));
    }
    return STATUS_OK;
}

static enum status make_embedding(struct bench *b, struct error *error) {
    size_t count = b->config.V * b->config.C;
    struct rng rng = rng_create(3);
    uint16_t *host = malloc(count * sizeof *host);
    void *embedding;
    if (host == NULL) {
        return error_set(error, STATUS_OUT_OF_MEMORY, "out of memory");
    }
    for (size_t i = 0; i < count; i++) {
        float x = 2.0f * rng_uniform(&rng) - 1.0f;
        nn_dtype_store(host + i, &x, 1, NN_BF16);
    }
    enum status status = device_alloc(&embedding, count * sizeof *host, error);
    b->model.sizes.embedding = embedding;
    if (status == STATUS_OK) {
        status = device_write(embedding, host, count * sizeof *host, NULL, error);
    }
    free(host);
    return status;
}

static enum status make_model(struct bench *b, struct error *error) {
    const struct llama2_config *c = &b->config;
    const int32_t token = 7;
    size_t rows = 2 * c->hidden > c->V ? 2 * c->hidden : c->V, most = rows * c->C;
    rows = (c->NH + 2 * c->KVH) * c->HS * c->C;
    most = most > rows ? most : rows;
    b->layers = calloc(c->L + 1, sizeof *b->layers);
    if (b->layers == NULL) {
        return error_set(error, STATUS_OUT_OF_MEMORY, "out of memory");
    }
    b->model = (struct low_bit_decoder_model){
        .type = types[b->type].type, .group = types[b->type].group, .scale_dtype = NN_BF16};
    b->model.sizes = decoder_sizes_of(c, NN_BF16);
    b->model.sizes.layers = b->layers;
    unsigned mask = types[b->type].type == LOW_BIT_FP8 ? 0xbf : 0xff; /* e4m3: below 2 */
    TRY(device_stream_create(&b->stream, error));
    TRY(put_bytes(&b->values, most + (size_t)62 * 4096, mask, error));
    TRY(put_bytes(&b->zeros, most / 32 + 64, 0x0f, error));
    TRY(put_scales(b, most / 32 + 64 + c->V, error));
    TRY(make_layers(b, error));
    TRY(make_embedding(b, error));
    TRY(make_ones(&b->model.sizes.final_norm, c->C, error));
    TRY(make_matrix(b, &b->model.sizes.classifier, c->V, c->C, false, error));
    TRY(device_alloc((void **)&b->io.logits, c->V * sizeof(float), error));
    TRY(device_alloc((void **)&b->io.token, sizeof token, error));
    TRY(device_alloc((void **)&b->io.sampling, sizeof(struct sampling), error));
    TRY(device_write(b->io.token, &token, sizeof token, b->stream, error));
    return low_bit_decoder_create(&b->decoder, &b->model, &b->io, b->stream, error);
}

static void free_model(struct bench *b) {
    low_bit_decoder_free(b->decoder);
    for (size_t l = 0; l < b->config.L && b->layers != NULL; l++) {
        const struct decoder_layer *w = &b->layers[l];
        const void *const all[] = {w->attention_norm, w->qkv,     w->out,
                                   w->ffn_norm,       w->gate_up, w->down};
        for (int i = 0; i < 6; i++) {
            device_free((void *)all[i]);
        }
    }
    const struct decoder_model *m = &b->model.sizes;
    const void *const all[] = {m->embedding, m->final_norm, m->classifier,
                               b->io.logits, b->io.token,   b->io.sampling,
                               b->values,    b->scales,     b->zeros};
    for (int i = 0; i < 9; i++) {
        device_free((void *)all[i]);
    }
    device_stream_destroy(b->stream);
    free(b->layers);
}

/* ---- Measuring ---- */

typedef enum status step_function(struct low_bit_decoder *decoder, size_t position,
                                  struct error *error);

/* Milliseconds of a token at positions from `position` on. */
static enum status time_steps(const struct bench *b, step_function *step, size_t position,
                              double *ms, struct error *error) {
    const struct sampling greedy = {1, 0.0f, 0.0f, 0};
    size_t warm = b->modelled ? 1 : 5;
    double start = 0.0;
    TRY(device_write(b->io.sampling, &greedy, sizeof greedy, b->stream, error));
    for (size_t i = 0; i < warm + b->steps; i++) {
        start = i == warm ? device_now() : start;
        TRY(step(b->decoder, position + i, error));
    }
    TRY(device_synchronize(b->stream, error));
    *ms = 1e3 * (device_now() - start) / (double)b->steps;
    return STATUS_OK;
}

/* The same tokens twice give the same logits, to the bit, and they are finite. */
static enum status check_repeats(const struct bench *b, struct error *error) {
    enum { TOKENS = 20 };
    size_t bytes = b->config.V * sizeof(float);
    int32_t tokens[TOKENS];
    float *first = malloc(2 * bytes), *second = first + b->config.V;
    if (first == NULL) {
        return error_set(error, STATUS_OUT_OF_MEMORY, "out of memory");
    }
    for (int i = 0; i < TOKENS; i++) {
        tokens[i] = (i * 37 + 5) % (int32_t)b->config.V;
    }
    enum status status = STATUS_OK;
    for (int i = 0; i < 2 && status == STATUS_OK; i++) {
        status = low_bit_decoder_prefill(b->decoder, tokens, TOKENS, 0, error);
        if (status == STATUS_OK) {
            status = device_read(i == 0 ? first : second, b->io.logits, bytes, b->stream, error);
        }
    }
    float largest = 0.0f;
    for (size_t i = 0; i < b->config.V && status == STATUS_OK; i++) {
        largest = fmaxf(largest, isfinite(first[i]) ? fabsf(first[i]) : INFINITY);
    }
    if (status == STATUS_OK && (memcmp(first, second, bytes) != 0 || !isfinite(largest))) {
        status = error_set(error, STATUS_MISMATCH, "the same tokens gave other logits (largest %g)",
                           (double)largest);
    }
    free(first);
    return status;
}

static void print_row(const struct bench *b, const char *what, size_t position, double ms) {
    double bytes = (double)low_bit_decoder_bytes(b->decoder, position + b->steps / 2);
    printf("  %-34s %9.4f ms %9.1f tokens/s %7.3f of the read probe\n", what, ms, 1e3 / ms,
           bytes / (1e-3 * ms) / b->read_bandwidth);
}

/* Milliseconds of a step of `rows` texts, all at the same position. */
static enum status time_rows(const struct bench *b, struct rows_decoder *decoder, double *ms,
                             struct error *error) {
    size_t warm = b->modelled ? 1 : 5;
    double start = 0.0;
    for (size_t i = 0; i < warm + b->steps; i++) {
        if (i == warm) {
            TRY(device_synchronize(b->stream, error));
            start = device_now();
        }
        TRY(rows_decoder_feed(decoder, SHORT_CONTEXT, error));
    }
    TRY(device_synchronize(b->stream, error));
    *ms = 1e3 * (device_now() - start) / (double)b->steps;
    return STATUS_OK;
}

/* Tokens and positions of `rows` texts. */
static enum status put_texts(const struct bench *b, const struct rows_io *io, size_t rows,
                             struct error *error) {
    int32_t tokens[ROWS_MOST], positions[ROWS_MOST];
    for (size_t i = 0; i < rows; i++) {
        tokens[i] = 7 + (int32_t)i;
        positions[i] = SHORT_CONTEXT;
    }
    TRY(device_write((void *)io->tokens, tokens, rows * sizeof *tokens, b->stream, error));
    return device_write((void *)io->positions, positions, rows * sizeof *tokens, b->stream, error);
}

static enum status show_rows(const struct bench *b, size_t rows, enum rows_form form,
                             struct error *error) {
    struct rows_decoder *decoder = NULL;
    struct rows_io io = {0};
    char text[64];
    double ms = 0.0;
    enum status status =
        device_alloc((void **)&io.logits, rows * b->config.V * sizeof(float), error);
    if (status == STATUS_OK) {
        status = device_alloc((void **)&io.tokens, ROWS_MOST * sizeof(int32_t), error);
    }
    if (status == STATUS_OK) {
        status = device_alloc((void **)&io.positions, ROWS_MOST * sizeof(int32_t), error);
    }
    if (status == STATUS_OK) {
        status = put_texts(b, &io, rows, error);
    }
    if (status == STATUS_OK) {
        status = rows_decoder_create(&decoder, &b->model, &io, rows, form, b->stream, error);
    }
    if (status == STATUS_OK) {
        status = time_rows(b, decoder, &ms, error);
    }
    rows_decoder_free(decoder);
    device_free(io.logits);
    device_free((void *)io.tokens);
    device_free((void *)io.positions);
    TRY(status);
    snprintf(text, sizeof text, "%s, %zu text%s",
             form == ROWS_LAUNCHES ? "launches in a graph" : "rows in one kernel", rows,
             rows > 1 ? "s" : "");
    print_row(b, text, SHORT_CONTEXT, ms);
    return STATUS_OK;
}

static enum status show(struct bench *b, const char *name, struct error *error) {
    char text[64];
    double ms;
    size_t late = b->config.T > b->steps + 8 ? b->config.T - b->steps - 8 : 0;
    TRY(make_model(b, error));
    printf("%s, %s, %.3f GB a token, read probe %.0f GB/s\n", name, types[b->type].title,
           1e-9 * (double)low_bit_decoder_bytes(b->decoder, SHORT_CONTEXT),
           1e-9 * b->read_bandwidth);
    TRY(check_repeats(b, error));
    TRY(time_steps(b, low_bit_decoder_feed, SHORT_CONTEXT, &ms, error));
    print_row(b, "the kernel alone", SHORT_CONTEXT, ms);
    TRY(time_steps(b, low_bit_decoder_step, SHORT_CONTEXT, &ms, error));
    print_row(b, "a step, greedy", SHORT_CONTEXT, ms);
    if (late > SHORT_CONTEXT) {
        TRY(time_steps(b, low_bit_decoder_feed, late, &ms, error));
        snprintf(text, sizeof text, "the kernel after %zu tokens", late);
        print_row(b, text, late, ms);
    }
    for (size_t rows = 1; rows <= ROWS_MOST && b->model.type != LOW_BIT_FP8; rows *= ROWS_MOST) {
        TRY(show_rows(b, rows, ROWS_LAUNCHES, error));
        TRY(show_rows(b, rows, ROWS_FASTEST, error));
    }
    return STATUS_OK;
}

static enum status run_shape(const struct llama2_config *config, int type, const char *name,
                             bool modelled, double bandwidth, struct error *error) {
    struct bench b = {
        .config = *config, .type = type, .modelled = modelled, .read_bandwidth = bandwidth};
    b.steps = modelled ? 2 : 100;
    enum status status = show(&b, name, error);
    free_model(&b);
    return status;
}

/* Whether a name is among the arguments, or none of its kind is. */
static bool wanted(int argc, char **argv, const char *name, const char *const *kind, int count) {
    bool any = false;
    for (int i = 1; i < argc; i++) {
        if (strcasecmp(argv[i], name) == 0) {
            return true;
        }
        for (int j = 0; j < count; j++) {
            any = any || strcasecmp(argv[i], kind[j]) == 0;
        }
    }
    return !any;
}

static enum status run(int argc, char **argv, struct error *error) {
    static const char *const shapes[] = {"1.1B", "7B"};
    static const enum llama2_shape shape_of[] = {LLAMA2_SHAPE_1B, LLAMA2_SHAPE_7B};
    const char *names[TYPES];
    struct device_properties gpu;
    double bandwidth;
    TRY(device_open(error));
    TRY(device_properties(&gpu, error));
    TRY(device_read_bandwidth(&bandwidth, NULL, error));
    printf("%s %s\n", gpu.modelled ? "modelled for" : "measured on", gpu.name);
    for (int i = 0; i < TYPES; i++) {
        names[i] = types[i].name;
    }
    for (int s = 0; s < 2; s++) {
        struct llama2_config config = llama2_shape_config(shape_of[s]);
        if (gpu.modelled) {
            config = (struct llama2_config){.C = 256,
                                            .hidden = 512,
                                            .L = 1,
                                            .NH = 4,
                                            .KVH = 2,
                                            .HS = 64,
                                            .V = 500,
                                            .T = 64,
                                            .rope_theta = 1e4f,
                                            .norm_eps = 1e-5f};
        }
        for (int t = 0; t < TYPES; t++) {
            if (wanted(argc, argv, shapes[s], shapes, 2) &&
                wanted(argc, argv, names[t], names, TYPES) && !(gpu.modelled && s > 0)) {
                TRY(run_shape(&config, t, gpu.modelled ? "C 256, a layer" : shapes[s], gpu.modelled,
                              bandwidth, error));
            }
        }
    }
    return STATUS_OK;
}

int main(int argc, char **argv) {
    struct error error = {0};
    if (argc > 1 && strcmp(argv[1], "--help") == 0) {
        printf("usage: decoder_bench [1.1b] [7b] [int8] [fp8] [int4] [int4g32]\nTimes a token of "
               "the low-bit decoder.\n");
        return 0;
    }
    setenv("SIMT_CHECK", "bounds", 0); /* the tests run all checks */
    enum status status = run(argc, argv, &error);
    if (status != STATUS_OK) {
        fprintf(stderr, "decoder_bench: %s\n", error_text(&error, status));
    }
    return status == STATUS_OK ? 0 : 1;
}
