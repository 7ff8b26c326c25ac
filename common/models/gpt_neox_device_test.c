#include "common/models/gpt_neox_device.h"

#include <stdlib.h>
#include <string.h>

#include "common/testing/testing.h"

/* All sizes differ, so that a mix-up shows. */
static const struct gpt_neox_config config = {
    .C = 12, .hidden = 20, .L = 2, .NH = 3, .HS = 4, .V = 17, .T = 8, .attention_bias = true};

enum { MOST = 1024 };

/* Stored weights: element i of a tensor is its number in the visit plus i / 1024. */
struct stored {
    struct gpt_neox_stored_weights weights;
    struct gpt_neox_stored_layer layers[2];
    unsigned char *values[32];
    size_t count;
    enum nn_dtype dtype;
};

static float value_of(size_t tensor, size_t i) {
    return (float)tensor + (float)i * 0x1p-10f;
}

static enum status make(void *context, const struct decoder_weight *tensor) {
    struct stored *s = context;
    size_t count = decoder_weight_count(tensor);
    float plain[MOST];
    unsigned char *values = malloc(count * nn_dtype_bytes(s->dtype));
    if (count > MOST || values == NULL) {
        return STATUS_OUT_OF_MEMORY;
    }
    for (size_t i = 0; i < count; i++) {
        plain[i] = value_of(s->count, i);
    }
    nn_dtype_store(values, plain, count, s->dtype);
    s->values[s->count++] = values;
    bool vector = tensor->rank == 1;
    *tensor->stored = (struct decoder_stored_tensor){
        values, s->dtype, vector ? 1 : tensor->shape[0], tensor->shape[vector ? 0 : 1]};
    return STATUS_OK;
}

/* Expects rows of `width` elements on the device; row r is row from(r) of the tensor. */
static void expect(const struct stored *s, const void *device, enum nn_dtype dtype, size_t tensor,
                   size_t rows, size_t width, bool separated) {
    unsigned char bytes[4 * MOST];
    float got[MOST];
    size_t count = rows * width;
    ASSERT_TRUE(device != NULL && count <= MOST && (uintptr_t)device % 256 == 0);
    ASSERT_OK(device_read(bytes, device, count * nn_dtype_bytes(dtype), NULL, NULL));
    nn_dtype_load(got, bytes, count, dtype);
    for (size_t i = 0; i < count; i++) {
        size_t row = i / width, part = row / config.C, head = row / config.HS % config.NH;
        size_t from = separated ? (3 * head + part) * config.HS + row % config.HS : row;
        float want = value_of(tensor, from * width + i % width);
        unsigned char element[4];
        nn_dtype_store(element, &want, 1, s->dtype); /* rounded as stored, then for the device */
        nn_dtype_load(&want, element, 1, s->dtype);
        nn_dtype_store(element, &want, 1, dtype);
        nn_dtype_load(&want, element, 1, dtype);
        if (got[i] != want) {
            TEST_FAIL("tensor %zu, element %zu: %g, not %g", tensor, i, (double)got[i],
                      (double)want);
            return;
        }
    }
}

static void check_layer(const struct stored *s, const struct gpt_neox_device *d, size_t l) {
    const struct gpt_neox_device_layer *w = &d->layers[l];
    size_t first = 1 + 12 * l, C = config.C, hidden = config.hidden;
    expect(s, w->attention_norm, NN_F32, first, 1, C, false);
    expect(s, w->attention_norm_bias, NN_F32, first + 1, 1, C, false);
    expect(s, w->ffn_norm, NN_F32, first + 2, 1, C, false);
    expect(s, w->ffn_norm_bias, NN_F32, first + 3, 1, C, false);
    expect(s, w->qkv, d->dtype, first + 4, 3 * C, C, true);
    expect(s, w->qkv_bias, NN_F32, first + 5, 3 * C, 1, true);
    expect(s, w->out, d->dtype, first + 6, C, C, false);
    expect(s, w->out_bias, NN_F32, first + 7, 1, C, false);
    expect(s, w->up, d->dtype, first + 8, hidden, C, false);
    expect(s, w->up_bias, NN_F32, first + 9, 1, hidden, false);
    expect(s, w->down, d->dtype, first + 10, C, hidden, false);
    expect(s, w->down_bias, NN_F32, first + 11, 1, C, false);
}

static void check(enum nn_dtype stored, enum nn_dtype dtype, bool shared) {
    struct stored s = {.dtype = stored};
    struct gpt_neox_device d;
    s.weights.layers = s.layers;
    ASSERT_OK(gpt_neox_tensors_visit(&config, shared, &s.weights, NULL, make, &s));
    if (shared) {
        s.weights.classifier = s.weights.embedding;
    }
    const struct gpt_neox_decoder_model model = {&config, &s.weights, dtype, 1};
    ASSERT_OK(gpt_neox_device_load(&d, &model, NULL, NULL));
    size_t others = 1 + 12 * config.L;
    expect(&s, d.embedding, dtype, 0, config.V, config.C, false);
    expect(&s, d.final_norm, NN_F32, others, 1, config.C, false);
    expect(&s, d.final_norm_bias, NN_F32, others + 1, 1, config.C, false);
    EXPECT_INT_EQ(shared, d.classifier == d.embedding);
    expect(&s, d.classifier, dtype, shared ? 0 : others + 2, config.V, config.C, false);
    for (size_t l = 0; l < config.L; l++) {
        check_layer(&s, &d, l);
    }
    gpt_neox_device_free(&d);
    gpt_neox_device_free(&d);
    for (size_t i = 0; i < s.count; i++) {
        free(s.values[i]);
    }
}

C_TEST(gpt_neox_device, tensors_of_every_type) {
    check(NN_F32, NN_F32, false);
    check(NN_BF16, NN_BF16, true);
    check(NN_F16, NN_BF16, false);
    check(NN_F32, NN_F16, true);
    check(NN_BF16, NN_F32, false);
}
