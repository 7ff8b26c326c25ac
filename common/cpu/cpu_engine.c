#include "common/cpu/cpu_engine.h"

#include "common/cpu/cpu_operators.h"
#include "common/cpu/team.h"
#include "common/models/engine_layer.h"

struct cpu_engine {
    cpu_engine_matmul *matmul;
    struct team team;
    struct cpu_rope_table rope;
    struct cpu_scratch scratch;
};

static void release(void *own) {
    struct cpu_engine *cpu = own;
    cpu_rope_table_free(&cpu->rope);
    cpu_scratch_free(&cpu->scratch);
}

/* Threads for `count` elements of `operations` vector operations each. */
static int threads_for(const struct cpu_engine *cpu, size_t count, size_t operations) {
    return count > TEAM_LEAST_OPERATIONS / operations ? cpu_team_threads(&cpu->team) : 1;
}

/* Operations an element, roughly. */
enum { CHEAP = 2, NORM = 6, EXPONENTIAL = 24 };

static enum status cpu_matmul_entry(void *context, float *out, const float *in, const float *weight,
                                    size_t M, size_t N, size_t K) {
    struct cpu_engine *cpu = engine_layer_own(context);
    double products = (double)M * (double)N * (double)K;
    if (products < TEAM_LEAST_PRODUCTS) {
        return cpu->matmul(out, in, weight, M, N, K, 1);
    }
    double start = cpu_team_now();
    TRY(cpu->matmul(out, in, weight, M, N, K, cpu_team_threads(&cpu->team)));
    cpu_team_add(&cpu->team, cpu_team_kind_of(M, N, K), products, start, cpu_team_now());
    return STATUS_OK;
}

static enum status cpu_linear_entry(void *context, float *out, const float *in, const float *weight,
                                    const float *bias, size_t M, size_t N, size_t K) {
    struct cpu_engine *cpu = engine_layer_own(context);
    TRY(cpu_matmul_entry(context, out, in, weight, M, N, K));
    cpu_bias_add(threads_for(cpu, M * N, CHEAP), out, bias, M, N);
    return STATUS_OK;
}

static enum status cpu_linear_activation_entry(void *context, float *out, const float *in,
                                               const float *weight, const float *bias, size_t M,
                                               size_t N, size_t K, enum nn_activation f) {
    struct cpu_engine *cpu = engine_layer_own(context);
    TRY(cpu_matmul_entry(context, out, in, weight, M, N, K));
    cpu_bias_activation(threads_for(cpu, M * N, EXPONENTIAL), out, bias, M, N, f);
    return STATUS_OK;
}

static enum status cpu_linear_residual_layernorm_entry(void *context, float *x, const float *in,
                                                       const float *weight, const float *bias,
                                                       const struct nn_norm *norm, float *scratch,
                                                       size_t M, size_t N, size_t K) {
    struct cpu_engine *cpu = engine_layer_own(context);
    TRY(cpu_matmul_entry(context, scratch, in, weight, M, N, K));
    const struct cpu_layernorm call = {
        .out = x, .in = scratch, .bias = bias, .residual = x, .norm = *norm, .rows = M, .C = N};
    cpu_layernorm(threads_for(cpu, M * N, NORM), &call);
    return STATUS_OK;
}

static enum status cpu_residual_layernorm_entry(void *context, float *out, const float *a,
                                                const float *b, const struct nn_norm *norm,
                                                size_t rows, size_t C) {
    struct cpu_engine *cpu = engine_layer_own(context);
    const struct cpu_layernorm call = {
        .out = out, .in = a, .residual = b, .norm = *norm, .rows = rows, .C = C};
    cpu_layernorm(threads_for(cpu, rows * C, NORM), &call);
    return STATUS_OK;
}

static enum status cpu_layernorm_entry(void *context, float *out, const float *in,
                                       const float *weight, const float *bias, size_t rows,
                                       size_t C, float eps) {
    struct cpu_engine *cpu = engine_layer_own(context);
    const struct cpu_layernorm call = {
        .out = out, .in = in, .norm = {weight, bias, eps}, .rows = rows, .C = C};
    cpu_layernorm(threads_for(cpu, rows * C, NORM), &call);
    return STATUS_OK;
}

static enum status cpu_rmsnorm_entry(void *context, float *out, const float *in,
                                     const float *weight, size_t rows, size_t C, float eps) {
    struct cpu_engine *cpu = engine_layer_own(context);
    cpu_rmsnorm(threads_for(cpu, rows * C, NORM), out, in, weight, rows, C, eps);
    return STATUS_OK;
}

static enum status cpu_softmax_entry(void *context, float *out, const float *in, size_t rows,
                                     size_t C) {
    struct cpu_engine *cpu = engine_layer_own(context);
    cpu_softmax(threads_for(cpu, rows * C, EXPONENTIAL), out, in, rows, C);
    return STATUS_OK;
}

static enum status cpu_bias_add_entry(void *context, float *x, const float *bias, size_t rows,
                                      size_t C) {
    struct cpu_engine *cpu = engine_layer_own(context);
    cpu_bias_add(threads_for(cpu, rows * C, CHEAP), x, bias, rows, C);
    return STATUS_OK;
}

static enum status cpu_activation_entry(void *context, float *out, const float *in, size_t count,
                                        enum nn_activation f) {
    struct cpu_engine *cpu = engine_layer_own(context);
    cpu_activation(threads_for(cpu, count, EXPONENTIAL), out, in, count, f);
    return STATUS_OK;
}

static enum status cpu_silu_gate_entry(void *context, float *out, const float *gate,
                                       const float *up, size_t count) {
    struct cpu_engine *cpu = engine_layer_own(context);
    cpu_silu_gate(threads_for(cpu, count, EXPONENTIAL), out, gate, up, count);
    return STATUS_OK;
}

static enum status cpu_residual_entry(void *context, float *out, const float *a, const float *b,
                                      size_t count) {
    struct cpu_engine *cpu = engine_layer_own(context);
    cpu_residual(threads_for(cpu, count, CHEAP), out, a, b, count);
    return STATUS_OK;
}

static enum status cpu_rope_entry(void *context, float *x, size_t T, size_t heads, size_t HS,
                                  size_t stride, size_t position, float theta,
                                  enum nn_rope_layout layout) {
    struct cpu_engine *cpu = engine_layer_own(context);
    return cpu_rope(&cpu->rope, x, T, heads, HS, stride, position, theta, layout);
}

static enum status cpu_attention_packed_entry(void *context, float *out,
                                              const struct nn_attention *a, const int32_t *starts,
                                              const int32_t *host_starts) {
    struct cpu_engine *cpu = engine_layer_own(context);
    size_t scores = a->B * a->T * a->S * a->NH;
    (void)starts;
    return cpu_attention(threads_for(cpu, scores, a->HS), &cpu->scratch, out, NULL, a, host_starts);
}

static enum status cpu_attention_entry(void *context, float *out, const struct nn_attention *a) {
    return cpu_attention_packed_entry(context, out, a, NULL, NULL);
}

static enum status cpu_embedding_entry(void *context, float *out, const float *table,
                                       const int32_t *ids, size_t T, size_t C, bool accumulate) {
    struct cpu_engine *cpu = engine_layer_own(context);
    cpu_embedding(threads_for(cpu, T * C, CHEAP), out, table, ids, T, C, accumulate);
    return STATUS_OK;
}

/* The reference's memory; every operator is replaced. */
enum status cpu_engine_create(struct engine *engine, const char *name, cpu_engine_matmul *matmul,
                              int threads) {
    struct engine reference;
    const struct cpu_engine cpu = {.matmul = matmul, .team = cpu_team_create(threads)};
    *engine = (struct engine){0};
    TRY(engine_reference_create(&reference));
    TRY(engine_layer_create_copy(engine, name, &reference, &cpu, sizeof cpu, release, NULL));
    engine->matmul = cpu_matmul_entry;
    engine->linear = cpu_linear_entry;
    engine->linear_activation = cpu_linear_activation_entry;
    engine->linear_residual_layernorm = cpu_linear_residual_layernorm_entry;
    engine->residual_layernorm = cpu_residual_layernorm_entry;
    engine->layernorm = cpu_layernorm_entry;
    engine->rmsnorm = cpu_rmsnorm_entry;
    engine->softmax = cpu_softmax_entry;
    engine->bias_add = cpu_bias_add_entry;
    engine->activation = cpu_activation_entry;
    engine->silu_gate = cpu_silu_gate_entry;
    engine->residual = cpu_residual_entry;
    engine->rope = cpu_rope_entry;
    engine->attention = cpu_attention_entry;
    engine->attention_packed = cpu_attention_packed_entry;
    engine->embedding = cpu_embedding_entry;
    return STATUS_OK;
}
