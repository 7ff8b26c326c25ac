#include "common/models/llama2_device.h"

#include <stdlib.h>
#include <string.h>

#include "common/testing/testing.h"

/* All sizes differ, so that a mix-up shows; 3 layers. */
static const struct llama2_config config = {
    .C = 24, .hidden = 44, .L = 3, .NH = 6, .KVH = 2, .HS = 4, .V = 67, .T = 12};

enum { MOST = 1 << 16 }; /* bytes of all stored tensors, and of the largest matrix on the device */

/* Stored weights in one block, each tensor at an odd address. */
struct stored {
    struct llama2_stored_weights weights;
    struct llama2_stored_layer layers[3];
    unsigned char *block;
    size_t used;
    uint32_t state;
    enum nn_dtype dtype;
};

static struct decoder_stored_tensor tensor_of(struct stored *s, size_t rows, size_t columns) {
    s->used |= 1;
    struct decoder_stored_tensor tensor = {s->block + s->used, s->dtype, rows, columns};
    for (size_t i = 0; i < rows * columns; i++) {
        s->state = s->state * 1664525u + 1013904223u;
        float value = (float)(int32_t)s->state * 0x1p-31f; /* more digits than 16 bits hold */
        unsigned char element[4];
        nn_dtype_store(element, &value, 1, s->dtype);
        memcpy(s->block + s->used, element, nn_dtype_bytes(s->dtype));
        s->used += nn_dtype_bytes(s->dtype);
    }
    return tensor;
}

static bool stored_create(struct stored *s, enum nn_dtype dtype, bool shared) {
    const size_t C = config.C, kv = config.KVH * config.HS;
    *s = (struct stored){.dtype = dtype, .state = 7};
    s->block = malloc(MOST * 4);
    if (s->block == NULL) {
        TEST_FAIL("out of memory");
        return false;
    }
    s->weights.layers = s->layers;
    s->weights.embedding = tensor_of(s, config.V, C);
    s->weights.final_norm = tensor_of(s, 1, C);
    s->weights.classifier = shared ? s->weights.embedding : tensor_of(s, config.V, C);
    for (size_t l = 0; l < config.L; l++) {
        struct llama2_stored_layer *w = &s->layers[l];
        w->attention_norm = tensor_of(s, 1, C);
        w->wq = tensor_of(s, C, C);
        w->wk = tensor_of(s, kv, C);
        w->wv = tensor_of(s, kv, C);
        w->wo = tensor_of(s, C, C);
        w->ffn_norm = tensor_of(s, 1, C);
        w->w1 = tensor_of(s, config.hidden, C);
        w->w2 = tensor_of(s, C, config.hidden);
        w->w3 = tensor_of(s, config.hidden, C);
    }
    return true;
}

static struct llama2_decoder_model model_of(const struct stored *s, enum nn_dtype dtype) {
    return (struct llama2_decoder_model){&config, &s->weights, dtype, 1};
}

/* Appends the bytes that the device must hold for a tensor. @return bytes so far */
static size_t expect(unsigned char *want, size_t at, const struct decoder_stored_tensor *tensor,
                     enum nn_dtype dtype) {
    size_t wide = nn_dtype_bytes(tensor->dtype);
    for (size_t i = 0; i < tensor->rows * tensor->columns; i++) {
        unsigned char element[4];
        uint32_t aligned[1];
        float value;
        memcpy(aligned, (const unsigned char *)tensor->data + i * wide, wide);
        nn_dtype_load(&value, aligned, 1, tensor->dtype);
        nn_dtype_store(aligned, &value, 1, dtype);
        memcpy(element, aligned, sizeof element);
        memcpy(want + at, element, nn_dtype_bytes(dtype));
        at += nn_dtype_bytes(dtype);
    }
    return at;
}

/* Expects that the device's memory holds the tensors, one after the other. */
static size_t check(const void *device, enum nn_dtype dtype, const struct decoder_stored_tensor *a,
                    const struct decoder_stored_tensor *b, const struct decoder_stored_tensor *c) {
    static unsigned char want[MOST], got[MOST];
    size_t bytes = expect(want, 0, a, dtype);
    bytes = b != NULL ? expect(want, bytes, b, dtype) : bytes;
    bytes = c != NULL ? expect(want, bytes, c, dtype) : bytes;
    EXPECT_INT_EQ(0, (uintptr_t)device % 256);
    EXPECT_OK(device_read(got, device, bytes, NULL, NULL));
    EXPECT_INT_EQ(0, memcmp(want, got, bytes));
    return bytes;
}

/* @return bytes of all tensors */
static size_t check_all(const struct stored *s, const struct llama2_device *d) {
    const struct llama2_stored_weights *w = &s->weights;
    size_t bytes = check(d->embedding, d->dtype, &w->embedding, NULL, NULL);
    bytes += check(d->final_norm, NN_F32, &w->final_norm, NULL, NULL);
    size_t classifier = check(d->classifier, d->dtype, &w->classifier, NULL, NULL);
    bytes += d->classifier != d->embedding ? classifier : 0;
    for (size_t l = 0; l < config.L; l++) {
        const struct llama2_stored_layer *h = &s->layers[l];
        const struct llama2_device_layer *g = &d->layers[l];
        bytes += check(g->attention_norm, NN_F32, &h->attention_norm, NULL, NULL);
        bytes += check(g->qkv, d->dtype, &h->wq, &h->wk, &h->wv);
        bytes += check(g->out, d->dtype, &h->wo, NULL, NULL);
        bytes += check(g->ffn_norm, NN_F32, &h->ffn_norm, NULL, NULL);
        bytes += check(g->gate_up, d->dtype, &h->w1, &h->w3, NULL);
        bytes += check(g->down, d->dtype, &h->w2, NULL, NULL);
    }
    return bytes;
}

static void check_types(enum nn_dtype from, enum nn_dtype to, bool shared) {
    struct stored stored;
    struct llama2_device device;
    ASSERT_TRUE(stored_create(&stored, from, shared));
    struct llama2_decoder_model model = model_of(&stored, to);
    ASSERT_OK(llama2_device_load(&device, &model, NULL, NULL));
    EXPECT_INT_EQ(to, device.dtype);
    EXPECT_INT_EQ(shared, device.classifier == device.embedding);
    size_t bytes = check_all(&stored, &device);
    size_t table = config.V * config.C * nn_dtype_bytes(to);
    size_t row = config.C * nn_dtype_bytes(to);
    EXPECT_INT_EQ(shared ? bytes : bytes - table + row, device.decode_bytes);
    EXPECT_TRUE(device.bytes >= bytes);
    EXPECT_TRUE(device.bytes < bytes + (3 + 6 * config.L) * 256);
    llama2_device_free(&device);
    EXPECT_TRUE(device.layers == NULL && device.embedding == NULL);
    free(stored.block);
}

C_TEST(llama2_device, holds_every_stored_type_in_every_type) {
    ASSERT_OK(device_open(NULL));
    for (int from = 0; from < 3; from++) {
        for (int to = 0; to < 3; to++) {
            check_types((enum nn_dtype)from, (enum nn_dtype)to, false);
        }
    }
}

C_TEST(llama2_device, holds_a_shared_classifier_once) {
    check_types(NN_F32, NN_F32, true);
    check_types(NN_BF16, NN_F16, true);
}

/* A tensor larger than the chunk that is converted at once: 33 million 16-bit numbers. */
C_TEST(llama2_device, converts_tensors_larger_than_the_staging_buffer) {
    enum { ROWS = 1025, COLUMNS = 32768 };
    const size_t count = (size_t)ROWS * COLUMNS;
    uint16_t *halves = malloc(count * sizeof *halves);
    float *got = malloc(2 * COLUMNS * sizeof *got);
    struct stored stored;
    struct llama2_device device;
    ASSERT_TRUE(halves != NULL && got != NULL && stored_create(&stored, NN_BF16, true));
    for (size_t i = 0; i < count; i++) {
        halves[i] = (uint16_t)(0x3f00u + i % 251);
    }
    stored.layers[1].w2 = (struct decoder_stored_tensor){halves, NN_BF16, ROWS, COLUMNS};
    struct llama2_decoder_model model = model_of(&stored, NN_F32);
    ASSERT_OK(llama2_device_load(&device, &model, NULL, NULL));
    size_t first = ((size_t)16 << 20) - COLUMNS; /* around where a chunk ends, and the last rows */
    const size_t offsets[] = {first - COLUMNS, first, count - 2 * COLUMNS};
    for (size_t p = 0; p < 3; p++) {
        static float want[2 * COLUMNS];
        nn_dtype_load(want, halves + offsets[p], 2 * COLUMNS, NN_BF16);
        const float *from = (const float *)device.layers[1].down + offsets[p];
        EXPECT_OK(device_read(got, from, sizeof want, NULL, NULL));
        EXPECT_INT_EQ(0, memcmp(want, got, sizeof want));
    }
    llama2_device_free(&device);
    free(stored.block);
    free(halves);
    free(got);
}

C_TEST(llama2_device, reports_missing_memory_before_it_copies) {
    struct stored stored;
    struct llama2_device device;
    struct error error = {0};
    ASSERT_TRUE(stored_create(&stored, NN_F32, true));
    size_t rows = (size_t)1 << 24; /* rows of C floats that do not exist */
    stored.layers[2].w1.rows = rows << 12;
    struct llama2_decoder_model model = model_of(&stored, NN_BF16);
    struct device_traffic before = device_traffic();
    EXPECT_STATUS(STATUS_OUT_OF_MEMORY, llama2_device_load(&device, &model, NULL, &error));
    struct device_traffic after = device_traffic();
    EXPECT_INT_EQ(before.copies_to_device, after.copies_to_device);
    EXPECT_INT_EQ(before.allocations, after.allocations);
    EXPECT_TRUE(strstr(error.message, "a Llama2's weights in bf16: ") == error.message);
    EXPECT_TRUE(strstr(error.message, " bytes asked for, ") != NULL);
    EXPECT_TRUE(strstr(error.message, " bytes are free") != NULL);
    EXPECT_TRUE(strtoull(strstr(error.message, "memory: ") + 8, NULL, 10) > rows << 12);
    EXPECT_TRUE(device.layers == NULL && device.embedding == NULL);
    llama2_device_free(&device);
    free(stored.block);
}

C_TEST(llama2_device, refuses_sizes_that_overflow) {
    struct stored stored;
    struct llama2_device device;
    struct error error = {0};
    ASSERT_TRUE(stored_create(&stored, NN_F32, true));
    const size_t rows[] = {SIZE_MAX / 2, SIZE_MAX / config.C / 4, SIZE_MAX / config.C / 4 - 1};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        stored.layers[0].w3.rows = rows[i];
        struct llama2_decoder_model model = model_of(&stored, NN_F32);
        EXPECT_STATUS(STATUS_OVERFLOW, llama2_device_load(&device, &model, NULL, &error));
    }
    EXPECT_TRUE(strstr(error.message, "overflow") != NULL);
    free(stored.block);
}
