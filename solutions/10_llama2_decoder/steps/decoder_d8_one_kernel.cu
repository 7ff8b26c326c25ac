/**
 * @file decoder_d8_one_kernel.cu
 * @brief d8: one persistent kernel for a whole token, whose weights never stop streaming.
 *
 * Changes since d7: the five kernels of a layer become five phases of one persistent kernel, with a
 * block for each multiprocessor. Blocks exchange values through mailboxes, flag with data, instead
 * of grid barriers (d8_kernel.cuh). Each warp prefetches its next weights, and the keys and values
 * of earlier tokens, by cp.async through a multistage pipeline in shared memory
 * (d8_pipeline.cuh), across phases and layers.
 *
 * Why: between two dependent kernels memory stands still for the time from the last byte of one
 * product to the first of the next, some 4 microseconds, 160 times a token in a model of 7B. The
 * same time passes here, too, in sums, in exchanges and in waiting for the slowest block; but the
 * pipelines hold 168 KiB a multiprocessor, 22 MB in all, as much as memory delivers in 4.8
 * microseconds. README.md has the gain, and where the time goes.
 *
 * Launch: cooperative, as blocks wait for each other; at most a block a multiprocessor and one a
 * row of each matrix, 12 warps each. Supports at most as many teams of queries as blocks, heads of
 * a power of two of 16-byte pieces, groups of 1, 2 or a multiple of 4 queries a key head, rows of a
 * multiple of 16 bytes, compute capability 8.0 and 172 KiB of shared memory or more, which 9.0
 * and 10.0 have; other models and GPUs run d7. Bytes: each weight once, each key and value once (of
 * grouped queries, once for 4 queries). FLOPs: 2 a weight.
 */
#include <cuda_runtime.h>
#include <math.h>
#include <stdlib.h>

#include "solutions/10_llama2_decoder/steps/d8_host.cuh"
#include "solutions/10_llama2_decoder/steps/d8_run.cuh"
#include "solutions/10_llama2_decoder/steps/ladder.h"

/* ---- The kernel ---- */

template <typename E, int GROUP>
static __global__ void __launch_bounds__(ONE_THREADS, 1) one_kernel(struct one_arguments p) {
    if constexpr (ONE_HAS_CP_ASYNC) {
        extern __shared__ __align__(128) unsigned char shared[];
        __shared__ struct static_shared fixed;
        run<plain_weights<E>, GROUP>(shared, &fixed, p, local_residual());
    }
}

/* ---- Which kernel ---- */

typedef void one_function(struct one_arguments);

template <typename E> static one_function *kernel_for_queries(size_t queries) {
    return queries == 1   ? one_kernel<E, 1>
           : queries == 2 ? one_kernel<E, 2>
           : queries == 4 ? one_kernel<E, 4>
                          : NULL;
}

/* Queries that may share a read of their keys; 0 for groups that the kernel does not support. */
static size_t most_queries(const struct decoder_model *m) {
    size_t group = m->NH / m->KVH;
    return group % 4 == 0 ? 4 : group <= 2 ? group : 0;
}

/* Where keys are few a block for each query takes least time, though each reads its keys again: on
 * an H100, 1.1B, 0.770 ms a token with few keys instead of 0.807, 0.876 with 2,000 instead of
 * 0.893. Longer contexts were not measured. */
size_t one_queries_of_team(const struct decoder *d, size_t position) {
    size_t most = most_queries(d->model);
    size_t queries = position < d->one.shared_from[0]   ? 1
                     : position < d->one.shared_from[1] ? 2
                                                        : 4;
    while (queries < most && d->model->NH / queries > d->one.blocks) {
        queries *= 2;
    }
    return queries < most ? queries : most;
}

static one_function *kernel_of(const struct decoder *d, size_t queries) {
    FOR_ELEMENT_TYPE(d->model->dtype, return (kernel_for_queries<E>(queries)));
}

/* Floats of shared memory for a product's input, or for attention's results. */
static size_t input_floats_of(const struct decoder_model *m) {
    size_t K = m->C > m->hidden ? m->C : m->hidden, heads = m->NH * m->HS, group = most_queries(m);
    K = K > heads ? K : heads;
    size_t attention = one_attention_floats(group, m->HS);
    return ((K > attention ? K : attention) + 31) / 32 * 32;
}

/* Sums of slices that a block has at most in a matrix (N, K). */
static size_t slice_sums_of(const struct decoder *d, size_t N, size_t K) {
    size_t row_bytes = K * nn_dtype_bytes(d->model->dtype);
    return ceil_div(N, d->one.blocks) * ceil_div(row_bytes, ONE_STAGE_BYTES);
}

/* The same for all products. Gate and up are multiplied together. */
static size_t most_sums(const struct decoder *d) {
    const struct decoder_model *m = d->model;
    size_t heads = m->NH * m->HS;
    const size_t sums[] = {slice_sums_of(d, heads + 2 * m->KVH * m->HS, m->C),
                           slice_sums_of(d, m->C, heads), 2 * slice_sums_of(d, m->hidden, m->C),
                           slice_sums_of(d, m->C, m->hidden), slice_sums_of(d, m->V, m->C)};
    size_t most = 0;
    for (size_t i = 0; i < sizeof sums / sizeof *sums; i++) {
        most = sums[i] > most ? sums[i] : most;
    }
    return most;
}

/* Whether the kernel supports the sizes of rows and heads. */
static bool sizes_supported(const struct decoder_model *m) {
    size_t count = 16 / nn_dtype_bytes(m->dtype), lanes = m->HS / count;
    bool rows = m->C % count == 0 && m->hidden % count == 0 && m->HS % count == 0;
    bool heads = rows && lanes > 0 && lanes <= 32 && (lanes & (lanes - 1)) == 0;
    size_t most = UINT32_MAX / 8;
    return heads && m->C < most && m->hidden < most && m->V < most && m->T < most &&
           m->NH * m->HS < most;
}

/* One a multiprocessor, but at most one a row of each matrix: a block that publishes nothing could
 * fall behind until the values that it waits for are overwritten. */
static size_t blocks_for(const struct decoder *d) {
    const struct decoder_model *m = d->model;
    size_t blocks = d->multiprocessors;
    blocks = blocks < m->C ? blocks : m->C;
    return blocks < m->hidden ? blocks : m->hidden;
}

/* What a warp holds back: four of seven where a layer is much more than the pipelines hold. On an
 * H100 none is better at 110M, 214 KB a block and layer in fp32, four at 1.1B, 667 KB. */
static size_t held_back_by(const struct decoder *d) {
    enum { LARGE = 2 * ONE_PIPELINE_BYTES };
    const struct decoder_model *m = d->model;
    size_t heads = m->NH * m->HS, rows = heads + 2 * m->KVH * m->HS + 2 * m->hidden;
    size_t weights = rows * m->C + (heads + m->hidden) * m->C;
    return weights * nn_dtype_bytes(m->dtype) / d->one.blocks > LARGE ? 4 : 0;
}

/* ---- Memory ---- */

/* Bytes of a token's keys in a layer. */
static size_t key_bytes(const struct decoder_model *m) {
    return m->KVH * m->HS * nn_dtype_bytes(m->dtype);
}

static enum status upload_layers(struct decoder *d, struct error *error) {
    const struct decoder_model *m = d->model;
    struct one_layer *layers = (struct one_layer *)calloc(m->L + 1, sizeof *layers);
    if (layers == NULL) {
        return error_set(error, STATUS_OUT_OF_MEMORY, "decoder: out of memory");
    }
    for (size_t l = 0; l < m->L; l++) {
        const struct decoder_layer *w = &m->layers[l];
        const char *up = (const char *)w->gate_up + m->hidden * m->C * nn_dtype_bytes(m->dtype);
        const char *keys = (const char *)d->k + l * m->T * key_bytes(m);
        layers[l] = {
            {w->qkv, keys, w->out, w->gate_up, up, w->down}, w->attention_norm, w->ffn_norm};
    }
    enum status status = one_upload_layers(d, layers, error);
    free(layers);
    return status;
}

enum status decoder_one_create(struct decoder *d, struct error *error) {
    const struct decoder_model *m = d->model;
    struct decoder_one *one = &d->one;

    one->blocks = blocks_for(d);
    one->shared_from[0] = 2048, one->shared_from[1] = 8192;
    one->shared_bytes =
        ONE_PIPELINE_BYTES + plan_bytes(m->L) + (input_floats_of(m) + most_sums(d)) * sizeof(float);
    one->supported = sizes_supported(m) && most_queries(m) > 0 && d->major >= 8 &&
                     m->NH / most_queries(m) <= one->blocks &&
                     one->shared_bytes + sizeof(struct static_shared) <= d->shared_bytes;
    if (!one->supported) {
        return STATUS_OK;
    }
    TRY(one_allocate_mailboxes(d, m->NH / most_queries(m), error));
    TRY(upload_layers(d, error));
    for (size_t queries = 1; queries <= most_queries(m); queries *= 2) {
        TRY(one_allow_shared_bytes(d, (const void *)kernel_of(d, queries), error));
    }
    return STATUS_OK;
}

void decoder_one_free(struct decoder *d) {
    const struct decoder_one *one = &d->one;
    device_free(one->layers);
    device_free(one->tag);
    for (size_t i = 0; i < ONE_MAILBOXES; i++) {
        device_free(one->mailboxes[i]);
    }
}

/* ---- A step ---- */

struct one_arguments one_arguments_of(const struct decoder *d, size_t position) {
    struct one_arguments p = one_common_arguments(d, position);
    p.input_floats = (unsigned)input_floats_of(d->model);
    p.held_back = (unsigned)held_back_by(d);
    p.key_bytes = key_bytes(d->model);
    return p;
}

enum status decoder_d8_feed(const struct decoder *d, size_t position, struct error *error) {
    const struct one_arguments p = one_arguments_of(d, position);
    const void *kernel = (const void *)kernel_of(d, one_queries_of_team(d, position));
    return one_launch(d, kernel, ONE_THREADS, &p, error);
}

enum status decoder_d8_step(struct decoder *d, size_t position, struct error *error) {
    if (!d->one.supported) {
        return decoder_d7_step(d, position, error);
    }
    TRY(sample_token(d->io.sampling, d->io.logits, d->model->V, d->io.token, d->draw_workspace,
                     d->stream, error));
    return decoder_d8_feed(d, position, error);
}
