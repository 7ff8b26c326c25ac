/* Each function that allocates is counted, whoever calls it; on simt as its runtime counts. */
#include <string.h>

#include <cuda_runtime_api.h>

#include "common/device/device.h"
#include "common/simt/simt.h"
#include "common/testing/testing.h"
#include "grader/isolation/allocations.h"

enum { BYTES = 1000, SIDE = 16 };

/* What simt has counted beside; nothing on a GPU. */
static struct simt_totals simts(void) {
    struct simt_api simt;
    struct simt_totals totals = {.launches = 0};
    if (simt_find(&simt)) {
        simt.read_totals(&totals);
    }
    return totals;
}

static bool is_simt(void) {
    struct simt_api simt;
    return simt_find(&simt);
}

/* Expects these numbers since `before`, and the same of simt's since `then`. */
static void expect(uint64_t allocations, uint64_t releases, struct allocations before,
                   struct simt_totals then) {
    const struct allocations now = allocations_so_far();
    const struct simt_totals totals = simts();
    EXPECT_INT_EQ(allocations, now.allocations - before.allocations);
    EXPECT_INT_EQ(releases, now.releases - before.releases);
    if (is_simt()) {
        EXPECT_INT_EQ(allocations, totals.allocations - then.allocations);
        EXPECT_INT_EQ(releases, totals.releases - then.releases);
    }
}

C_TEST(allocations, are_counted_by_whichever_function) {
    struct error error = {0};
    void *memory[6] = {NULL};
    size_t pitch;
    cudaMemPool_t pool;
    struct cudaPitchedPtr planes;
    if (device_open(&error) != STATUS_OK) {
        TEST_SKIP("%s", error.message);
    }
    const struct allocations before = allocations_so_far();
    const struct simt_totals then = simts();
    EXPECT_OK(device_alloc(&memory[0], BYTES, &error));
    EXPECT_INT_EQ(cudaSuccess, cudaMalloc(&memory[1], BYTES));
    EXPECT_INT_EQ(cudaSuccess, cudaMallocAsync(&memory[2], BYTES, NULL));
    EXPECT_INT_EQ(cudaSuccess, cudaDeviceGetDefaultMemPool(&pool, 0));
    EXPECT_INT_EQ(cudaSuccess, cudaMallocFromPoolAsync(&memory[3], BYTES, pool, NULL));
    EXPECT_INT_EQ(cudaSuccess, cudaMallocPitch(&memory[4], &pitch, SIDE, SIDE));
    EXPECT_INT_EQ(cudaSuccess, cudaMalloc3D(&planes, (struct cudaExtent){SIDE, SIDE, 2}));
    memory[5] = planes.ptr;
    expect(6, 0, before, then);
    EXPECT_INT_EQ(cudaSuccess, cudaFreeAsync(memory[2], NULL));
    EXPECT_INT_EQ(cudaSuccess, cudaFreeAsync(memory[3], NULL));
    device_free(memory[0]);
    EXPECT_INT_EQ(cudaSuccess, cudaFree(memory[1]));
    EXPECT_INT_EQ(cudaSuccess, cudaFree(memory[4]));
    EXPECT_INT_EQ(cudaSuccess, cudaFree(memory[5]));
    expect(6, 6, before, then);
}

/* Managed memory is the GPU's, too: simt tells it apart. */
C_TEST(allocations, of_managed_memory_count) {
    struct error error = {0};
    void *memory = NULL;
    if (device_open(&error) != STATUS_OK) {
        TEST_SKIP("%s", error.message);
    }
    const struct allocations before = allocations_so_far();
    EXPECT_INT_EQ(cudaSuccess, cudaMallocManaged(&memory, BYTES, cudaMemAttachGlobal));
    EXPECT_INT_EQ(cudaSuccess, cudaFree(memory));
    const struct allocations now = allocations_so_far();
    EXPECT_INT_EQ(1, now.allocations - before.allocations);
    EXPECT_INT_EQ(1, now.releases - before.releases);
}

C_TEST(allocations, of_nothing_or_too_much_do_not_count) {
    struct error error = {0};
    void *memory = NULL;
    if (device_open(&error) != STATUS_OK) {
        TEST_SKIP("%s", error.message);
    }
    const struct allocations before = allocations_so_far();
    EXPECT_INT_EQ(cudaSuccess, cudaMalloc(&memory, 0));
    EXPECT_INT_EQ(cudaErrorMemoryAllocation, cudaMalloc(&memory, (size_t)1 << 60));
    EXPECT_INT_EQ(cudaSuccess, cudaFree(NULL));
    const struct allocations now = allocations_so_far();
    EXPECT_INT_EQ(0, now.allocations - before.allocations);
    EXPECT_INT_EQ(0, now.releases - before.releases);
    (void)cudaGetLastError();
}
