/**
 * @file encoder16.c
 * @brief The 16-bit encoder's launches: seven a layer, and for small batches one graph of them.
 *
 * A layer: q, k and v in one product; attention; output, with bias and residual in the product's
 * epilogue; LayerNorm; up, with bias and GELU; down, with bias and residual; LayerNorm. Buffers
 * between launches are 16 bits wide, also the sums that a LayerNorm reads: bias and residual are
 * added in fp32 and rounded once. (PyTorch rounds the product, too, before it adds the residual.)
 * As fp32 the sums cost 4 bytes more an element, and an epilogue that lab 12's fastest tiles do not
 * have.
 *
 * Weights are written before the copy of a batch's numbers, which all of its kernels come after: so
 * products may read them while the kernel before still runs (dependent_launch.cuh).
 *
 * The classifier reads one row a sequence, so the last layer computes only those after attention.
 *
 * A batch of few rows takes the GPU less time than the host needs to launch it. Such a batch is
 * recorded by its lengths and destinations when it comes again (common/device/replays.h). Weights
 * and buffers stay where they are for the encoder's life, and ids are read from memory, so a
 * recording stays right.
 */
#include "labs/08_bert_classifier/given/encoder16.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/checked.h"
#include "common/device/replays.h"
#include "labs/07_attention/attention.h"
#include "labs/08_bert_classifier/given/encoder16_kernels.h"

/* Batches of at most so many rows and sequences are recorded; so many of them are remembered. */
enum { REPLAY_ROWS = 4096, REPLAY_SEQUENCES = 128, REPLAYS = 64 };

/* Weight and bias in 16 bits, device. */
struct linear16 {
    void *weight, *bias;
};

struct layer16 {
    struct linear16 qkv, out, up, down;
};

struct encoder16 {
    struct encoder_model model;
    enum nn_dtype dtype;
    gemm16_function *product;
    size_t max_tokens;
    device_stream stream;
    struct layer16 *layers; /* (L) */
    void *weights;          /* of all layers, one allocation */
    void *workspace;        /* the product's */

    /* Device, of at most max_tokens rows. */
    void *x;        /* (rows, C): the hidden state */
    void *qkv;      /* (rows, 3, C) */
    void *attended; /* (rows, C): attention's result */
    void *sum;      /* (rows, C): a LayerNorm's input */
    void *inner;    /* (rows, hidden) */
    void *first_x;  /* (B, C): rows of x and of attended that the last layer keeps */
    void *first_attended;

    /* ids, types, positions: (rows) each, and starts (B + 1), contiguous. The host's are
     * page-locked, so that the copy does not wait. */
    int32_t *host_numbers, *d_numbers;

    struct replays *replays;
};

/* Sub-allocates 16-bit elements of one allocation, 256-byte aligned. */
static bool reserve(size_t rows, size_t columns, size_t *at, size_t *offset) {
    size_t count, bytes;
    *offset = *at;
    return checked_multiply(rows, columns, &count) && checked_multiply(count, 2, &bytes) &&
           checked_add(bytes, 255, &bytes) && checked_add(*at, bytes / 256 * 256, at);
}

enum { LAYER_TENSORS = 8 };

struct tensor {
    const float *from;
    void **to;
    size_t rows, columns;
};

static void list_layer(struct tensor list[LAYER_TENSORS], const struct encoder_model *m,
                       const struct encoder_layer *from, struct layer16 *to) {
    const struct tensor tensors[LAYER_TENSORS] = {
        {from->qkv.weight, &to->qkv.weight, 3 * m->C, m->C},
        {from->qkv.bias, &to->qkv.bias, 1, 3 * m->C},
        {from->out.weight, &to->out.weight, m->C, m->C},
        {from->out.bias, &to->out.bias, 1, m->C},
        {from->up.weight, &to->up.weight, m->hidden, m->C},
        {from->up.bias, &to->up.bias, 1, m->hidden},
        {from->down.weight, &to->down.weight, m->C, m->hidden},
        {from->down.bias, &to->down.bias, 1, m->C},
    };
    memcpy(list, tensors, sizeof tensors);
}

/* Device bytes of all layers; with `base`, also sets each tensor's address and rounds its values
 * into it. */
static enum status place_weights(struct encoder16 *e, char *base, size_t *bytes,
                                 struct error *error) {
    size_t at = 0;
    for (size_t l = 0; l < e->model.L; l++) {
        struct tensor list[LAYER_TENSORS];
        list_layer(list, &e->model, &e->model.layers[l], &e->layers[l]);
        for (size_t i = 0; i < LAYER_TENSORS; i++) {
            size_t offset;
            if (!reserve(list[i].rows, list[i].columns, &at, &offset)) {
                return error_set(error, STATUS_OVERFLOW, "the encoder's weights are too many");
            }
            if (base != NULL) {
                *list[i].to = base + offset;
                TRY(encoder16_round(base + offset, list[i].from, list[i].rows * list[i].columns,
                                    e->dtype, e->stream, error));
            }
        }
    }
    *bytes = at;
    return STATUS_OK;
}

static enum status make_weights(struct encoder16 *e, struct error *error) {
    size_t bytes;
    e->layers = calloc(e->model.L, sizeof *e->layers);
    if (e->layers == NULL) {
        return error_set(error, STATUS_OUT_OF_MEMORY, "out of memory for the encoder");
    }
    TRY(place_weights(e, NULL, &bytes, error));
    TRY(device_alloc(&e->weights, bytes, error));
    return place_weights(e, e->weights, &bytes, error);
}

static enum status make_buffer(void **to, size_t rows, size_t columns, size_t element,
                               struct error *error) {
    size_t bytes;
    if (!checked_multiply(rows, columns, &bytes) || !checked_multiply(bytes, element, &bytes)) {
        return error_set(error, STATUS_OVERFLOW, "%zu rows are too many for the encoder", rows);
    }
    return device_alloc(to, bytes, error);
}

static enum status make_buffers(struct encoder16 *e, struct error *error) {
    size_t rows = e->max_tokens, C = e->model.C, numbers;
    if (!checked_multiply(rows, 4, &numbers) || !checked_add(numbers, 1, &numbers)) {
        return error_set(error, STATUS_OVERFLOW, "%zu rows are too many for the encoder", rows);
    }
    TRY(make_buffer(&e->x, rows, C, 2, error));
    TRY(make_buffer(&e->qkv, rows, 3 * C, 2, error));
    TRY(make_buffer(&e->attended, rows, C, 2, error));
    TRY(make_buffer(&e->sum, rows, C, 2, error));
    TRY(make_buffer(&e->inner, rows, e->model.hidden, 2, error));
    TRY(make_buffer(&e->first_x, rows, C, 2, error));
    TRY(make_buffer(&e->first_attended, rows, C, 2, error));
    TRY(make_buffer((void **)&e->d_numbers, numbers, 1, sizeof *e->d_numbers, error));
    TRY(device_alloc(&e->workspace, GEMM16_WORKSPACE_BYTES, error));
    return device_alloc_host((void **)&e->host_numbers, numbers * sizeof *e->host_numbers, error);
}

static enum status check(const struct encoder_model *m, enum nn_dtype dtype, struct error *error) {
    struct device_properties gpu;
    if (dtype != NN_F16 && dtype != NN_BF16) {
        return error_set(error, STATUS_INVALID_ARGUMENT,
                         "the 16-bit encoder computes in fp16 or bf16");
    }
    if (m->C == 0 || m->NH == 0 || m->C % m->NH != 0 || m->C / m->NH > ATTENTION_MAX_HS) {
        return error_set(error, STATUS_INVALID_ARGUMENT,
                         "the encoder: %zu channels in %zu heads; a head has 1 to %zu", m->C, m->NH,
                         ATTENTION_MAX_HS);
    }
    TRY(device_properties(&gpu, error));
    if (gpu.code < 80) {
        return error_set(error, STATUS_UNSUPPORTED,
                         "%s: code for compute capability 8.0 or more is needed, %s runs code for "
                         "%d.%d",
                         nn_dtype_name(dtype), gpu.name, gpu.code / 10, gpu.code % 10);
    }
    return STATUS_OK;
}

static enum status fill(struct encoder16 *e, struct error *error) {
    TRY(replays_create(&e->replays, REPLAYS, error));
    TRY(make_weights(e, error));
    return make_buffers(e, error);
}

enum status encoder16_create_with(struct encoder16 **encoder, const struct encoder_model *model,
                                  enum nn_dtype dtype, gemm16_function *product, size_t max_tokens,
                                  device_stream stream, struct error *error) {
    *encoder = NULL;
    TRY(check(model, dtype, error));
    struct encoder16 *e = calloc(1, sizeof *e);
    if (e == NULL) {
        return error_set(error, STATUS_OUT_OF_MEMORY, "out of memory for the encoder");
    }
    *e = (struct encoder16){.model = *model,
                            .dtype = dtype,
                            .product = product,
                            .max_tokens = max_tokens,
                            .stream = stream};
    enum status status = fill(e, error);
    if (status != STATUS_OK) {
        encoder16_free(e);
        return status;
    }
    *encoder = e;
    return STATUS_OK;
}

void encoder16_free(struct encoder16 *e) {
    if (e == NULL) {
        return;
    }
    replays_free(e->replays);
    void *const memory[] = {e->weights,        e->workspace, e->x,     e->qkv,
                            e->attended,       e->sum,       e->inner, e->first_x,
                            e->first_attended, e->d_numbers};
    for (size_t i = 0; i < sizeof memory / sizeof *memory; i++) {
        device_free(memory[i]);
    }
    free(e->layers);
    device_free_host(e->host_numbers);
    free(e);
}

/* One batch, with its numbers on the device. */
struct batch16 {
    const struct encoder_batch *host;
    const int32_t *ids, *types, *positions, *starts; /* device */
};

/* Writes the batch's numbers to page-locked memory, ready for one copy. */
static void write_numbers(const struct encoder16 *e, const struct encoder_batch *b) {
    size_t rows = b->rows, bytes = rows * sizeof(int32_t);
    int32_t *ids = e->host_numbers, *types = ids + rows, *positions = types + rows;
    memcpy(ids, b->ids, bytes);
    if (b->types != NULL) {
        memcpy(types, b->types, bytes);
    } else {
        memset(types, 0, bytes);
    }
    for (size_t s = 0; s < b->B; s++) {
        for (int32_t row = b->starts[s]; row < b->starts[s + 1]; row++) {
            positions[row] = row - b->starts[s];
        }
    }
    memcpy(positions + rows, b->starts, (b->B + 1) * sizeof(int32_t));
}

/* Where the numbers are once they are copied. */
static struct batch16 place_numbers(const struct encoder16 *e, const struct encoder_batch *b) {
    const int32_t *d = e->d_numbers;
    return (struct batch16){b, d, d + b->rows, d + 2 * b->rows, d + 3 * b->rows};
}

/* Optional epilogue of a product, beside its bias. */
struct extra {
    const void *residual;
    bool activate;
};

static enum status multiply(const struct encoder16 *e, void *out, const void *in,
                            const struct linear16 *linear, size_t rows, size_t N, size_t K,
                            struct extra extra, struct error *error) {
    const struct gemm16_problem problem = {.dtype = e->dtype,
                                           .out_dtype = e->dtype,
                                           .M = rows,
                                           .N = N,
                                           .K = K,
                                           .in = in,
                                           .weight = linear->weight,
                                           .weight_is_constant = true,
                                           .bias = linear->bias,
                                           .activate = extra.activate,
                                           .f = e->model.activation,
                                           .residual = extra.residual,
                                           .out = out};
    return e->product(&problem, e->workspace, e->stream, error);
}

static enum status mix(const struct encoder16 *e, const struct batch16 *b, struct error *error) {
    size_t C = e->model.C, HS = C / e->model.NH;
    const char *qkv = e->qkv;
    const struct attention_problem problem = {.dtype = e->dtype,
                                              .q = qkv,
                                              .k = qkv + C * 2,
                                              .v = qkv + 2 * C * 2,
                                              .out = e->attended,
                                              .starts = b->starts,
                                              .host_starts = b->host->starts,
                                              .B = b->host->B,
                                              .T = b->host->longest,
                                              .S = b->host->longest,
                                              .NH = e->model.NH,
                                              .KVH = e->model.NH,
                                              .HS = HS,
                                              .q_stride = 3 * C,
                                              .kv_stride = 3 * C,
                                              .out_stride = C,
                                              .scale = 1.0f / sqrtf((float)HS)};
    return attention(&problem, e->stream, error);
}

/* Destinations of a layer's result. */
struct target {
    void *out;
    enum nn_dtype dtype;
};

/* The layer's result from attention's result and the layer's input, `rows` of each. */
static enum status run_after_attention(const struct encoder16 *e, size_t l, void *x,
                                       const void *attended, size_t rows, struct target to,
                                       struct error *error) {
    size_t C = e->model.C, hidden = e->model.hidden;
    const struct layer16 *layer = &e->layers[l];
    const struct encoder_layer *norms = &e->model.layers[l];
    const struct extra residual = {x, false}, activation = {NULL, true};
    TRY(multiply(e, e->sum, attended, &layer->out, rows, C, C, residual, error));
    TRY(encoder16_norm(x, e->dtype, e->sum, e->dtype, &norms->attention, rows, C, e->stream,
                       error));
    TRY(multiply(e, e->inner, x, &layer->up, rows, hidden, C, activation, error));
    TRY(multiply(e, e->sum, e->inner, &layer->down, rows, C, hidden, residual, error));
    return encoder16_norm(to.out, to.dtype, e->sum, e->dtype, &norms->feed_forward, rows, C,
                          e->stream, error);
}

static enum status run_layer(const struct encoder16 *e, const struct batch16 *b, size_t l,
                             struct error *error) {
    size_t C = e->model.C, rows = b->host->rows;
    const struct extra none = {NULL, false};
    float *hidden = b->host->hidden;
    bool last = l + 1 == e->model.L;
    TRY(multiply(e, e->qkv, e->x, &e->layers[l].qkv, rows, 3 * C, C, none, error));
    TRY(mix(e, b, error));
    if (!last || hidden != NULL) {
        const struct target to = {last ? (void *)hidden : e->x, last ? NN_F32 : e->dtype};
        return run_after_attention(e, l, e->x, e->attended, rows, to, error);
    }
    size_t B = b->host->B;
    const struct target to = {b->host->first, NN_F32};
    if (B == 1) { /* the first row is where it should be */
        return run_after_attention(e, l, e->x, e->attended, B, to, error);
    }
    const struct encoder16_rows firsts[] = {{e->first_x, e->x}, {e->first_attended, e->attended}};
    TRY(encoder16_gather(firsts, 2, b->starts, B, C, 2, e->stream, error));
    return run_after_attention(e, l, e->first_x, e->first_attended, B, to, error);
}

/* All of a batch's work, from the copy of its numbers on. */
static enum status run_batch(const struct encoder16 *e, const struct encoder_batch *batch,
                             struct error *error) {
    const struct batch16 b = place_numbers(e, batch);
    const struct encoder16_tokens tokens = {e->model.word_embedding,
                                            e->model.position_embedding,
                                            e->model.type_embedding,
                                            b.ids,
                                            b.positions,
                                            b.types};
    TRY(encoder16_send(e->d_numbers, e->host_numbers, 3 * batch->rows + batch->B + 1, e->stream,
                       error));
    TRY(encoder16_embed(e->x, &tokens, &e->model.embedding, batch->rows, e->model.C, e->dtype,
                        e->stream, error));
    for (size_t l = 0; l < e->model.L; l++) {
        TRY(run_layer(e, &b, l, error));
    }
    const struct encoder16_rows first = {batch->first, batch->hidden};
    return batch->hidden == NULL
               ? STATUS_OK
               : encoder16_gather(&first, 1, b.starts, batch->B, e->model.C, 4, e->stream, error);
}

/* What the launches of a batch depend on, beside the encoder. */
struct batch_key {
    uint64_t B;
    const float *first, *hidden;
    int32_t starts[REPLAY_SEQUENCES + 1];
};

struct recording {
    const struct encoder16 *encoder;
    const struct encoder_batch *batch;
};

static enum status run_on(const void *argument, device_stream stream, struct error *error) {
    const struct recording *r = argument;
    struct encoder16 e = *r->encoder;
    e.stream = stream;
    return run_batch(&e, r->batch, error);
}

static enum status run_again(struct encoder16 *e, const struct encoder_batch *batch,
                             struct error *error) {
    const struct recording recording = {e, batch};
    struct batch_key key = {.B = batch->B, .first = batch->first, .hidden = batch->hidden};
    size_t bytes = (batch->B + 1) * sizeof *key.starts;
    memcpy(key.starts, batch->starts, bytes);
    return replays_run(e->replays, &key, offsetof(struct batch_key, starts) + bytes, run_on,
                       &recording, e->stream, error);
}

enum status encoder16_run(struct encoder16 *e, const struct encoder_batch *batch,
                          struct error *error) {
    if (batch->rows > e->max_tokens) {
        return error_set(error, STATUS_TOO_LONG, "%zu rows; the encoder was made for %zu",
                         batch->rows, e->max_tokens);
    }
    write_numbers(e, batch);
    bool small = batch->rows <= REPLAY_ROWS && batch->B <= REPLAY_SEQUENCES;
    return small ? run_again(e, batch, error) : run_batch(e, batch, error);
}
