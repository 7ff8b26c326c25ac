/* Every kernel of the corpus, for every architecture, is decoded. And calls through pointers, which
 * the decoder resolves for a whole kernel. */
#include <stdio.h>
#include <string.h>

#include "common/simt/core/launch/launch_testing.h"
#include "common/testing/testing.h"

static const char *const corpus[] = {"async", "atomics", "calls", "control", "data", "half",
                                     "math",  "reduce",  "sgemm", "tensor",  "warp"};
static const unsigned architectures[] = {75, 80, 86, 89, 90};

static void check_kernel(struct simt_module *module, const char *kernel, unsigned architecture) {
    struct error error = {0};
    struct simt_kernel_info info;
    enum status status = simt_kernel_info(module, kernel, &info, &error);
    if (status != STATUS_OK) {
        TEST_FAIL("compute_%u: %s", architecture, error_text(&error, status));
    }
}

/* @return kernels that were looked at */
static int check_file(const char *name, unsigned architecture) {
    char path[256];
    struct launch_testing t;
    int kernels = 0;
    snprintf(path, sizeof path, "%s/%s_%u.ptx", CORPUS, name, architecture);
    if (!launch_testing_open(&t, path)) {
        TEST_FAIL("%s", path);
    }
    for (size_t n = 0; t.module != NULL && n < t.ptx->function_count; n++) {
        if (t.ptx->functions[n].entry) {
            check_kernel(t.module, t.ptx->functions[n].name, architecture);
            kernels++;
        }
    }
    launch_testing_close(&t);
    return kernels;
}

C_TEST(corpus_decode, all_kernels_for_all_architectures) {
    for (size_t a = 0; a < sizeof architectures / sizeof *architectures; a++) {
        int kernels = 0;
        for (size_t n = 0; n < sizeof corpus / sizeof *corpus; n++) {
            kernels += check_file(corpus[n], architectures[a]);
        }
        EXPECT_TRUE(kernels > 60);
    }
}

LAUNCH_TEST(corpus_decode, lanes_that_call_different_functions, POINTERS_PTX) {
    uint64_t out = launch_testing_upload(t, NULL, 64 * sizeof(int));
    if (launch_testing_block_clean(t, "through_a_table", 64, &out)) {
        const int *got = launch_testing_result(t, out);
        for (int i = 0; i < 64; i++) {
            EXPECT_INT_EQ(i % 3 == 0 ? i + 5 : i % 3 == 1 ? i - 5 : i * 5, got[i]);
        }
    }
    if (launch_testing_block_clean(t, "of_objects", 64, &out)) {
        const int *got = launch_testing_result(t, out);
        for (int i = 0; i < 64; i++) {
            EXPECT_INT_EQ(i % 2 == 0 ? i * i : i + 1, got[i]);
        }
    }
}

LAUNCH_TEST(corpus_decode, a_pointer_to_no_function, POINTERS_PTX) {
    const uint64_t values[2] = {0, 12345};
    for (int n = 0; n < 2; n++) {
        const struct {
            uint64_t pointer, out;
        } parameters = {launch_testing_upload(t, &values[n], sizeof values[n]),
                        launch_testing_upload(t, NULL, sizeof(int))};
        EXPECT_TRUE(!launch_testing_block(t, "through_a_value", 1, &parameters));
        EXPECT_INT_EQ(SIMT_FAULT_OUT_OF_BOUNDS, t->fault.kind);
        EXPECT_TRUE(strstr(t->fault.text, "where there is none") != NULL);
    }
}
