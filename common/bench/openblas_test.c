#include "common/bench/openblas.h"

#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "common/nn/nn.h"
#include "common/testing/compare.h"
#include "common/testing/testing.h"

static void check_product(size_t M) {
    enum { N = 7, K = 11, MOST = 5 };
    float in[MOST * K], weight[N * K], out[MOST * N];
    double want[MOST * N];
    for (size_t i = 0; i < M * K; i++) {
        in[i] = sinf((float)i);
    }
    for (size_t i = 0; i < N * K; i++) {
        weight[i] = cosf((float)i);
    }
    nn_matmul_f64(want, in, weight, M, N, K);
    EXPECT_OK(openblas_matmul(out, in, weight, M, N, K, 1));
    EXPECT_TRUE(compare_f32(out, want, M * N, tolerance_dot_f32(K, sqrt((double)K))).pass);
}

C_TEST(openblas, equals_the_oracle) {
    if (!openblas_available()) {
        TEST_SKIP("OpenBLAS is not installed");
    }
    check_product(5);
    check_product(1);
}

C_TEST(openblas, refuses_sizes_beyond_its_integers) {
    float x = 0.0f;
    if (!openblas_available()) {
        EXPECT_STATUS(STATUS_UNSUPPORTED, openblas_matmul(&x, &x, &x, 1, 1, 1, 1));
        return;
    }
    EXPECT_STATUS(STATUS_OVERFLOW, openblas_matmul(&x, &x, &x, (size_t)1 << 31, 1, 0, 1));
}

C_TEST(openblas, kernels_of_old_are_told_from_those_of_this_cpu) {
    EXPECT_TRUE(openblas_is_outdated("Prescott", 16));
    EXPECT_TRUE(openblas_is_outdated("Opteron_SSE3", 8));
    EXPECT_TRUE(!openblas_is_outdated("Prescott", 4));
    EXPECT_TRUE(!openblas_is_outdated("Haswell", 8));
    EXPECT_TRUE(!openblas_is_outdated("SkylakeX", 16));
    EXPECT_TRUE(!openblas_is_outdated("Cooperlake", 16));
}

C_TEST(openblas, warns_of_a_bad_choice_of_kernels) {
    char note[192], name[64];
    if (!openblas_available()) {
        TEST_SKIP("OpenBLAS is not installed");
    }
    EXPECT_TRUE(strncmp(openblas_name(name, sizeof name), "OpenBLAS ", 9) == 0);
    unsetenv("OPENBLAS_CORETYPE");
    unsetenv("OPENBLAS_L2_SIZE");
    /* On a CPU that it does not know, OpenBLAS chooses badly. */
    EXPECT_TRUE(openblas_note(note, sizeof note) == NULL ||
                strstr(note, "OpenBLAS does not know this CPU") == note);
    setenv("OPENBLAS_L2_SIZE", "512", 1);
    EXPECT_TRUE(openblas_note(note, sizeof note) != NULL &&
                strstr(note, "OPENBLAS_L2_SIZE; unset it to") != NULL);
    setenv("OPENBLAS_CORETYPE", "Haswell", 1);
    EXPECT_TRUE(openblas_note(note, sizeof note) != NULL &&
                strstr(note, "OPENBLAS_CORETYPE makes OpenBLAS use its ") == note &&
                strstr(note, "; unset it and OPENBLAS_L2_SIZE to") != NULL);
}
