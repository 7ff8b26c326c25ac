#include "common/checkpoints/safetensors/safetensors_write.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "common/base/file.h"
#include "common/testing/testing.h"

static const float FLOATS[3] = {1.0f, -2.0f, 0.5f};
static const double DOUBLES[2] = {0.1, 1e300};
static const uint16_t HALVES[4] = {1, 2, 3, 4};

struct values {
    const void *data[3];
    size_t bytes[3];
    size_t broken; /* this one cannot be had */
};

static enum status fill(void *context, size_t index, void *data, struct error *error) {
    const struct values *v = context;
    if (index == v->broken) {
        return error_set(error, STATUS_DEVICE, "value %zu cannot be had", index);
    }
    memcpy(data, v->data[index], v->bytes[index]);
    return STATUS_OK;
}

static enum status write_three(const char *path, size_t broken, struct error *error) {
    char names[3][8] = {"b", "a", "c"};
    const struct safetensors_tensor tensors[3] = {
        {.name = names[0], .dtype = SAFETENSORS_F32, .rank = 1, .shape = {3}, .bytes = 12},
        {.name = names[1], .dtype = SAFETENSORS_F64, .rank = 2, .shape = {1, 2}, .bytes = 16},
        {.name = names[2], .dtype = SAFETENSORS_BF16, .rank = 2, .shape = {2, 2}, .bytes = 8},
    };
    struct values values = {{FLOATS, DOUBLES, HALVES}, {12, 16, 8}, broken};
    const struct safetensors_source source = {fill, &values};
    return safetensors_write(path, tensors, 3, &source, error);
}

C_TEST(safetensors_write, is_read_back) {
    char path[1024];
    struct error error = {0};
    struct safetensors file;
    test_temporary_path("three.safetensors", path, sizeof path);
    ASSERT_OK(write_three(path, 9, &error));
    ASSERT_OK(safetensors_open(&file, path, &error));
    EXPECT_INT_EQ(3, file.count);
    const struct safetensors_tensor *a = safetensors_find(&file, "a");
    const struct safetensors_tensor *b = safetensors_find(&file, "b");
    const struct safetensors_tensor *c = safetensors_find(&file, "c");
    ASSERT_TRUE(a != NULL && b != NULL && c != NULL);
    EXPECT_INT_EQ(SAFETENSORS_F64, a->dtype);
    EXPECT_TRUE(memcmp(a->data, DOUBLES, sizeof DOUBLES) == 0);
    EXPECT_TRUE(memcmp(b->data, FLOATS, sizeof FLOATS) == 0);
    EXPECT_TRUE(memcmp(c->data, HALVES, sizeof HALVES) == 0);
    float out[2];
    EXPECT_STATUS(STATUS_UNSUPPORTED, safetensors_read_f32(a, out));
    safetensors_close(&file);
    EXPECT_STATUS(STATUS_IO, write_three(path, 9, &error)); /* it exists */
    unlink(path);
}

C_TEST(safetensors_write, leaves_nothing_behind_a_failure) {
    char path[1024];
    test_temporary_path("broken.safetensors", path, sizeof path);
    EXPECT_ERROR(STATUS_DEVICE, "value 2 cannot be had", write_three(path, 2, &error));
    EXPECT_INT_EQ(-1, access(path, F_OK));
    EXPECT_ERROR(STATUS_IO, "/proc/nowhere/file: cannot create: No such file or directory",
                 write_three("/proc/nowhere/file", 9, &error));
}

C_TEST(safetensors_write, a_full_disk_is_an_error) {
    char path[1024];
    struct error error = {0};
    struct rlimit old, small;
    test_temporary_path("full.safetensors", path, sizeof path);
    signal(SIGXFSZ, SIG_IGN);
    ASSERT_TRUE(getrlimit(RLIMIT_FSIZE, &old) == 0);
    small = old;
    small.rlim_cur = 20;
    ASSERT_TRUE(setrlimit(RLIMIT_FSIZE, &small) == 0);
    enum status status = write_three(path, 9, &error);
    EXPECT_INT_EQ(0, setrlimit(RLIMIT_FSIZE, &old));
    EXPECT_STATUS(STATUS_IO, status);
    EXPECT_TRUE(strstr(error.message, "full.safetensors: cannot write: File too large") != NULL);
    EXPECT_INT_EQ(-1, access(path, F_OK));
}
