#include "common/testing/device_buffer.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/testing/testing.h"

/* More than is read at a time, and no multiple of it. */
enum { LARGE = (5 << 20) / 2 + 12 };

static struct device_buffer buffer_of(size_t bytes, bool guarded, size_t skew) {
    struct device_buffer buffer = {0};
    struct error error = {0};
    EXPECT_OK(device_open(&error));
    EXPECT_OK(device_buffer_create_bytes(&buffer, bytes, guarded, skew, &error));
    return buffer;
}

/* What device_buffer_get() says when one byte of the block is another one. */
static void expect_found(struct device_buffer *buffer, size_t at, bool canary) {
    struct error error = {0};
    unsigned char was, other;
    char *byte = (char *)buffer->block + at;
    bool intact, changed;
    ASSERT_OK(device_read(&was, byte, 1, NULL, &error));
    other = was ^ 1;
    ASSERT_OK(device_write(byte, &other, 1, NULL, &error));
    ASSERT_OK(device_buffer_get(buffer, NULL, &intact, &changed, &error));
    EXPECT_TRUE(intact == !canary && changed == !canary);
    ASSERT_OK(device_write(byte, &was, 1, NULL, &error));
    ASSERT_OK(device_buffer_get(buffer, NULL, &intact, &changed, &error));
    EXPECT_TRUE(intact && !changed);
}

C_TEST(device_buffer, each_byte_is_looked_at) {
    static const size_t sizes[] = {1, 6, LARGE};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        struct device_buffer buffer = buffer_of(sizes[i], true, 2);
        const size_t data = buffer.before, end = data + sizes[i], all = end + buffer.after;
        const size_t piece = (size_t)1 << 20,
                     inside[] = {data, end - 1, piece - 1, piece, 2 * piece};
        for (size_t j = 0; j < 5; j++) {
            if (inside[j] >= data && inside[j] < end) {
                expect_found(&buffer, inside[j], false);
            }
        }
        expect_found(&buffer, 0, true);
        expect_found(&buffer, data - 1, true);
        expect_found(&buffer, end, true);
        expect_found(&buffer, all - 1, true);
        device_buffer_free(&buffer);
    }
}

C_TEST(device_buffer, values_come_back) {
    struct device_buffer buffer = buffer_of(LARGE, true, 3);
    struct error error = {0};
    unsigned char *put = malloc(LARGE), *got = calloc(LARGE, 1);
    bool intact, changed;
    ASSERT_TRUE(put != NULL && got != NULL);
    for (size_t i = 0; i < LARGE; i++) {
        put[i] = (unsigned char)(i * 31 >> 3);
    }
    ASSERT_OK(device_buffer_put(&buffer, put, &error));
    ASSERT_OK(device_buffer_get(&buffer, got, &intact, &changed, &error));
    EXPECT_TRUE(intact && !changed && memcmp(put, got, LARGE) == 0);
    device_buffer_free(&buffer);
    free(put);
    free(got);
}

/* NaN in floats, wherever the data begin. */
C_TEST(device_buffer, is_nan_before_it_is_written) {
    struct error error = {0};
    float got[700];
    for (size_t skew = 0; skew < 3; skew++) {
        struct device_buffer buffer = {0};
        bool intact, changed;
        ASSERT_OK(device_open(&error));
        ASSERT_OK(device_buffer_create(&buffer, 700, skew % 2 == 0, skew, &error));
        ASSERT_OK(device_buffer_get(&buffer, got, &intact, &changed, &error));
        EXPECT_TRUE(intact && !changed);
        for (size_t i = 0; i < 700; i++) {
            EXPECT_TRUE(isnan(got[i]));
        }
        device_buffer_free(&buffer);
    }
}

C_TEST(device_buffer, may_be_empty) {
    struct device_buffer buffer = buffer_of(0, false, 0);
    struct error error = {0};
    bool intact = false, changed = true;
    EXPECT_OK(device_buffer_put(&buffer, NULL, &error));
    EXPECT_OK(device_buffer_get(&buffer, NULL, &intact, &changed, &error));
    EXPECT_TRUE(intact && !changed);
    device_buffer_free(&buffer);
}
