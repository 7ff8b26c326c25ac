#include "common/models/engine.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/models/engine_layer.h"
#include "common/models/fused.h"
#include "common/models/profile.h"
#include "common/testing/fixture.h"

C_TEST(engine_reference, memory_is_aligned_and_copied) {
    struct engine e;
    ASSERT_OK(engine_reference_create(&e));
    void *memory = NULL;
    ASSERT_OK(e.alloc(e.context, 12, &memory));
    EXPECT_INT_EQ(0, (uintptr_t)memory % 64);
    const float host[3] = {1.0f, 2.0f, 3.0f};
    float back[3] = {0};
    EXPECT_OK(e.write(e.context, memory, host, sizeof host));
    EXPECT_OK(e.read(e.context, back, memory, sizeof back));
    EXPECT_INT_EQ(0, memcmp(host, back, sizeof host));
    e.release(e.context, memory);
    ASSERT_OK(e.alloc(e.context, 0, &memory));
    e.release(e.context, memory);
    e.release(e.context, NULL);
    engine_destroy(&e);
    engine_destroy(&e);
}

/* A test of the reference engine. */
#define ENGINE_TEST(suite, name)                                                         \
    FIXTURE_TEST(suite, name, struct engine, e, engine_reference_create(e) == STATUS_OK, \
                 engine_destroy(e))

ENGINE_TEST(engine_reference, refuses_sizes_that_overflow) {
    void *memory = NULL;
    EXPECT_STATUS(STATUS_OVERFLOW, e->alloc(e->context, SIZE_MAX - 3, &memory));
    struct nn_attention attention = {.S = SIZE_MAX / 4};
    EXPECT_STATUS(STATUS_OVERFLOW, e->attention(e->context, NULL, &attention));
}

ENGINE_TEST(engine_reference, matmul_is_in_times_weight_transposed) {
    const float in[2 * 2] = {1, 2, 3, 4};
    const float weight[3 * 2] = {1, 0, 0, 1, 1, 1};
    const float want[2 * 3] = {1, 2, 3, 3, 4, 7};
    float out[2 * 3];
    EXPECT_OK(e->matmul(e->context, out, in, weight, 2, 3, 2));
    EXPECT_INT_EQ(0, memcmp(want, out, sizeof want));
}

/* ---- Fused entries that each write a different value, so that a wrong call would show ---- */

static enum status mark_linear(void *context, float *out, const float *in, const float *weight,
                               const float *bias, size_t M, size_t N, size_t K) {
    (void)context;
    out[0] = in[0] + weight[0] + bias[0] + (float)(M * 100 + N * 10 + K);
    return STATUS_OK;
}

static enum status mark_linear_activation(void *context, float *out, const float *in,
                                          const float *weight, const float *bias, size_t M,
                                          size_t N, size_t K, enum nn_activation f) {
    (void)context;
    out[0] = in[0] + weight[0] + bias[0] + (float)(M * 100 + N * 10 + K) + 1000.0f * (float)(f + 1);
    return STATUS_OK;
}

static enum status mark_linear_residual_layernorm(void *context, float *x, const float *in,
                                                  const float *weight, const float *bias,
                                                  const struct nn_norm *norm, float *scratch,
                                                  size_t M, size_t N, size_t K) {
    (void)context;
    (void)scratch;
    x[0] = in[0] + weight[0] + bias[0] + norm->weight[0] + (float)(M * 100 + N * 10 + K) + 7000.0f;
    return STATUS_OK;
}

static enum status mark_residual_layernorm(void *context, float *out, const float *a,
                                           const float *b, const struct nn_norm *norm, size_t rows,
                                           size_t C) {
    (void)context;
    out[0] = a[0] + b[0] + norm->bias[0] + (float)(rows * 10 + C) + 8000.0f;
    return STATUS_OK;
}

static enum status mark_packed(void *context, float *out, const struct nn_attention *a,
                               const int32_t *starts, const int32_t *host_starts) {
    (void)context;
    out[0] = a->q[0] + (float)(starts[1] * 10 + host_starts[0]) + 9000.0f;
    return STATUS_OK;
}

static void set_fused(struct engine *e) {
    e->linear = mark_linear;
    e->linear_activation = mark_linear_activation;
    e->linear_residual_layernorm = mark_linear_residual_layernorm;
    e->residual_layernorm = mark_residual_layernorm;
    e->attention_packed = mark_packed;
}

/* Calls each fused operator through fused.h; set_fused() was called for the engine. */
static void call_fused(const struct engine *e) {
    const float one[] = {1};
    const struct nn_norm norm = {one, one, 1e-5f};
    const struct nn_attention attention = {.q = one};
    const int32_t starts[] = {0, 5};
    float y[1];
    EXPECT_OK(engine_linear(e, y, one, one, one, 1, 2, 3));
    EXPECT_NEAR(126.0, y[0], 0.0);
    EXPECT_OK(engine_linear_activation(e, y, one, one, one, 1, 2, 3, NN_SILU));
    EXPECT_NEAR(3126.0, y[0], 0.0);
    EXPECT_OK(engine_linear_residual_layernorm(e, y, one, one, one, &norm, y, 1, 2, 3));
    EXPECT_NEAR(7127.0, y[0], 0.0);
    EXPECT_OK(engine_residual_layernorm(e, y, one, one, &norm, 1, 2));
    EXPECT_NEAR(8015.0, y[0], 0.0);
    EXPECT_OK(engine_attention_packed(e, y, &attention, starts, starts));
    EXPECT_NEAR(9051.0, y[0], 0.0);
}

/* Without fused entries, fused.h calls the single operators. */
ENGINE_TEST(engine_fused, is_the_single_operators_where_a_stage_fuses_nothing) {
    const float in[] = {1, 2, 3, 4}, weight[] = {1, 0, 2, -1}, bias[] = {0.5f, -3};
    const struct nn_norm norm = {bias, weight, 1e-5f};
    float out[4], want[4], scratch[4], x[4];
    nn_matmul(want, in, weight, 2, 2, 2);
    nn_bias_add(want, bias, 2, 2);
    ASSERT_OK(engine_linear(e, out, in, weight, bias, 2, 2, 2));
    EXPECT_TRUE(memcmp(want, out, sizeof out) == 0);
    memcpy(x, in, sizeof x);
    ASSERT_OK(engine_linear_residual_layernorm(e, x, in, weight, bias, &norm, scratch, 2, 2, 2));
    nn_activation(scratch, want, 4, NN_RELU);
    ASSERT_OK(engine_linear_activation(e, out, in, weight, bias, 2, 2, 2, NN_RELU));
    EXPECT_TRUE(memcmp(scratch, out, sizeof out) == 0);
    nn_residual(want, in, want, 4);
    nn_layernorm(want, want, norm.weight, norm.bias, 2, 2, norm.eps);
    EXPECT_TRUE(memcmp(want, x, sizeof x) == 0);
}

/* Calls every operator of an engine once, on small valid inputs. */
static void call_all(const struct engine *e) {
    float x[8] = {1, 2, 3, 4, 5, 6, 7, 8};
    float y[8] = {0};
    const float w[8] = {1, 1, 1, 1, 1, 1, 1, 1};
    const int32_t ids[1] = {1};
    const struct nn_attention attention = {.q = x,
                                           .k = x,
                                           .v = x,
                                           .B = 1,
                                           .T = 1,
                                           .S = 2,
                                           .NH = 1,
                                           .KVH = 1,
                                           .HS = 4,
                                           .q_stride = 4,
                                           .kv_stride = 4,
                                           .causal = true,
                                           .scale = 0.5f};
    EXPECT_OK(e->matmul(e->context, y, x, w, 2, 2, 2));
    EXPECT_OK(e->bias_add(e->context, y, w, 2, 4));
    EXPECT_OK(e->activation(e->context, y, x, 8, NN_GELU));
    EXPECT_OK(e->silu_gate(e->context, y, x, w, 8));
    EXPECT_OK(e->residual(e->context, y, x, w, 8));
    EXPECT_OK(e->layernorm(e->context, y, x, w, w, 2, 4, 1e-5f));
    EXPECT_OK(e->rmsnorm(e->context, y, x, w, 2, 4, 1e-5f));
    EXPECT_OK(e->softmax(e->context, y, x, 2, 4));
    EXPECT_OK(e->rope(e->context, y, 1, 2, 4, 8, 3, 10000.0f, NN_ROPE_INTERLEAVED));
    EXPECT_OK(e->attention(e->context, y, &attention));
    EXPECT_OK(e->embedding(e->context, y, x, ids, 1, 4, false));
    EXPECT_NEAR(5.0, y[0], 0.0);
    EXPECT_OK(e->rope_table(e->context, y, 1, 2, 4, 8, 3, w, NN_ROPE_HALVES));
    if (e->linear != NULL) {
        call_fused(e);
    }
    EXPECT_OK(e->write(e->context, y, x, sizeof y));
    EXPECT_OK(e->read(e->context, y, x, sizeof y));
}

static enum status no_encoder(void *context, const struct bert_encoder_model *model,
                              void **encoder) {
    (void)context;
    (void)model;
    *encoder = NULL;
    return STATUS_OK;
}

static enum status encode_nothing(void *context, void *encoder,
                                  const struct bert_encoder_call *call) {
    (void)context;
    (void)encoder;
    (void)call;
    return STATUS_OK;
}

static void free_nothing(void *context, void *encoder) {
    (void)context;
    (void)encoder;
}

static enum status no_decoder(void *context, const struct llama2_decoder_model *model,
                              void **decoder, struct error *error) {
    (void)context;
    (void)model;
    *decoder = NULL;
    return error_set(error, STATUS_UNSUPPORTED, "there is none");
}

static enum status decode_nothing(void *context, void *decoder,
                                  const struct llama2_decoder_call *call) {
    (void)context;
    (void)decoder;
    (void)call;
    return STATUS_OK;
}

static enum status begin_nothing(void *context, void *decoder,
                                 const struct llama2_sampling *sampling) {
    (void)context;
    (void)decoder;
    (void)sampling;
    return STATUS_TOO_LONG;
}

static enum status next_is_position(void *context, void *decoder, size_t position, int32_t *token) {
    (void)context;
    (void)decoder;
    *token = (int32_t)position;
    return STATUS_OK;
}

C_TEST(engine_profile, passes_a_decoder_on) {
    struct engine inner, timed;
    struct profile profile;
    int32_t token = 0;
    void *decoder = &token;
    ASSERT_OK(engine_reference_create(&inner));
    ASSERT_OK(engine_profile_create(&timed, &inner, &profile));
    EXPECT_TRUE(timed.decoder_create == NULL && timed.decoder_begin == NULL);
    engine_destroy(&timed);
    inner.decoder_create = no_decoder;
    inner.decoder_run = decode_nothing;
    inner.decoder_free = free_nothing;
    ASSERT_OK(engine_profile_create(&timed, &inner, &profile));
    EXPECT_TRUE(timed.decoder_begin == NULL && timed.decoder_next == NULL);
    engine_destroy(&timed);
    inner.decoder_begin = begin_nothing;
    inner.decoder_next = next_is_position;
    ASSERT_OK(engine_profile_create(&timed, &inner, &profile));
    EXPECT_ERROR(STATUS_UNSUPPORTED, "there is none",
                 timed.decoder_create(timed.context, NULL, &decoder, &error));
    EXPECT_STATUS(STATUS_TOO_LONG, timed.decoder_begin(timed.context, NULL, NULL));
    EXPECT_INT_EQ(0, profile.entries[PROFILE_DECODER].calls);
    EXPECT_OK(timed.decoder_next(timed.context, NULL, 23, &token));
    EXPECT_OK(timed.decoder_run(timed.context, NULL, NULL));
    EXPECT_INT_EQ(23, token);
    EXPECT_INT_EQ(2, profile.entries[PROFILE_DECODER].calls);
    timed.decoder_free(timed.context, NULL);
    engine_destroy(&timed);
    engine_destroy(&inner);
}

C_TEST(engine_profile, counts_every_operator_once) {
    struct engine inner, timed;
    struct profile profile;
    ASSERT_OK(engine_reference_create(&inner));
    set_fused(&inner);
    inner.encoder_create = no_encoder;
    inner.encoder_run = encode_nothing;
    inner.encoder_free = free_nothing;
    inner.decoder_create = no_decoder;
    inner.decoder_run = decode_nothing;
    inner.decoder_free = free_nothing;
    ASSERT_OK(engine_profile_create(&timed, &inner, &profile));
    call_all(&timed);
    EXPECT_OK(timed.encoder_run(timed.context, NULL, NULL));
    EXPECT_OK(timed.decoder_run(timed.context, NULL, NULL));
    for (int op = 0; op < PROFILE_COUNT; op++) {
        EXPECT_INT_EQ(op == PROFILE_COPY ? 2 : 1, profile.entries[op].calls);
        EXPECT_TRUE(profile.entries[op].seconds > 0.0);
    }
    EXPECT_TRUE(profile_total(&profile) > 0.0);
    char *text = NULL;
    size_t size = 0;
    FILE *file = open_memstream(&text, &size);
    ASSERT_TRUE(file != NULL);
    profile_print(&profile, file);
    fclose(file);
    for (int op = 0; op < PROFILE_COUNT; op++) {
        EXPECT_TRUE(strstr(text, profile_operator_name(op)) != NULL);
    }
    free(text);
    profile_reset(&profile);
    EXPECT_NEAR(0.0, profile_total(&profile), 0.0);
    engine_destroy(&timed);
    engine_destroy(&inner);
}

/* A recorder that asks for every call to be repeated once, and keeps its arguments. */
struct twice {
    bool again;
    int begins, ends;
    char entry[32];
};

static void twice_begin(void *context, enum profile_operator op, const char *entry) {
    struct twice *t = context;
    EXPECT_INT_EQ(PROFILE_BIAS_ADD, op);
    snprintf(t->entry, sizeof t->entry, "%s", entry);
    t->begins++;
}

static bool twice_end(void *context, enum profile_operator op, enum status *status) {
    struct twice *t = context;
    EXPECT_INT_EQ(PROFILE_BIAS_ADD, op);
    EXPECT_STATUS(STATUS_OK, *status);
    t->ends++;
    t->again = !t->again;
    *status = t->again ? STATUS_DEVICE : STATUS_TOO_LONG;
    return t->again;
}

C_TEST(engine_profile, lets_a_recorder_look_inside_and_call_again) {
    struct engine inner, timed;
    struct profile profile;
    struct twice twice = {.again = false};
    float x[2] = {1.0f, 2.0f};
    const float bias[2] = {10.0f, 20.0f};
    ASSERT_OK(engine_reference_create(&inner));
    ASSERT_OK(engine_profile_create(&timed, &inner, &profile));
    profile.recorder = (struct profile_recorder){&twice, twice_begin, twice_end};
    EXPECT_STATUS(STATUS_TOO_LONG, timed.bias_add(timed.context, x, bias, 1, 2));
    EXPECT_NEAR(21.0, x[0], 0.0);
    EXPECT_INT_EQ(2, twice.begins);
    EXPECT_INT_EQ(2, twice.ends);
    EXPECT_STR_EQ("bias_add", twice.entry);
    EXPECT_INT_EQ(1, profile.entries[PROFILE_BIAS_ADD].calls);
    engine_destroy(&timed);
    engine_destroy(&inner);
}

static enum status failing_matmul(void *context, float *out, const float *in, const float *weight,
                                  size_t M, size_t N, size_t K) {
    (void)context;
    (void)out;
    (void)in;
    (void)weight;
    (void)M;
    (void)N;
    (void)K;
    return STATUS_DEVICE;
}

C_TEST(engine_profile, passes_failures_on) {
    struct engine inner, timed;
    struct profile profile;
    ASSERT_OK(engine_reference_create(&inner));
    inner.matmul = failing_matmul;
    ASSERT_OK(engine_profile_create(&timed, &inner, &profile));
    EXPECT_STATUS(STATUS_DEVICE, timed.matmul(timed.context, NULL, NULL, NULL, 0, 0, 0));
    engine_destroy(&timed);
    engine_destroy(&inner);
}

static enum status marking_bias_add(void *context, float *x, const float *bias, size_t rows,
                                    size_t C) {
    ++*(int *)engine_layer_own(context);
    const struct engine *base = engine_layer_base(context);
    return base->bias_add(base->context, x, bias, rows, C);
}

C_TEST(engine_layer, passes_on_what_is_not_replaced) {
    struct engine base, layer, top;
    int calls = 0;
    ASSERT_OK(engine_reference_create(&base));
    ASSERT_OK(engine_layer_create(&layer, "layer", &base, &calls, NULL));
    EXPECT_TRUE(base.context == NULL);
    EXPECT_TRUE(layer.linear == NULL && layer.linear_activation == NULL);
    EXPECT_TRUE(layer.linear_residual_layernorm == NULL && layer.residual_layernorm == NULL);
    EXPECT_TRUE(layer.attention_packed == NULL);
    EXPECT_TRUE(layer.decoder_create == NULL && layer.decoder_begin == NULL);
    layer.bias_add = marking_bias_add;
    set_fused(&layer);
    ASSERT_OK(engine_layer_create(&top, "top", &layer, NULL, NULL));
    call_all(&top);
    EXPECT_INT_EQ(1, calls);
    EXPECT_STR_EQ("top", top.name);
    void *memory = NULL;
    EXPECT_OK(top.alloc(top.context, 64, &memory));
    top.release(top.context, memory);
    const void *resident = NULL;
    EXPECT_OK(top.weights(top.context, &calls, sizeof calls, &resident));
    EXPECT_TRUE(resident == &calls);
    top.release_weights(top.context, resident);
    EXPECT_OK(top.synchronize(top.context));
    engine_destroy(&top);
}
