#include "common/models/profile.h"

#include <string.h>

#include "common/bench/bench.h"
#include "common/models/engine_layer.h"

const char *profile_operator_name(enum profile_operator op) {
    static const char *const names[PROFILE_COUNT] = {
        "matmul",
        "bias_add",
        "activation",
        "silu_gate",
        "residual",
        "layernorm",
        "rmsnorm",
        "softmax",
        "rope",
        "attention",
        "embedding",
        "linear",
        "linear_activation",
        "linear_residual_layernorm",
        "residual_layernorm",
        "attention_packed",
        "encoder",
        "decoder",
        "copy",
    };
    return op < PROFILE_COUNT ? names[op] : "unknown";
}

static double now(const struct profile *profile) {
    return profile->now != NULL ? profile->now() : bench_now();
}

/* Adds the time since start to the operator's; waits for the engine first, so that all of the
   operator's work is counted. */
static enum status add_time(void *context, enum profile_operator op, double start,
                            enum status called) {
    const struct engine *inner = engine_layer_base(context);
    struct profile *profile = engine_layer_own(context);
    enum status status = called != STATUS_OK ? called : inner->synchronize(inner->context);
    double end = now(profile);
    profile->entries[op].calls++;
    profile->entries[op].seconds += end - start;
    if (profile->observe != NULL) {
        profile->observe(profile->observer, op, start, end);
    }
    return status;
}

/* One call of an operator. */
struct call {
    double start;
    enum status status;
};

static void open_call(void *context, enum profile_operator op, const char *entry,
                      struct call *call) {
    struct profile *profile = engine_layer_own(context);
    call->start = now(profile);
    if (profile->recorder.begin != NULL) {
        profile->recorder.begin(profile->recorder.context, op, entry);
    }
}

/* @return whether the entry must be called again */
static bool close_call(void *context, enum profile_operator op, struct call *call) {
    const struct profile_recorder *recorder =
        &((struct profile *)engine_layer_own(context))->recorder;
    return recorder->end != NULL && recorder->end(recorder->context, op, &call->status);
}

/* Calls an entry of the inner engine with the arguments and adds its time to the profile. */
#define PROFILED(op, entry, ...)                                 \
    const struct engine *inner = engine_layer_base(context);     \
    struct call call;                                            \
    do {                                                         \
        open_call(context, op, #entry, &call);                   \
        call.status = inner->entry(inner->context, __VA_ARGS__); \
    } while (close_call(context, op, &call));                    \
    return add_time(context, op, call.start, call.status)

static enum status profile_write(void *context, void *resident, const void *host, size_t bytes) {
    PROFILED(PROFILE_COPY, write, resident, host, bytes);
}

static enum status profile_read(void *context, void *host, const void *resident, size_t bytes) {
    PROFILED(PROFILE_COPY, read, host, resident, bytes);
}

static enum status profile_matmul(void *context, float *out, const float *in, const float *weight,
                                  size_t M, size_t N, size_t K) {
    PROFILED(PROFILE_MATMUL, matmul, out, in, weight, M, N, K);
}

static enum status profile_bias_add(void *context, float *x, const float *bias, size_t rows,
                                    size_t C) {
    PROFILED(PROFILE_BIAS_ADD, bias_add, x, bias, rows, C);
}

static enum status profile_activation(void *context, float *out, const float *in, size_t count,
                                      enum nn_activation f) {
    PROFILED(PROFILE_ACTIVATION, activation, out, in, count, f);
}

static enum status profile_silu_gate(void *context, float *out, const float *gate, const float *up,
                                     size_t count) {
    PROFILED(PROFILE_SILU_GATE, silu_gate, out, gate, up, count);
}

static enum status profile_residual(void *context, float *out, const float *a, const float *b,
                                    size_t count) {
    PROFILED(PROFILE_RESIDUAL, residual, out, a, b, count);
}

static enum status profile_layernorm(void *context, float *out, const float *in,
                                     const float *weight, const float *bias, size_t rows, size_t C,
                                     float eps) {
    PROFILED(PROFILE_LAYERNORM, layernorm, out, in, weight, bias, rows, C, eps);
}

static enum status profile_rmsnorm(void *context, float *out, const float *in, const float *weight,
                                   size_t rows, size_t C, float eps) {
    PROFILED(PROFILE_RMSNORM, rmsnorm, out, in, weight, rows, C, eps);
}

static enum status profile_softmax(void *context, float *out, const float *in, size_t rows,
                                   size_t C) {
    PROFILED(PROFILE_SOFTMAX, softmax, out, in, rows, C);
}

static enum status profile_rope(void *context, float *x, size_t T, size_t heads, size_t HS,
                                size_t stride, size_t position, float theta,
                                enum nn_rope_layout layout) {
    PROFILED(PROFILE_ROPE, rope, x, T, heads, HS, stride, position, theta, layout);
}

static enum status profile_attention(void *context, float *out, const struct nn_attention *a) {
    PROFILED(PROFILE_ATTENTION, attention, out, a);
}

static enum status profile_embedding(void *context, float *out, const float *table,
                                     const int32_t *ids, size_t T, size_t C, bool accumulate) {
    PROFILED(PROFILE_EMBEDDING, embedding, out, table, ids, T, C, accumulate);
}

static enum status profile_linear(void *context, float *out, const float *in, const float *weight,
                                  const float *bias, size_t M, size_t N, size_t K) {
    PROFILED(PROFILE_LINEAR, linear, out, in, weight, bias, M, N, K);
}

static enum status profile_linear_activation(void *context, float *out, const float *in,
                                             const float *weight, const float *bias, size_t M,
                                             size_t N, size_t K, enum nn_activation f) {
    PROFILED(PROFILE_LINEAR_ACTIVATION, linear_activation, out, in, weight, bias, M, N, K, f);
}

static enum status profile_linear_residual_layernorm(void *context, float *x, const float *in,
                                                     const float *weight, const float *bias,
                                                     const struct nn_norm *norm, float *scratch,
                                                     size_t M, size_t N, size_t K) {
    PROFILED(PROFILE_LINEAR_RESIDUAL_LAYERNORM, linear_residual_layernorm, x, in, weight, bias,
             norm, scratch, M, N, K);
}

static enum status profile_residual_layernorm(void *context, float *out, const float *a,
                                              const float *b, const struct nn_norm *norm,
                                              size_t rows, size_t C) {
    PROFILED(PROFILE_RESIDUAL_LAYERNORM, residual_layernorm, out, a, b, norm, rows, C);
}

static enum status profile_attention_packed(void *context, float *out, const struct nn_attention *a,
                                            const int32_t *starts, const int32_t *host_starts) {
    PROFILED(PROFILE_ATTENTION_PACKED, attention_packed, out, a, starts, host_starts);
}

static enum status profile_encoder_create(void *context, const struct bert_encoder_model *model,
                                          void **encoder) {
    const struct engine *inner = engine_layer_base(context);
    return inner->encoder_create(inner->context, model, encoder);
}

static enum status profile_encoder_run(void *context, void *encoder,
                                       const struct bert_encoder_call *batch) {
    PROFILED(PROFILE_ENCODER, encoder_run, encoder, batch);
}

static void profile_encoder_free(void *context, void *encoder) {
    const struct engine *inner = engine_layer_base(context);
    inner->encoder_free(inner->context, encoder);
}

static enum status profile_decoder_create(void *context, const struct llama2_decoder_model *model,
                                          void **decoder, struct error *error) {
    const struct engine *inner = engine_layer_base(context);
    return inner->decoder_create(inner->context, model, decoder, error);
}

static enum status profile_decoder_run(void *context, void *decoder,
                                       const struct llama2_decoder_call *tokens) {
    PROFILED(PROFILE_DECODER, decoder_run, decoder, tokens);
}

static void profile_decoder_free(void *context, void *decoder) {
    const struct engine *inner = engine_layer_base(context);
    inner->decoder_free(inner->context, decoder);
}

static enum status profile_decoder_begin(void *context, void *decoder,
                                         const struct llama2_sampling *sampling) {
    const struct engine *inner = engine_layer_base(context);
    return inner->decoder_begin(inner->context, decoder, sampling);
}

static enum status profile_decoder_next(void *context, void *decoder, size_t position,
                                        int32_t *token) {
    PROFILED(PROFILE_DECODER, decoder_next, decoder, position, token);
}

static void profile_decoder(struct engine *engine, const struct engine *inner) {
    if (inner->decoder_create != NULL) {
        engine->decoder_create = profile_decoder_create;
        engine->decoder_run = profile_decoder_run;
        engine->decoder_free = profile_decoder_free;
    }
    if (inner->decoder_begin != NULL) {
        engine->decoder_begin = profile_decoder_begin;
        engine->decoder_next = profile_decoder_next;
    }
}

/* Sets the fused entries that the inner engine has. */
static void profile_fused(struct engine *engine, const struct engine *inner) {
    engine->linear = inner->linear != NULL ? profile_linear : NULL;
    engine->linear_activation = inner->linear_activation != NULL ? profile_linear_activation : NULL;
    engine->linear_residual_layernorm =
        inner->linear_residual_layernorm != NULL ? profile_linear_residual_layernorm : NULL;
    engine->residual_layernorm =
        inner->residual_layernorm != NULL ? profile_residual_layernorm : NULL;
    engine->attention_packed = inner->attention_packed != NULL ? profile_attention_packed : NULL;
    if (inner->encoder_create != NULL) {
        engine->encoder_create = profile_encoder_create;
        engine->encoder_run = profile_encoder_run;
        engine->encoder_free = profile_encoder_free;
    }
    profile_decoder(engine, inner);
}

enum status engine_profile_create(struct engine *engine, const struct engine *inner,
                                  struct profile *profile) {
    struct engine base = *inner;
    base.destroy = NULL; /* the caller keeps it */
    *profile = (struct profile){0};
    TRY(engine_layer_create(engine, inner->name, &base, profile, NULL));
    engine->write = profile_write;
    engine->read = profile_read;
    engine->matmul = profile_matmul;
    engine->bias_add = profile_bias_add;
    engine->activation = profile_activation;
    engine->silu_gate = profile_silu_gate;
    engine->residual = profile_residual;
    engine->layernorm = profile_layernorm;
    engine->rmsnorm = profile_rmsnorm;
    engine->softmax = profile_softmax;
    engine->rope = profile_rope;
    engine->attention = profile_attention;
    engine->embedding = profile_embedding;
    profile_fused(engine, inner);
    return STATUS_OK;
}

void profile_reset(struct profile *profile) {
    for (int op = 0; op < PROFILE_COUNT; op++) {
        profile->entries[op] = (struct profile_entry){0};
    }
}

double profile_total(const struct profile *profile) {
    double total = 0.0;
    for (int op = 0; op < PROFILE_COUNT; op++) {
        total += profile->entries[op].seconds;
    }
    return total;
}

/* Width of the longest name among the operators that were called, at least 12. */
static int name_width(const struct profile *profile) {
    int width = 12;
    for (int op = 0; op < PROFILE_COUNT; op++) {
        int length = (int)strlen(profile_operator_name(op));
        width = profile->entries[op].calls > 0 && length > width ? length : width;
    }
    return width;
}

/* @return the slowest operator that was called and is not printed yet; -1: none */
static int slowest_of(const struct profile *profile, const bool printed[PROFILE_COUNT]) {
    int slowest = -1;
    for (int op = 0; op < PROFILE_COUNT; op++) {
        const struct profile_entry *entry = &profile->entries[op];
        if (!printed[op] && entry->calls > 0 &&
            (slowest < 0 || entry->seconds > profile->entries[slowest].seconds)) {
            slowest = op;
        }
    }
    return slowest;
}

void profile_print(const struct profile *profile, FILE *stream) {
    double total = profile_total(profile);
    bool printed[PROFILE_COUNT] = {false};
    int width = name_width(profile), slowest;
    fprintf(stream, "  %-*s %9s %11s %8s\n", width, "operator", "calls", "ms", "share");
    while ((slowest = slowest_of(profile, printed)) >= 0) {
        printed[slowest] = true;
        const struct profile_entry *entry = &profile->entries[slowest];
        fprintf(stream, "  %-*s %9llu %11.3f %7.1f%%\n", width, profile_operator_name(slowest),
                (unsigned long long)entry->calls, 1e3 * entry->seconds,
                total > 0 ? 100.0 * entry->seconds / total : 0.0);
    }
}
