/**
 * @file given_engine.c
 * @brief The table of training's operators on the GPU: given kernels, products of earlier labs, and
 *        the three functions of lab 11.
 *
 * All work goes to one stream, in the order of the calls. Scratch memory is the engine's own; it
 * grows when a call needs more than there is, which the first step of a size does, and later ones
 * do not.
 */
#include <cuda_runtime_api.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/checked.h"
#include "common/device/fail.h"
#include "labs/07_attention/given/attention_lse.h"
#include "labs/11_training/given/internal.h"

/* ---- Scratch memory ---- */

size_t scratch_add(struct scratch_layout *layout, size_t bytes) {
    layout->bytes[layout->count] = ceil_div(bytes, 256) * 256;
    return layout->count++;
}

void *scratch_at(const struct training *t, const struct scratch_layout *layout, size_t buffer) {
    char *at = t->scratch;
    for (size_t i = 0; i < buffer; i++) {
        at += layout->bytes[i];
    }
    return at;
}

/* What is larger than before comes with an eighth more: lengths of batches differ a little. */
enum status scratch_need(struct training *t, size_t bytes) {
    if (bytes <= t->scratch_bytes) {
        return STATUS_OK;
    }
    if (t->replay.recording) { /* at_once.c makes room, and calls again */
        t->replay.wanted = bytes > t->replay.wanted ? bytes : t->replay.wanted;
        return STATUS_OUT_OF_MEMORY;
    }
    TRY(device_synchronize(t->stream, &t->failed));
    device_free(t->scratch);
    t->scratch = NULL;
    t->scratch_bytes = 0;
    size_t more = bytes < SIZE_MAX / 2 ? ceil_div(bytes + bytes / 8, 256) * 256 : bytes;
    TRY(device_alloc(&t->scratch, more, &t->failed));
    t->scratch_bytes = more;
    return STATUS_OK;
}

enum status scratch_reserve(struct training *t, const struct scratch_layout *layout) {
    size_t bytes = 0;
    for (size_t i = 0; i < layout->count; i++) {
        bytes += layout->bytes[i];
    }
    return scratch_need(t, bytes);
}

/* ---- Memory ---- */

static enum status engine_alloc(void *context, size_t bytes, void **memory, struct error *error) {
    struct training *t = context;
    TRY(device_alloc(memory, bytes, error));
    enum status status = device_set(*memory, 0, bytes, t->stream, error);
    if (status != STATUS_OK) {
        device_free(*memory);
        *memory = NULL;
    }
    return status;
}

static void engine_release(void *context, void *memory) {
    (void)context;
    device_free(memory);
}

/* Waits for the copy that used a slot before, SLOTS writes ago. */
static enum status take_slot(struct training *t, struct slot **slot) {
    *slot = &t->slots[t->next_slot];
    t->next_slot = (t->next_slot + 1) % SLOTS;
    cudaError_t code = (*slot)->used ? cudaEventSynchronize((*slot)->copied) : cudaSuccess;
    return code == cudaSuccess ? STATUS_OK
                               : device_fail(&t->failed, code, "waiting for a copy to the GPU");
}

static enum status engine_write(void *context, void *resident, const void *host, size_t bytes) {
    struct training *t = context;
    if (bytes > SLOT_BYTES) {
        return device_write(resident, host, bytes, t->stream, &t->failed);
    }
    if (bytes == 0) {
        return STATUS_OK;
    }
    struct slot *slot = NULL;
    TRY(take_slot(t, &slot));
    memcpy(slot->memory, host, bytes);
    cudaError_t code =
        cudaMemcpyAsync(resident, slot->memory, bytes, cudaMemcpyHostToDevice, t->stream);
    if (code != cudaSuccess) {
        return device_fail(&t->failed, code, "copying %zu bytes to the GPU", bytes);
    }
    slot->used = true;
    return device_event_record(slot->copied, t->stream, &t->failed);
}

static enum status engine_read(void *context, void *host, const void *resident, size_t bytes) {
    struct training *t = context;
    return device_read(host, resident, bytes, t->stream, &t->failed);
}

static enum status engine_zero(void *context, void *resident, size_t bytes) {
    struct training *t = context;
    return device_set(resident, 0, bytes, t->stream, &t->failed);
}

static enum status engine_convert(void *context, void *copy, const void *weights, size_t count) {
    const struct given_call call = training_call(context);
    return given_convert(&call, copy, weights, count);
}

/* Also says what an operator reported that returned its status alone. */
static enum status engine_synchronize(void *context, struct error *error) {
    struct training *t = context;
    enum status status = device_synchronize(t->stream, error);
    if (t->failed.status != STATUS_OK) {
        status = t->failed.status;
        if (error != NULL) {
            *error = t->failed;
        }
        t->failed = (struct error){0};
    }
    return status;
}

/* ---- Elementwise ---- */

static enum status check_activation(struct training *t, enum nn_activation f) {
    return f == NN_GELU || f == NN_TANH
               ? STATUS_OK
               : error_set(&t->failed, STATUS_INVALID_ARGUMENT,
                           "activation: f = %d is neither GELU nor tanh", (int)f);
}

static enum status engine_activation(void *context, void *out, const void *in, size_t count,
                                     enum nn_activation f) {
    const struct given_call call = training_call(context);
    TRY(check_activation(context, f));
    return given_activation(&call, out, in, count, f);
}

static enum status engine_activation_backward(void *context, void *din, const void *dout,
                                              const void *in, size_t count, enum nn_activation f) {
    const struct given_call call = training_call(context);
    TRY(check_activation(context, f));
    return given_activation_backward(&call, din, dout, in, count, f);
}

/* Scratch memory for the sums of columns of parts of a matrix. */
static enum status reserve_partials(struct training *t, size_t rows, size_t C) {
    return scratch_need(t, given_column_partials(rows) * C * sizeof(float));
}

static enum status engine_activation_bias_backward(void *context, void *din, void *dbias,
                                                   const void *dout, const void *in, size_t rows,
                                                   size_t C, enum nn_activation f) {
    struct training *t = context;
    const struct given_call call = training_call(t);
    TRY(check_activation(t, f));
    TRY(reserve_partials(t, rows, C));
    return given_activation_bias_backward(&call, din, dbias, dout, in, rows, C, f, t->scratch);
}

static enum status engine_dropout_bias_backward(void *context, void *din, void *dbias,
                                                const void *dout, size_t rows, size_t C,
                                                const struct train_dropout *dropout) {
    struct training *t = context;
    const struct given_call call = training_call(t);
    TRY(reserve_partials(t, rows, C));
    return given_dropout_bias_backward(&call, din, dbias, dout, rows, C, dropout, t->scratch);
}

static enum status engine_silu_gate(void *context, void *out, const void *gate_up, size_t rows,
                                    size_t hidden) {
    const struct given_call call = training_call(context);
    return given_silu_gate(&call, out, gate_up, rows, hidden);
}

static enum status engine_silu_gate_backward(void *context, void *dgate_up, const void *dout,
                                             const void *gate_up, size_t rows, size_t hidden) {
    const struct given_call call = training_call(context);
    return given_silu_gate_backward(&call, dgate_up, dout, gate_up, rows, hidden);
}

static enum status engine_dropout(void *context, void *out, const void *add, const void *in,
                                  size_t count, const struct train_dropout *dropout) {
    const struct given_call call = training_call(context);
    return given_dropout(&call, out, add, in, count, dropout);
}

/* ---- Norms ---- */

static enum status engine_layernorm(void *context, void *out, void *stats, void *sum,
                                    const void *add, const void *in,
                                    const struct train_dropout *dropout,
                                    const struct train_norm *norm, size_t rows, size_t C) {
    const struct given_call call = training_call(context);
    return given_layernorm(&call, out, stats, sum, add, in, dropout, norm, rows, C);
}

static enum status engine_layernorm_backward(void *context, void *din,
                                             const struct train_norm_gradient *gradient,
                                             const void *dout, const void *in, const void *stats,
                                             const struct train_norm *norm, size_t rows, size_t C) {
    struct training *t = context;
    if (t->functions.layernorm_backward == NULL) {
        return error_set(&t->failed, STATUS_UNSUPPORTED, "no layernorm_backward() was given");
    }
    const struct layernorm_backward_problem problem = {.dtype = t->type,
                                                       .rows = rows,
                                                       .C = C,
                                                       .dout = dout,
                                                       .in = in,
                                                       .stats = stats,
                                                       .weight = norm->weight,
                                                       .din = din,
                                                       .dweight = gradient->weight,
                                                       .dbias = gradient->bias};
    return t->functions.layernorm_backward(&problem, t->norms, t->stream, &t->failed);
}

static enum status engine_rmsnorm(void *context, void *out, void *stats, const void *in,
                                  const struct train_norm *norm, size_t rows, size_t C) {
    const struct given_call call = training_call(context);
    return given_rmsnorm(&call, out, stats, in, norm, rows, C);
}

static enum status engine_rmsnorm_backward(void *context, void *din, const void *add,
                                           const struct train_norm_gradient *gradient,
                                           const void *dout, const void *in, const void *stats,
                                           const struct train_norm *norm, size_t rows, size_t C) {
    struct training *t = context;
    const struct given_call call = training_call(t);
    const struct given_rmsnorm_gradient g = {.din = din,
                                             .add = add,
                                             .dweight = gradient->weight,
                                             .dout = dout,
                                             .in = in,
                                             .stats = stats,
                                             .weight = norm->weight,
                                             .rows = rows,
                                             .C = C};
    TRY(scratch_need(t, given_rmsnorm_backward_bytes(rows, C)));
    return given_rmsnorm_backward(&call, &g, t->scratch);
}

/* ---- Attention ---- */

static enum status engine_attention(void *context, void *out, void *lse,
                                    const struct train_attention *a) {
    struct training *t = context;
    const struct attention_problem problem = {.dtype = t->type,
                                              .q = a->q,
                                              .k = a->k,
                                              .v = a->v,
                                              .out = out,
                                              .starts = a->starts,
                                              .host_starts = a->host_starts,
                                              .B = a->B,
                                              .T = a->longest,
                                              .S = a->longest,
                                              .NH = a->NH,
                                              .KVH = a->KVH,
                                              .HS = a->HS,
                                              .q_stride = a->q_stride,
                                              .kv_stride = a->kv_stride,
                                              .out_stride = a->NH * a->HS,
                                              .causal = a->causal,
                                              .scale = a->scale};
    return attention_lse(&problem, lse, t->stream, &t->failed);
}

static struct attention_backward_problem
attention_problem_of(const struct training *t, const struct train_attention_gradient *gradient,
                     const void *dout, const void *out, const void *lse,
                     const struct train_attention *a) {
    return (struct attention_backward_problem){.dtype = t->type,
                                               .q = a->q,
                                               .k = a->k,
                                               .v = a->v,
                                               .out = out,
                                               .dout = dout,
                                               .lse = lse,
                                               .dq = gradient->dq,
                                               .dk = gradient->dk,
                                               .dv = gradient->dv,
                                               .starts = a->starts,
                                               .host_starts = a->host_starts,
                                               .B = a->B,
                                               .rows = a->rows,
                                               .longest = a->longest,
                                               .NH = a->NH,
                                               .KVH = a->KVH,
                                               .HS = a->HS,
                                               .q_stride = a->q_stride,
                                               .kv_stride = a->kv_stride,
                                               .causal = a->causal,
                                               .scale = a->scale};
}

static enum status engine_attention_backward(void *context,
                                             const struct train_attention_gradient *gradient,
                                             const void *dout, const void *out, const void *lse,
                                             const struct train_attention *attention) {
    struct training *t = context;
    if (t->functions.attention_backward == NULL) {
        return error_set(&t->failed, STATUS_UNSUPPORTED, "no attention_backward() was given");
    }
    const struct attention_backward_problem problem =
        attention_problem_of(t, gradient, dout, out, lse, attention);
    TRY(scratch_need(t, attention_backward_scratch(&problem)));
    return t->functions.attention_backward(&problem, t->scratch, t->stream, &t->failed);
}

static enum status engine_rope(void *context, void *x, const int32_t *positions, size_t rows,
                               size_t heads, size_t HS, size_t stride, float theta,
                               enum nn_rope_layout layout, bool back) {
    const struct given_call call = training_call(context);
    const struct given_rope rope = {x, positions, rows, heads, HS, stride, theta, layout, back};
    return given_rope(&call, &rope);
}

/* ---- Tables, rows, loss ---- */

static enum status engine_embedding(void *context, void *out, const void *table, const int32_t *ids,
                                    size_t rows, size_t C, bool accumulate) {
    const struct given_call call = training_call(context);
    return given_embedding(&call, out, table, ids, rows, C, accumulate);
}

static enum status engine_embedding_backward(void *context, void *dtable, const void *dout,
                                             const struct train_occurrences *occurrences,
                                             size_t C) {
    struct training *t = context;
    const struct given_call call = training_call(t);
    TRY(scratch_need(t, occurrences->piece_count * C * sizeof(float)));
    return given_embedding_backward(&call, dtable, dout, occurrences, C, t->scratch);
}

static enum status engine_gather(void *context, void *out, const void *in, const int32_t *index,
                                 size_t count, size_t C) {
    const struct given_call call = training_call(context);
    return given_gather(&call, out, in, index, count, C);
}

static enum status engine_scatter(void *context, void *out, const void *in, const int32_t *index,
                                  size_t count, size_t C) {
    const struct given_call call = training_call(context);
    return given_scatter(&call, out, in, index, count, C);
}

static enum status engine_cross_entropy(void *context, void *logits, void *loss,
                                        const int32_t *labels, float scale, size_t M, size_t V) {
    struct training *t = context;
    const struct given_call call = training_call(t);
    TRY(scratch_need(t, M * sizeof(float)));
    return given_cross_entropy(&call, logits, loss, labels, scale, M, V, t->scratch);
}

/* ---- Optimiser ---- */

static enum status engine_clip(void *context, void *scale, void *norm, const void *gradient,
                               size_t count, float most) {
    struct training *t = context;
    const struct given_call call = training_call(t);
    TRY(scratch_need(t, GIVEN_CLIP_PARTIALS * sizeof(float)));
    return given_clip(&call, scale, norm, gradient, count, most, t->scratch);
}

static enum status engine_adamw(void *context, const struct train_adamw *a) {
    struct training *t = context;
    if (t->functions.adamw == NULL) {
        return error_set(&t->failed, STATUS_UNSUPPORTED, "no adamw() was given");
    }
    const struct adamw_problem problem = {.weights = a->weights,
                                          .copy = a->copy,
                                          .gradient = a->gradient,
                                          .m = a->m,
                                          .v = a->v,
                                          .count = a->count,
                                          .decayed = a->decayed,
                                          .scale = a->scale,
                                          .rate = a->rate,
                                          .beta1 = a->beta1,
                                          .beta2 = a->beta2,
                                          .eps = a->eps,
                                          .decay = a->decay,
                                          .step = a->step};
    return t->functions.adamw(&problem, t->stream, &t->failed);
}

/* ---- Making ---- */

static void engine_destroy(void *context) {
    struct training *t = context;
    if (t == NULL) {
        return;
    }
    enum status waited = t->stream != NULL ? device_synchronize(t->stream, NULL) : STATUS_OK;
    (void)waited; /* freeing is all that can be done either way */
    training_replay_free(t);
    for (size_t i = 0; i < SLOTS; i++) {
        device_event_destroy(t->slots[i].copied);
        device_free_host(t->slots[i].memory);
    }
    device_free(t->products);
    device_free(t->norms);
    device_free(t->scratch);
    device_stream_destroy(t->stream);
    free(t);
}

static enum status check_gpu(enum nn_dtype type, struct error *error) {
    struct device_properties gpu;
    if (type != NN_F32 && type != NN_BF16) {
        return error_set(error, STATUS_INVALID_ARGUMENT,
                         "training: type %d is neither fp32 nor bf16", (int)type);
    }
    TRY(device_open(error));
    TRY(device_properties(&gpu, error));
    if (type == NN_BF16 && gpu.code < 80) {
        return error_set(error, STATUS_UNSUPPORTED,
                         "training in bf16 needs code for compute capability 8.0 or more, %s runs "
                         "code for %d.%d; fp32 runs on it",
                         gpu.record_name, gpu.code / 10, gpu.code % 10);
    }
    return STATUS_OK;
}

static enum status fill(struct training *t, struct error *error) {
    TRY(device_stream_create(&t->stream, error));
    TRY(device_alloc(&t->products, PRODUCT_BYTES, error));
    TRY(device_set(t->products, 0, FUSED_ZERO_BYTES, t->stream, error));
    TRY(device_alloc(&t->norms, TRAINING_WORKSPACE_BYTES, error));
    for (size_t i = 0; i < SLOTS; i++) {
        TRY(device_alloc_host(&t->slots[i].memory, SLOT_BYTES, error));
        TRY(device_event_create(&t->slots[i].copied, error));
    }
    return STATUS_OK;
}

static struct train_engine table_of(struct training *t) {
    return (struct train_engine){
        .name = t->type == NN_F32 ? "gpu fp32" : "gpu bf16",
        .context = t,
        .activations = t->type == NN_F32 ? TRAIN_F32 : TRAIN_BF16,
        .weights = TRAIN_F32,
        .destroy = engine_destroy,
        .alloc = engine_alloc,
        .release = engine_release,
        .write = engine_write,
        .read = engine_read,
        .zero = engine_zero,
        .convert = engine_convert,
        .synchronize = engine_synchronize,
        .at_once = training_at_once,
        .linear = training_linear,
        .linear_backward = training_linear_backward,
        .activation = engine_activation,
        .activation_backward = engine_activation_backward,
        .activation_bias_backward = engine_activation_bias_backward,
        .dropout_bias_backward = engine_dropout_bias_backward,
        .silu_gate = engine_silu_gate,
        .silu_gate_backward = engine_silu_gate_backward,
        .dropout = engine_dropout,
        .layernorm = engine_layernorm,
        .layernorm_backward = engine_layernorm_backward,
        .rmsnorm = engine_rmsnorm,
        .rmsnorm_backward = engine_rmsnorm_backward,
        .attention = engine_attention,
        .attention_backward = engine_attention_backward,
        .rope = engine_rope,
        .embedding = engine_embedding,
        .embedding_backward = engine_embedding_backward,
        .gather = engine_gather,
        .scatter = engine_scatter,
        .cross_entropy = engine_cross_entropy,
        .clip = engine_clip,
        .adamw = engine_adamw,
    };
}

enum status training_engine_create_with(struct train_engine *engine, enum nn_dtype dtype,
                                        const struct training_functions *functions,
                                        struct error *error) {
    *engine = (struct train_engine){0};
    TRY(check_gpu(dtype, error));
    struct training *t = calloc(1, sizeof *t);
    if (t == NULL) {
        return error_set(error, STATUS_OUT_OF_MEMORY, "out of memory for the engine");
    }
    t->type = dtype;
    t->functions = *functions;
    enum status status = fill(t, error);
    if (status != STATUS_OK) {
        engine_destroy(t);
        return status;
    }
    *engine = table_of(t);
    return STATUS_OK;
}

device_stream training_engine_stream(const struct train_engine *engine) {
    const struct training *t = engine->context;
    return t->stream;
}

size_t training_engine_launched_at_once(const struct train_engine *engine) {
    const struct training *t = engine->context;
    return t->replay.launched;
}
