#include "solutions/13_low_bit/rows/step_decoder.h"

#include <cuda_runtime.h>
#include <math.h>
#include <stdlib.h>

#include "common/base/checked.h"
#include "common/cuda/dependent_launch.cuh"
#include "solutions/13_low_bit/rows/step_arguments.cuh"
#include "solutions/13_low_bit/rows/step_kernels.h"

enum { STEP_MEMORIES = 8 };

struct step_decoder {
    struct step_arguments p;
    struct step_kernel_choice kernel;
    unsigned blocks;
    device_stream stream;
    void *memories[STEP_MEMORIES];
};

/* ---- How a matrix is shared ---- */

static struct step_product product_of(const struct rows_decoder *d, enum low_bit_product which) {
    const struct decoder_model *m = &d->model.sizes;
    const size_t heads = m->NH * m->HS;
    const size_t N[] = {heads + 2 * m->KVH * m->HS, m->C, m->hidden, m->C, m->V};
    const size_t K[] = {m->C, heads, m->C, m->hidden, m->C};
    const struct low_bit_stream s = low_bit_model_stream(&d->model, which);
    unsigned chunks = (unsigned)ceil_div(K[which], STEP_CHUNK);
    unsigned group_bits = 0;
    while (chunks << (group_bits + 1) <= STEP_WARPS) {
        group_bits++;
    }
    return {(unsigned)N[which], (unsigned)K[which], (unsigned)s.tiles, (unsigned)s.slices, chunks,
            group_bits};
}

/* The fewest blocks of which none has more of `items` than of `most` blocks. */
static size_t enough_blocks(size_t items, size_t most) {
    return ceil_div(items, ceil_div(items, most));
}

/* As in low_bit_decoder.cu: a block has a tile of qkv and of gate and up, and blocks that take no
 * work off the others would only poll. */
static unsigned blocks_for(const struct rows_decoder *d, const struct step_arguments *p) {
    size_t blocks = d->multiprocessors;
    size_t qkv = p->products[LOW_BIT_QKV].tiles, gated = p->products[LOW_BIT_GATE_UP].tiles;
    blocks = blocks < qkv ? blocks : qkv;
    blocks = blocks < gated ? blocks : gated;
    size_t least = enough_blocks(ceil_div(d->rows * p->NH, STEP_TEAMS), blocks);
    for (const struct step_product &m : p->products) {
        size_t enough = enough_blocks(m.tiles, blocks);
        least = enough > least ? enough : least;
    }
    return (unsigned)least;
}

static struct step_kernel_choice kernel_of(const struct rows_decoder *d, struct step_arguments *p,
                                           size_t blocks) {
    return d->model.type == LOW_BIT_INT8 ? step_kernel_int8(p, blocks)
           : d->model.group == 32        ? step_kernel_int4_32(d->model.scale_dtype, p, blocks)
                                         : step_kernel_int4_128(d->model.scale_dtype, p, blocks);
}

/* ---- Memory ---- */

static enum status allocate_zeros(struct step_decoder *s, size_t which, size_t bytes,
                                  struct error *error) {
    TRY(device_alloc(&s->memories[which], bytes, error));
    return device_set(s->memories[which], 0, bytes, s->stream, error);
}

/* (T, HS / 2), on the device. */
static enum status put_angles(struct step_decoder *s, const struct decoder_model *m,
                              struct error *error) {
    const double pi = 3.14159265358979323846;
    size_t half = m->HS / 2, bytes = m->T * half * sizeof(float2);
    float2 *host = (float2 *)malloc(bytes);
    if (host == NULL) {
        return error_set(error, STATUS_OUT_OF_MEMORY, "rows: out of memory");
    }
    for (size_t i = 0; i < m->T * half; i++) {
        double frequency = pow((double)m->theta, -2.0 * (double)(i % half) / (double)m->HS);
        double angle = fmod((double)(i / half) * frequency, 2.0 * pi);
        host[i] = {(float)cos(angle), (float)sin(angle)};
    }
    enum status status = device_alloc(&s->memories[0], bytes, error);
    if (status == STATUS_OK) {
        status = device_write(s->memories[0], host, bytes, s->stream, error);
    }
    free(host);
    return status;
}

static enum status put_layers(struct step_decoder *s, const struct decoder_model *m,
                              struct error *error) {
    struct step_layer *host = (struct step_layer *)calloc(m->L + 1, sizeof *host);
    if (host == NULL) {
        return error_set(error, STATUS_OUT_OF_MEMORY, "rows: out of memory");
    }
    for (size_t l = 0; l < m->L; l++) {
        const struct decoder_layer *w = &m->layers[l];
        const void *const streams[] = {w->qkv, w->out, w->gate_up, w->down};
        for (size_t i = 0; i < STEP_LAYER_KINDS; i++) {
            host[l].streams[i] = (const unsigned char *)streams[i];
        }
        host[l].attention_norm = w->attention_norm;
        host[l].ffn_norm = w->ffn_norm;
    }
    host[m->L].streams[0] = (const unsigned char *)m->classifier;
    enum status status = device_alloc(&s->memories[1], (m->L + 1) * sizeof *host, error);
    if (status == STATUS_OK) {
        status = device_write(s->memories[1], host, (m->L + 1) * sizeof *host, s->stream, error);
    }
    free(host);
    return status;
}

/* A mailbox of inputs of K channels, in fp16. */
static size_t input_bytes(size_t K) {
    return ceil_div(K, STEP_CHUNK) * STEP_CHUNK * ROWS_MOST * 2;
}

static enum status allocate(struct step_decoder *s, const struct rows_decoder *d,
                            struct error *error) {
    const struct decoder_model *m = &d->model.sizes;
    struct step_arguments *p = &s->p;
    TRY(put_angles(s, m, error));
    TRY(put_layers(s, m, error));
    TRY(allocate_zeros(s, 2, d->rows * p->products[LOW_BIT_QKV].N * sizeof(float), error));
    TRY(allocate_zeros(s, 3, input_bytes(m->C), error));
    TRY(allocate_zeros(s, 4, input_bytes(m->NH * m->HS), error));
    TRY(allocate_zeros(s, 5, input_bytes(m->hidden), error));
    TRY(allocate_zeros(s, 6, sizeof(unsigned), error));
    size_t tiles = ceil_div(m->C, STEP_CHUNK) * STEP_CHUNK_TILES; /* of the residual stream */
    TRY(allocate_zeros(s, 7, tiles * ROWS_MOST * sizeof(float), error));
    p->angles = (const float2 *)s->memories[0];
    p->layers = (const struct step_layer *)s->memories[1];
    p->qkv.values = (unsigned *)s->memories[2];
    p->x.values = (unsigned *)s->memories[3];
    p->heads.values = (unsigned *)s->memories[4];
    p->hidden.values = (unsigned *)s->memories[5];
    p->steps = (unsigned *)s->memories[6];
    p->squares.values = (unsigned *)s->memories[7];
    return STATUS_OK;
}

static void fill_arguments(struct step_arguments *p, const struct rows_decoder *d) {
    const struct decoder_model *m = &d->model.sizes;
    for (int i = 0; i < LOW_BIT_PRODUCTS; i++) {
        p->products[i] = product_of(d, (enum low_bit_product)i);
    }
    p->final_norm = m->final_norm;
    p->embedding = (const __nv_bfloat16 *)m->embedding;
    p->C = (unsigned)m->C, p->L = (unsigned)m->L, p->NH = (unsigned)m->NH;
    p->KVH = (unsigned)m->KVH, p->HS = (unsigned)m->HS, p->T = (unsigned)m->T;
    p->rows = (unsigned)d->rows;
    p->eps = m->eps, p->per_C = 1.0f / (float)m->C;
    p->rope_halves = m->layout == NN_ROPE_HALVES;
    p->tokens = d->io.tokens, p->positions = d->io.positions;
    p->cache = d->cache;
    p->logits = d->io.logits;
}

/* Whether all blocks are resident at once, one a multiprocessor. */
static bool is_supported(const struct step_decoder *s, const struct device_properties *gpu) {
    int blocks = 0;
    if (gpu->code < 90 || s->kernel.shared_bytes > gpu->shared_bytes) {
        return false;
    }
    cudaError_t code =
        cudaFuncSetAttribute(s->kernel.function, cudaFuncAttributeMaxDynamicSharedMemorySize,
                             (int)s->kernel.shared_bytes);
    if (code == cudaSuccess) {
        code = cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, s->kernel.function,
                                                             STEP_THREADS, s->kernel.shared_bytes);
    }
    return code == cudaSuccess && blocks > 0;
}

enum status step_decoder_create(struct step_decoder **out, const struct rows_decoder *d,
                                struct error *error) {
    struct device_properties gpu;
    *out = NULL;
    TRY(device_properties(&gpu, error));
    struct step_decoder *s = (struct step_decoder *)calloc(1, sizeof *s);
    if (s == NULL) {
        return error_set(error, STATUS_OUT_OF_MEMORY, "rows: out of memory");
    }
    s->stream = d->stream;
    fill_arguments(&s->p, d);
    s->blocks = blocks_for(d, &s->p);
    s->p.residual_tiles = (unsigned)ceil_div(s->p.products[LOW_BIT_OUT].tiles, s->blocks);
    s->kernel = kernel_of(d, &s->p, s->blocks);
    enum status status = STATUS_OK;
    if (!is_supported(s, &gpu)) {
        free(s);
        return STATUS_OK;
    }
    status = allocate(s, d, error);
    if (status != STATUS_OK) {
        step_decoder_free(s);
        return status;
    }
    *out = s;
    return STATUS_OK;
}

void step_decoder_free(struct step_decoder *s) {
    if (s == NULL) {
        return;
    }
    for (size_t i = 0; i < STEP_MEMORIES; i++) {
        device_free(s->memories[i]);
    }
    free(s);
}

enum status step_decoder_feed(const struct step_decoder *s, struct error *error) {
    void *arguments[] = {(void *)&s->p};
    cudaLaunchAttribute attributes[2] = {};
    attributes[0].id = cudaLaunchAttributeCooperative;
    attributes[0].val.cooperative = 1;
    attributes[1].id = cudaLaunchAttributeProgrammaticStreamSerialization;
    attributes[1].val.programmaticStreamSerializationAllowed = 1;
    cudaLaunchConfig_t config = {};
    config.gridDim = dim3(s->blocks);
    config.blockDim = dim3(STEP_THREADS);
    config.dynamicSmemBytes = s->kernel.shared_bytes;
    config.stream = (cudaStream_t)s->stream;
    config.attrs = attributes;
    config.numAttrs = dependent_code_waits(s->kernel.function) ? 2 : 1;
    (void)cudaLaunchKernelExC(&config, s->kernel.function, arguments);
    return device_launched("rows", error);
}
