/* Every kernel of the corpus, for every architecture, is decoded: what simt does not run is listed
 * here by name. And calls through pointers, which the decoder resolves for a whole kernel. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/file.h"
#include "common/simt/core/launch/launch_testing.h"
#include "common/testing/testing.h"

static const char *const corpus[] = {"async", "atomics", "calls", "control", "data", "half",
                                     "math",  "reduce",  "sgemm", "tensor",  "warp"};
static const unsigned architectures[] = {75, 80, 86, 89, 90};

/* Kernels that cannot run, with the instruction that stops them. */
static const struct {
    const char *kernel, *instruction;
    unsigned architecture; /* from this one on */
} refused[] = {
    /* Clusters of two blocks that read each other's shared memory. */
    {"_Z8clustersPi", "barrier.cluster.arrive", 90},
};

static const char *refusal_of(const char *kernel, unsigned architecture) {
    for (size_t n = 0; n < sizeof refused / sizeof *refused; n++) {
        if (strcmp(refused[n].kernel, kernel) == 0 && architecture >= refused[n].architecture) {
            return refused[n].instruction;
        }
    }
    return NULL;
}

static void check_kernel(struct simt_module *module, const char *kernel, unsigned architecture) {
    struct error error = {0};
    struct simt_kernel_info info;
    const char *refusal = refusal_of(kernel, architecture);
    enum status status = simt_kernel_info(module, kernel, &info, &error);
    if (refusal == NULL && status != STATUS_OK) {
        TEST_FAIL("compute_%u: %s", architecture, error_text(&error, status));
    } else if (refusal != NULL) {
        EXPECT_STATUS(STATUS_UNSUPPORTED, status);
        EXPECT_TRUE(strstr(error.message, refusal) != NULL);
    }
}

/* @return kernels that were looked at */
static int check_file(const char *name, unsigned architecture) {
    char path[256];
    char *text;
    size_t size;
    struct error error = {0};
    struct ptx_module *ptx;
    struct simt_memory *memory;
    struct simt_module *module;
    snprintf(path, sizeof path, "%s/%s_%u.ptx", CORPUS, name, architecture);
    enum status status = file_read(path, (size_t)1 << 26, &text, &size, &error);
    if (status == STATUS_OK) {
        status = ptx_parse(&ptx, text, size, &error);
        free(text);
    }
    if (status != STATUS_OK || simt_memory_create(&memory, (size_t)1 << 28) != STATUS_OK) {
        TEST_FAIL("%s: %s", path, error_text(&error, status));
        return 0;
    }
    int kernels = 0;
    status = simt_module_load(&module, ptx, memory, &error);
    if (status != STATUS_OK) {
        TEST_FAIL("%s: %s", path, error_text(&error, status));
        simt_memory_free(memory);
        return 0;
    }
    for (size_t n = 0; n < ptx->function_count; n++) {
        if (ptx->functions[n].entry) {
            check_kernel(module, ptx->functions[n].name, architecture);
            kernels++;
        }
    }
    simt_module_unload(module);
    simt_memory_free(memory);
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

C_TEST(corpus_decode, lanes_that_call_different_functions) {
    struct launch_testing t;
    ASSERT_TRUE(launch_testing_open(&t, POINTERS_PTX));
    uint64_t out = launch_testing_upload(&t, NULL, 64 * sizeof(int));
    struct testing_launch launch = {
        .kernel = "through_a_table", .threads = {64}, .parameters = &out};
    if (launch_testing_run_clean(&t, &launch)) {
        const int *got = launch_testing_result(&t, out);
        for (int i = 0; i < 64; i++) {
            EXPECT_INT_EQ(i % 3 == 0 ? i + 5 : i % 3 == 1 ? i - 5 : i * 5, got[i]);
        }
    }
    launch.kernel = "of_objects";
    if (launch_testing_run_clean(&t, &launch)) {
        const int *got = launch_testing_result(&t, out);
        for (int i = 0; i < 64; i++) {
            EXPECT_INT_EQ(i % 2 == 0 ? i * i : i + 1, got[i]);
        }
    }
    launch_testing_close(&t);
}

C_TEST(corpus_decode, a_pointer_to_no_function) {
    struct launch_testing t;
    const uint64_t values[2] = {0, 12345};
    ASSERT_TRUE(launch_testing_open(&t, POINTERS_PTX));
    for (int n = 0; n < 2; n++) {
        const struct {
            uint64_t pointer, out;
        } parameters = {launch_testing_upload(&t, &values[n], sizeof values[n]),
                        launch_testing_upload(&t, NULL, sizeof(int))};
        const struct testing_launch launch = {
            .kernel = "through_a_value", .threads = {1}, .parameters = &parameters};
        EXPECT_TRUE(!launch_testing_run(&t, &launch));
        EXPECT_INT_EQ(SIMT_FAULT_OUT_OF_BOUNDS, t.fault.kind);
        EXPECT_TRUE(strstr(t.fault.text, "where there is none") != NULL);
    }
    launch_testing_close(&t);
}
