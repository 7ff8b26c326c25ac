/**
 * @file endless_text_v6_one_kernel.cu
 * @brief Step v6: a token of a model with parallel residual is one persistent kernel.
 *
 * Changes since v5: products, attention and norms of all layers are phases of one kernel with a
 * block for each multiprocessor (token_kernel.cuh). Weights, and the keys and values of earlier
 * tokens, stream through a ring of each warp while blocks exchange values (token_pipeline.cuh).
 *
 * Why: between two launches memory stands still, and attention and norms are chains of latencies
 * with few bytes. Here they cost nothing as long as a ring has something left to fetch: 150 KB a
 * multiprocessor, 6 us. Attention waits for nobody: q was published before the first half of the
 * up projection, and its splits are merged before the last quarter.
 *
 * Launch: cooperative. Supports GPT-NeoX with parallel residual in 16 bits, heads of 64, 80 or 128
 * channels of which a quarter is rotated; other models and GPUs run v5. Bytes: each weight, key and
 * value once.
 */
#include <cuda_runtime.h>
#include <stdlib.h>

#include "common/base/checked.h"
#include "solutions/14_endless_text/steps/token_run.cuh"

/* ---- Which kernel ---- */

typedef void token_function(struct token_arguments, struct token_layout);

/* What the host asks of a kernel. */
struct token_choice {
    token_function *kernel; /* NULL: none */
    unsigned stage, keys;
    size_t attention_floats;
};

template <typename E, int HS, int ROUNDS> static struct token_choice choice() {
    return {token_kernel<E, HS, ROUNDS>, token_shape<HS, ROUNDS>::STAGE,
            token_shape<HS, ROUNDS>::KEYS, token_attention_floats<HS, ROUNDS>()};
}

template <typename E> static struct token_choice choice_of(size_t HS) {
    return HS == 128  ? choice<E, 128, 4>()
           : HS == 80 ? choice<E, 80, 5>()
           : HS == 64 ? choice<E, 64, 2>()
                      : (struct token_choice){};
}

struct one_kernel {
    struct token_choice choice;
    struct token_arguments arguments;
    struct token_layout layout;
    void *layers, *k, *v, *mailboxes;
    size_t blocks, bytes;
};

/* Whether the kernel takes the sizes; the choice has the stage. */
static bool model_fits(const struct endless_model *m, const struct token_choice *choice,
                       size_t blocks) {
    bool kind = m->parallel && m->layernorm && !m->gated && m->layout == NN_ROPE_HALVES;
    bool heads = m->KVH == m->NH && m->NH * m->HS == m->C && m->rotary * 4 == m->HS;
    bool rows = m->C * 2 % choice->stage == 0 && m->hidden * 2 % choice->stage == 0;
    size_t most = 3 * m->C > m->hidden ? 3 * m->C : m->hidden;
    return kind && heads && rows && blocks >= m->NH && blocks <= m->C &&
           m->C <= 4 * (size_t)TOKEN_QUADS * TOKEN_THREADS &&
           ceil_div(most, blocks) <= TOKEN_THREADS && m->V < (size_t)1 << 28;
}

static struct token_layout layout_of(const struct endless_model *m,
                                     const struct token_choice *choice, size_t blocks) {
    size_t row = m->C * 2, stage = choice->stage, rows = m->sinks + m->window;
    size_t inputs = m->C + m->hidden, attention = 2 * m->C + choice->attention_floats;
    size_t classifier = m->C + token_most_slices(m->V, row, blocks, stage);
    size_t first = token_most_slices(3 * m->C, row, blocks, stage);
    size_t up = token_most_slices(m->hidden, row, blocks, stage);
    size_t down = token_most_slices(m->C, m->hidden * 2, blocks, stage);
    struct token_layout l;
    inputs = inputs > attention ? inputs : attention;
    inputs = inputs > classifier ? inputs : classifier;
    l.plan = TOKEN_WARPS * TOKEN_STAGES * stage;
    l.input = l.plan + token_plan_bytes(m->L);
    l.sums[0] = l.input + ceil_div(inputs, 4) * 16;
    l.sums[1] = l.sums[0] + (first > up ? first : up) * 4;
    l.near = ceil_div(l.sums[1] + (down > up ? down : up) * 4, 16) * 16;
    l.far = l.near + TOKEN_DISTANCES * m->HS;
    l.bytes = l.far + ceil_div(rows, TOKEN_DISTANCES) * m->HS;
    return l;
}

/* ---- Memory ---- */

static enum status upload_layers(struct one_kernel *one, const struct endless_model *m,
                                 size_t layer_bytes, device_stream stream, struct error *error) {
    struct token_layer *layers = (struct token_layer *)calloc(m->L, sizeof *layers);
    if (layers == NULL) {
        return error_set(error, STATUS_OUT_OF_MEMORY, "out of memory for %zu layers", m->L);
    }
    for (size_t l = 0; l < m->L; l++) {
        const struct endless_layer *w = &m->layers[l];
        layers[l] = {{w->qkv, w->up, (const char *)one->k + l * layer_bytes, w->out, w->down},
                     {w->norms[0], w->norms[1]},
                     {w->norm_biases[0], w->norm_biases[1]},
                     w->qkv_bias,
                     w->up_bias,
                     w->out_bias,
                     w->down_bias};
    }
    enum status status = device_write(one->layers, layers, m->L * sizeof *layers, stream, error);
    free(layers);
    return status;
}

static enum status allocate(struct one_kernel *one, const struct endless_model *m,
                            device_stream stream, struct error *error) {
    struct token_arguments *p = &one->arguments;
    size_t layer = m->NH * p->head_bytes, cache, mailboxes;
    size_t partials = m->NH * p->splits * (m->HS + 2);
    size_t floats = 5 * m->C + m->hidden + partials;
    if (!checked_multiply(m->L, layer, &cache) || !checked_multiply(floats, 4, &mailboxes)) {
        return error_set(error, STATUS_OVERFLOW, "the decoder's sizes overflow: L %zu", m->L);
    }
    TRY(device_alloc(&one->layers, m->L * sizeof(struct token_layer), error));
    TRY(device_alloc(&one->k, cache, error));
    TRY(device_alloc(&one->v, cache, error));
    TRY(device_alloc(&one->mailboxes, mailboxes, error));
    TRY(device_set(one->k, 0, cache, stream, error)); /* what is masked is finite */
    TRY(device_set(one->v, 0, cache, stream, error));
    TRY(device_set(one->mailboxes, 0, mailboxes, stream, error));
    one->bytes = m->L * sizeof(struct token_layer) + 2 * cache + mailboxes;
    unsigned *box = (unsigned *)one->mailboxes;
    p->key_to_value = (const char *)one->v - (const char *)one->k;
    p->layers = (const struct token_layer *)one->layers;
    p->residual.values = box;
    p->qkv.values = box + m->C;
    p->heads.values = box + 4 * m->C;
    p->up.values = box + 5 * m->C;
    p->partial.values = box + 5 * m->C + m->hidden;
    return upload_layers(one, m, layer, stream, error);
}

static void set_arguments(struct one_kernel *one, const struct endless_model *m) {
    struct token_arguments *p = &one->arguments;
    size_t rows = m->sinks + m->window, splits = one->blocks / m->NH;
    splits = splits < TOKEN_MOST_SPLITS ? splits : TOKEN_MOST_SPLITS;
    size_t slices = ceil_div(ceil_div(rows, splits), one->choice.keys);
    p->classifier = m->classifier;
    p->final_norm = m->final_norm, p->final_norm_bias = m->final_norm_bias;
    p->C = (unsigned)m->C, p->hidden = (unsigned)m->hidden, p->L = (unsigned)m->L;
    p->NH = (unsigned)m->NH, p->V = (unsigned)m->V;
    p->sinks = (unsigned)m->sinks, p->window = (unsigned)m->window;
    p->splits = (unsigned)splits;
    p->split_rows = (unsigned)(slices * one->choice.keys);
    p->head_bytes = splits * p->split_rows * m->HS * 2;
    p->eps = m->eps;
    p->activation = m->activation;
}

/* The GPU's multiprocessors, shared memory of a block and compute capability. */
static enum status ask_gpu(int values[4], struct error *error) {
    static const enum cudaDeviceAttr asked[] = {
        cudaDevAttrMultiProcessorCount, cudaDevAttrMaxSharedMemoryPerBlockOptin,
        cudaDevAttrComputeCapabilityMajor, cudaDevAttrCooperativeLaunch};
    int device;
    cudaError_t code = cudaGetDevice(&device);
    for (int i = 0; i < 4 && code == cudaSuccess; i++) {
        code = cudaDeviceGetAttribute(&values[i], asked[i], device);
    }
    return code == cudaSuccess
               ? STATUS_OK
               : error_set(error, STATUS_DEVICE, "asking the GPU: %s", cudaGetErrorString(code));
}

static enum status prepare(struct one_kernel *one, const struct endless_model *m,
                           device_stream stream, struct error *error) {
    set_arguments(one, m);
    TRY(allocate(one, m, stream, error));
    cudaError_t code =
        cudaFuncSetAttribute((const void *)one->choice.kernel,
                             cudaFuncAttributeMaxDynamicSharedMemorySize, (int)one->layout.bytes);
    return code == cudaSuccess
               ? device_synchronize(stream, error)
               : error_set(error, STATUS_DEVICE, "one kernel: %s", cudaGetErrorString(code));
}

static void free_one(void *whole) {
    struct one_kernel *one = (struct one_kernel *)whole;
    if (one != NULL) {
        device_free(one->layers);
        device_free(one->k);
        device_free(one->v);
        device_free(one->mailboxes);
        free(one);
    }
}

static enum status create_one(void **to, const struct endless_model *m, device_stream stream,
                              struct error *error) {
    int gpu[4];
    *to = NULL;
    TRY(ask_gpu(gpu, error));
    size_t blocks = (size_t)gpu[0] < m->C ? (size_t)gpu[0] : m->C;
    struct token_choice choice = {};
    if (m->dtype == NN_BF16) {
        choice = choice_of<__nv_bfloat16>(m->HS);
    } else if (m->dtype == NN_F16) {
        choice = choice_of<__half>(m->HS);
    }
    if (choice.kernel == NULL || gpu[2] < 8 || gpu[3] == 0 || !model_fits(m, &choice, blocks)) {
        return STATUS_OK;
    }
    struct token_layout layout = layout_of(m, &choice, blocks);
    if (layout.bytes > (size_t)gpu[1]) {
        return STATUS_OK;
    }
    struct one_kernel *one = (struct one_kernel *)calloc(1, sizeof *one);
    if (one == NULL) {
        return error_set(error, STATUS_OUT_OF_MEMORY, "out of memory for the decoder");
    }
    one->choice = choice, one->layout = layout, one->blocks = blocks;
    enum status status = prepare(one, m, stream, error);
    if (status != STATUS_OK) {
        free_one(one);
        return status;
    }
    *to = one;
    return STATUS_OK;
}

static size_t bytes_of_one(const void *whole) {
    return ((const struct one_kernel *)whole)->bytes;
}

static enum status run_one(void *whole, const struct endless_token *token, device_stream stream,
                           struct error *error) {
    struct one_kernel *one = (struct one_kernel *)whole;
    struct token_arguments p = one->arguments;
    p.position = token->position, p.angles = token->angles, p.x = token->x;
    p.logits = token->logits;
    void *arguments[] = {&p, &one->layout};
    cudaLaunchAttribute cooperative = {};
    cooperative.id = cudaLaunchAttributeCooperative;
    cooperative.val.cooperative = 1;
    cudaLaunchConfig_t config = {};
    config.gridDim = dim3((unsigned)one->blocks);
    config.blockDim = dim3(TOKEN_THREADS);
    config.dynamicSmemBytes = one->layout.bytes;
    config.stream = stream;
    config.attrs = &cooperative;
    config.numAttrs = 1;
    (void)cudaLaunchKernelExC(&config, (const void *)one->choice.kernel, arguments);
    TRY(device_launched("one kernel", error));
    one->arguments.launch++;
    return STATUS_OK;
}

const struct endless_whole endless_whole_v6_one_kernel = {create_one, run_one, bytes_of_one,
                                                          free_one};
