/**
 * @file low_bit_decoder.cu
 * @brief The low-bit decoder: its memory, and the launch of a token.
 */
#include "solutions/13_low_bit/decoder/low_bit_decoder.h"

#include <cuda_runtime.h>
#include <math.h>
#include <stdlib.h>

#include "solutions/10_llama2_decoder/steps/d8_host.cuh"
#include "solutions/13_low_bit/decoder/kernels.h"
#include "solutions/13_low_bit/decoder/low_bit_model.h"

struct low_bit_decoder {
    struct low_bit_decoder_model model;
    struct decoder d; /* what d8 has of its own; its model is model.sizes */
    bool deeper;      /* whether pipelines of int8 have a stage more */
    float2 *scales;   /* (L, T, KVH): of keys and values */
    int32_t *tokens;  /* (T): of a prompt */
};

/* ---- Sizes ---- */

size_t low_bit_decoder_prepared_bytes(const struct low_bit_layout *layout, bool paired) {
    return low_bit_stream_of(layout, paired).bytes;
}

static size_t layer_bytes(const struct low_bit_decoder_model *m) {
    size_t bytes = 2 * m->sizes.C * sizeof(float);
    for (int i = LOW_BIT_QKV; i <= LOW_BIT_DOWN; i++) {
        bytes += low_bit_model_stream(m, (enum low_bit_product)i).bytes;
    }
    return bytes;
}

size_t low_bit_decoder_bytes(const struct low_bit_decoder *decoder, size_t position) {
    const struct decoder_model *s = &decoder->model.sizes;
    size_t keys = (position + 1) * s->KVH * (2 * s->HS + sizeof(float2));
    return s->L * (layer_bytes(&decoder->model) + keys) +
           low_bit_model_stream(&decoder->model, LOW_BIT_CLASSIFIER).bytes +
           s->C * (sizeof(float) + 2);
}

static struct low_bit_kernel kernel_of(const struct low_bit_decoder *decoder, size_t queries) {
    const struct low_bit_decoder_model *m = &decoder->model;
    size_t L = m->sizes.L, HS = m->sizes.HS;
    return decoder->deeper           ? low_bit_kernel_int8(queries, L, HS)
           : m->type != LOW_BIT_INT4 ? low_bit_kernel_bytes(m->type, queries, L, HS)
           : m->group == 32          ? low_bit_kernel_int4_32(m->scale_dtype, queries, L, HS)
                                     : low_bit_kernel_int4_128(m->scale_dtype, queries, L, HS);
}

/* Queries that may share a read of their keys. */
static size_t most_queries(const struct decoder_model *s) {
    return s->NH / s->KVH % 2 == 0 ? 2 : 1;
}

static size_t queries_at(const struct low_bit_decoder *decoder, size_t position) {
    const struct decoder *d = &decoder->d;
    bool together = position >= d->one.shared_from[0] || d->model->NH > d->one.blocks;
    return together ? most_queries(d->model) : 1;
}

static size_t tiles_of(const struct low_bit_decoder *decoder, int product) {
    return low_bit_model_stream(&decoder->model, (enum low_bit_product)product).tiles;
}

static size_t smaller_size(size_t a, size_t b) {
    return a < b ? a : b;
}

/* A block has a tile of qkv and of gate and up, so that no block falls behind until the values that
 * it waits for are overwritten. Of the numbers with which no block has more tiles of a matrix, the
 * least that has a block a team: each block polls, and takes a share of memory's speed. */
static size_t blocks_for(const struct low_bit_decoder *decoder, size_t teams) {
    size_t most =
        smaller_size(decoder->d.multiprocessors, smaller_size(tiles_of(decoder, LOW_BIT_QKV),
                                                              tiles_of(decoder, LOW_BIT_GATE_UP)));
    size_t least = smaller_size(most, teams);
    for (int i = 0; i < LOW_BIT_PRODUCTS; i++) {
        size_t needed = ceil_div(tiles_of(decoder, i), ceil_div(tiles_of(decoder, i), most));
        least = needed > least ? needed : least;
    }
    return least;
}

/* Floats of shared memory for a product's input, or for attention. */
static size_t input_floats_of(const struct low_bit_decoder_model *m,
                              const struct low_bit_kernel *kernel) {
    size_t most = kernel->partial_floats;
    for (int i = 0; i < LOW_BIT_PRODUCTS; i++) {
        const struct low_bit_stream s = low_bit_model_stream(m, (enum low_bit_product)i);
        size_t floats = ceil_div(s.slices * s.slice_columns, 128) * kernel->input_floats;
        most = floats > most ? floats : most;
    }
    return (most + 31) / 32 * 32;
}

static size_t most_sums(const struct low_bit_decoder *decoder,
                        const struct low_bit_kernel *kernel) {
    size_t most = 0;
    for (int i = 0; i < LOW_BIT_PRODUCTS; i++) {
        size_t tiles =
            ceil_div(low_bit_model_stream(&decoder->model, (enum low_bit_product)i).tiles,
                     decoder->d.one.blocks);
        most = tiles > most ? tiles : most;
    }
    return (most + kernel->warps) * LOW_BIT_TILE_ROWS;
}

/* ---- Memory ---- */

static enum status allocate_cache(struct low_bit_decoder *decoder, struct error *error) {
    struct decoder *d = &decoder->d;
    const struct decoder_model *s = d->model;
    size_t heads, bytes;
    if (!checked_multiply(s->L, s->T, &heads) || !checked_multiply(heads, s->KVH, &heads) ||
        !checked_multiply(heads, s->HS, &bytes)) {
        return error_set(error, STATUS_OUT_OF_MEMORY, "low-bit decoder: %zu tokens of context",
                         s->T);
    }
    TRY(device_alloc(&d->k, bytes, error));
    TRY(device_alloc(&d->v, bytes, error));
    TRY(device_alloc((void **)&decoder->scales, heads * sizeof(float2), error));
    TRY(device_alloc((void **)&decoder->tokens, s->T * sizeof *decoder->tokens, error));
    TRY(device_alloc((void **)&d->x, s->C * sizeof *d->x, error));
    return device_alloc(&d->draw_workspace, sample_workspace_bytes(s->V), error);
}

/* Where its streams are, layer after layer. */
static enum status upload_layers(struct low_bit_decoder *decoder, struct error *error) {
    const struct decoder_model *s = &decoder->model.sizes;
    struct one_layer *layers = (struct one_layer *)calloc(s->L + 1, sizeof *layers);
    if (layers == NULL) {
        return error_set(error, STATUS_OUT_OF_MEMORY, "low-bit decoder: out of memory");
    }
    for (size_t l = 0; l < s->L; l++) {
        const struct decoder_layer *w = &s->layers[l];
        const char *keys = (const char *)decoder->d.k + l * s->T * s->KVH * s->HS;
        layers[l] = {
            {w->qkv, keys, w->out, w->gate_up, NULL, w->down}, w->attention_norm, w->ffn_norm};
    }
    enum status status = one_upload_layers(&decoder->d, layers, error);
    free(layers);
    return status;
}

/* Dynamic shared memory of a block. */
static size_t shared_bytes_of(const struct low_bit_decoder *decoder,
                              const struct low_bit_kernel *kernel) {
    size_t floats = input_floats_of(&decoder->model, kernel) + most_sums(decoder, kernel);
    return kernel->pipeline_bytes + kernel->plan_bytes + floats * sizeof(float);
}

/* On an H200 at 7B a token in int8 takes 1.740 ms with six stages, and 1.728 with seven. */
static bool has_room_for_a_stage(const struct low_bit_decoder *decoder) {
    const struct decoder_model *s = &decoder->model.sizes;
    const struct low_bit_kernel deeper = low_bit_kernel_int8(most_queries(s), s->L, s->HS);
    return decoder->model.type == LOW_BIT_INT8 &&
           shared_bytes_of(decoder, &deeper) + deeper.static_bytes <= decoder->d.shared_bytes;
}

static enum status set_shared_bytes(struct low_bit_decoder *decoder, struct error *error) {
    struct decoder *d = &decoder->d;
    decoder->deeper = has_room_for_a_stage(decoder);
    const struct low_bit_kernel widest = kernel_of(decoder, most_queries(d->model));
    d->one.shared_bytes = shared_bytes_of(decoder, &widest);
    size_t keys_of_stage = 1024 / d->model->HS;
    if (d->one.shared_bytes + widest.static_bytes > d->shared_bytes || d->major < 8 ||
        keys_of_stage * sizeof(float2) > widest.stage_room) {
        return error_set(error, STATUS_UNSUPPORTED,
                         "low-bit decoder: %zu bytes of shared memory and compute capability 8.0 "
                         "are needed; this GPU has %zu and %d.x",
                         d->one.shared_bytes + widest.static_bytes, d->shared_bytes, d->major);
    }
    for (size_t queries = 1; queries <= most_queries(d->model); queries *= 2) {
        TRY(one_allow_shared_bytes(d, kernel_of(decoder, queries).function, error));
    }
    return STATUS_OK;
}

static enum status fill(struct low_bit_decoder *decoder, struct error *error) {
    struct decoder *d = &decoder->d;
    const struct decoder_model *s = d->model;
    struct device_properties gpu;
    TRY(low_bit_model_check(&decoder->model, error));
    TRY(device_properties(&gpu, error));
    d->multiprocessors = (size_t)gpu.multiprocessors;
    d->shared_bytes = gpu.shared_bytes;
    d->major = gpu.code / 10;
    d->one.blocks = blocks_for(decoder, s->NH);
    d->one.shared_from[0] = 2048;
    if (s->NH / most_queries(s) > d->one.blocks) {
        return error_set(error, STATUS_UNSUPPORTED,
                         "low-bit decoder: %zu query heads on %zu blocks; a block has one team of "
                         "%zu",
                         s->NH, d->one.blocks, most_queries(s));
    }
    TRY(set_shared_bytes(decoder, error));
    TRY(allocate_cache(decoder, error));
    TRY(one_allocate_mailboxes(d, s->NH / most_queries(s), error));
    return upload_layers(decoder, error);
}

enum status low_bit_decoder_create(struct low_bit_decoder **out,
                                   const struct low_bit_decoder_model *model,
                                   const struct decoder_io *io, device_stream stream,
                                   struct error *error) {
    *out = NULL;
    struct low_bit_decoder *decoder = (struct low_bit_decoder *)calloc(1, sizeof *decoder);
    if (decoder == NULL) {
        return error_set(error, STATUS_OUT_OF_MEMORY, "low-bit decoder: out of memory");
    }
    decoder->model = *model;
    decoder->d.model = &decoder->model.sizes;
    decoder->d.io = *io;
    decoder->d.stream = stream;
    enum status status = fill(decoder, error);
    if (status != STATUS_OK) {
        low_bit_decoder_free(decoder);
        return status;
    }
    *out = decoder;
    return STATUS_OK;
}

void low_bit_decoder_free(struct low_bit_decoder *decoder) {
    if (decoder == NULL) {
        return;
    }
    const struct decoder *d = &decoder->d;
    void *const all[] = {d->k, d->v, decoder->scales, decoder->tokens, d->x, d->draw_workspace};
    decoder_one_free(&decoder->d);
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        device_free(all[i]);
    }
    free(decoder);
}

/* ---- A token ---- */

/* What a warp holds back of its stages, so that values of other blocks do not arrive behind all of
 * them: a half where a layer is much more than the pipelines hold, as d8 does, a third where it is
 * some times as much. On an H100 at 7B a token in int8 takes 2.62 ms if none are held back, and
 * 2.48 so; in int4 1.58 and 1.48. */
static unsigned held_back_by(const struct low_bit_decoder *decoder,
                             const struct low_bit_kernel *kernel) {
    size_t of_block = layer_bytes(&decoder->model) / decoder->d.one.blocks;
    return of_block > 8 * kernel->pipeline_bytes   ? kernel->stages / 2
           : of_block > 4 * kernel->pipeline_bytes ? kernel->stages / 3
                                                   : 0;
}

/* Slices that a waiting warp has L2 fetch: on an H200 at 7B a token in int4 takes 1.179 ms without,
 * and 1.167 with 8. */
enum { AHEAD = 8 };

static enum status launch(const struct low_bit_decoder *decoder, const int32_t *token,
                          size_t position, struct error *error) {
    const struct decoder *d = &decoder->d;
    const struct low_bit_kernel kernel = kernel_of(decoder, queries_at(decoder, position));
    struct one_arguments p = one_common_arguments(d, position);
    p.token = token;
    p.input_floats = (unsigned)input_floats_of(&decoder->model, &kernel);
    p.held_back = held_back_by(decoder, &kernel);
    p.ahead = p.held_back > 0 ? AHEAD : 0;
    p.key_bytes = d->model->KVH * d->model->HS;
    p.scales = decoder->scales;
    return one_launch(d, kernel.function, kernel.threads, &p, error);
}

enum status low_bit_decoder_prefill(struct low_bit_decoder *decoder, const int32_t *tokens,
                                    size_t count, size_t position, struct error *error) {
    if (count > decoder->model.sizes.T || position > decoder->model.sizes.T - count) {
        return error_set(error, STATUS_INVALID_ARGUMENT,
                         "low-bit decoder: %zu tokens at position %zu of a context of %zu", count,
                         position, decoder->model.sizes.T);
    }
    TRY(device_write(decoder->tokens, tokens, count * sizeof *tokens, decoder->d.stream, error));
    for (size_t i = 0; i < count; i++) {
        TRY(launch(decoder, decoder->tokens + i, position + i, error));
    }
    return STATUS_OK;
}

enum status low_bit_decoder_feed(struct low_bit_decoder *decoder, size_t position,
                                 struct error *error) {
    return launch(decoder, decoder->d.io.token, position, error);
}

enum status low_bit_decoder_step(struct low_bit_decoder *decoder, size_t position,
                                 struct error *error) {
    const struct decoder *d = &decoder->d;
    TRY(sample_token(d->io.sampling, d->io.logits, d->model->V, d->io.token, d->draw_workspace,
                     d->stream, error));
    return low_bit_decoder_feed(decoder, position, error);
}
