/*
 * Launches through the runtime API: parameters, shared memory, symbols, streams,
 * graphs, refused launches. Wanted values of refusals and occupancy, but for those of clusters,
 * were seen on an H200, those of child graphs and of event nodes are in CUDA's documentation; the
 * program runs on either.
 */
#include <string.h>

#include <cuda_runtime_api.h>

#include "common/simt/runtime/testdata/checks.h"
#include "common/simt/runtime/testdata/kernels.h"
#include "common/simt/simt.h"
#include "common/testing/fixture.h"

enum { COUNT = 1000, BLOCK = 128, GRID = 8 };

/** Input 0, 1, 2 ... and an output of COUNT ints on the device. */
struct arrays {
    int *d_in, *d_out;
    int host[COUNT];
};

static bool create(struct arrays *arrays) {
    bool good = cudaMalloc((void **)&arrays->d_in, sizeof arrays->host) == cudaSuccess &&
                cudaMalloc((void **)&arrays->d_out, sizeof arrays->host) == cudaSuccess;
    for (int i = 0; i < COUNT; i++) {
        arrays->host[i] = i;
    }
    return good && cudaMemcpy(arrays->d_in, arrays->host, sizeof arrays->host,
                              cudaMemcpyHostToDevice) == cudaSuccess;
}

/** Wants out[i] = i * factor + offset. */
static void expect_line(struct arrays *arrays, int factor, int offset) {
    memset(arrays->host, 0xff, sizeof arrays->host);
    WANT(cudaSuccess,
         cudaMemcpy(arrays->host, arrays->d_out, sizeof arrays->host, cudaMemcpyDeviceToHost));
    int wrong = 0;
    for (int i = 0; i < COUNT; i++) {
        wrong += arrays->host[i] != i * factor + offset;
    }
    EXPECT_INT_EQ(0, wrong);
}

static void destroy(struct arrays *arrays) {
    WANT(cudaSuccess, cudaFree(arrays->d_in));
    WANT(cudaSuccess, cudaFree(arrays->d_out));
}

#define ARRAYS_TEST(name) FIXTURE_TEST(kernel, name, struct arrays, a, create(a), destroy(a))

ARRAYS_TEST(runs_and_writes) {
    launch_scale(a->d_out, a->d_in, 3, -5, COUNT, GRID, BLOCK, NULL);
    WANT(cudaSuccess, cudaGetLastError());
    expect_line(a, 3, -5);
}

C_TEST(kernel, gets_parameters_of_all_sizes) {
    double *d_out = NULL;
    double got = 0;
    struct mixed mixed = {.c = 9, .d = 2.5, .s = {1, -20, 300}};
    WANT(cudaSuccess, cudaMalloc((void **)&d_out, sizeof got));
    launch_mixed(d_out, 7, mixed, 1LL << 40);
    WANT(cudaSuccess, cudaMemcpy(&got, d_out, sizeof got, cudaMemcpyDeviceToHost));
    EXPECT_NEAR(7 + 2500.0 + 281 + 1099511627776.0, got, 0);
    WANT(cudaSuccess, cudaFree(d_out));
}

ARRAYS_TEST(can_be_launched_by_address) {
    int factor = -2;
    int offset = 11;
    int count = COUNT;
    void *arguments[] = {&a->d_out, &a->d_in, &factor, &offset, &count};
    dim3 grid = {.x = GRID, .y = 1, .z = 1};
    dim3 block = {.x = BLOCK, .y = 1, .z = 1};
    WANT(cudaSuccess, cudaLaunchKernel(kernel_scale(), grid, block, arguments, 0, NULL));
    expect_line(a, -2, 11);
    offset = 12;
    WANT(cudaSuccess, cudaLaunchCooperativeKernel(kernel_scale(), grid, block, arguments, 0, NULL));
    expect_line(a, -2, 12);
    cudaLaunchConfig_t config = {.gridDim = grid, .blockDim = block};
    offset = 13;
    WANT(cudaSuccess, cudaLaunchKernelExC(&config, kernel_scale(), arguments));
    expect_line(a, -2, 13);
    grid.x = 1 << 20;
    WANT(cudaErrorCooperativeLaunchTooLarge,
         cudaLaunchCooperativeKernel(kernel_scale(), grid, block, arguments, 0, NULL));
}

C_TEST(kernel, counts_every_thread) {
    unsigned *d_sum = NULL;
    unsigned sum = 0;
    WANT(cudaSuccess, cudaMalloc((void **)&d_sum, sizeof sum));
    WANT(cudaSuccess, cudaMemset(d_sum, 0, sizeof sum));
    launch_count(d_sum, 37, 70);
    WANT(cudaSuccess, cudaMemcpy(&sum, d_sum, sizeof sum, cudaMemcpyDeviceToHost));
    EXPECT_INT_EQ(37 * 70, sum);
    WANT(cudaSuccess, cudaFree(d_sum));
}

ARRAYS_TEST(takes_dynamic_shared_memory_as_allowed) {
    int sum = 0;
    launch_shared_sum(a->d_out, a->d_in, 256 * sizeof(int));
    WANT(cudaSuccess, cudaMemcpy(&sum, a->d_out, sizeof sum, cudaMemcpyDeviceToHost));
    EXPECT_INT_EQ(255 * 256 / 2, sum);
    launch_shared_sum(a->d_out, a->d_in, 48 * 1024 + 1);
    WANT_KEPT(cudaErrorInvalidValue, cudaGetLastError());
    int optin = 0;
    WANT(cudaSuccess, cudaDeviceGetAttribute(&optin, cudaDevAttrMaxSharedMemoryPerBlockOptin, 0));
    const enum cudaFuncAttribute limit = cudaFuncAttributeMaxDynamicSharedMemorySize;
    WANT(cudaErrorInvalidValue, cudaFuncSetAttribute(kernel_shared_sum(), limit, optin + 1));
    WANT(cudaErrorInvalidValue, cudaFuncSetAttribute(kernel_static_shared(), limit, optin));
    WANT(cudaSuccess, cudaFuncSetAttribute(kernel_static_shared(), limit, optin - 4096));
    WANT(cudaSuccess, cudaFuncSetAttribute(kernel_shared_sum(), limit, optin));
    launch_shared_sum(a->d_out, a->d_in, (size_t)optin);
    WANT(cudaSuccess, cudaDeviceSynchronize());
}

ARRAYS_TEST(refuses_grids_and_blocks_that_no_gpu_has) {
    const unsigned wrong[][2] = {{0, 1}, {1, 0}, {1, 1025}, {0x80000000u, 1}};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        launch_scale(a->d_out, a->d_in, 1, 1, COUNT, wrong[i][0], wrong[i][1], NULL);
        WANT_KEPT(cudaErrorInvalidValue, cudaGetLastError());
    }
    void *arguments[] = {&a->d_out};
    dim3 one = {.x = 1, .y = 1, .z = 1};
    dim3 block = {.x = 129, .y = 1, .z = 1};
    WANT(cudaErrorInvalidValue, cudaLaunchKernel(kernel_bounded(), one, block, arguments, 0, NULL));
    block.x = 128;
    WANT(cudaSuccess, cudaLaunchKernel(kernel_bounded(), one, block, arguments, 0, NULL));
    dim3 deep = {.x = 1, .y = 1, .z = 65};
    WANT(cudaErrorInvalidValue, cudaLaunchKernel(kernel_bounded(), one, deep, arguments, 0, NULL));
    dim3 tall = {.x = 1, .y = 65536, .z = 1};
    WANT(cudaErrorInvalidValue, cudaLaunchKernel(kernel_bounded(), tall, one, arguments, 0, NULL));
    WANT(cudaSuccess, cudaDeviceSynchronize());
}

C_TEST(kernel, tells_its_attributes) {
    struct cudaFuncAttributes attributes;
    WANT(cudaSuccess, cudaFuncGetAttributes(&attributes, kernel_bounded()));
    EXPECT_INT_EQ(128, attributes.maxThreadsPerBlock);
    EXPECT_INT_EQ(0, attributes.sharedSizeBytes);
    EXPECT_INT_EQ(49152, attributes.maxDynamicSharedSizeBytes);
    EXPECT_INT_EQ(75, attributes.ptxVersion);
    WANT(cudaSuccess, cudaFuncGetAttributes(&attributes, kernel_static_shared()));
    EXPECT_INT_EQ(4096, attributes.sharedSizeBytes);
    EXPECT_INT_EQ(1024, attributes.maxThreadsPerBlock);
    size_t offset = 0;
    size_t bytes = 0;
    WANT(cudaSuccess, cudaFuncGetParamInfo(kernel_scale(), 2, &offset, &bytes));
    EXPECT_INT_EQ(16, offset);
    EXPECT_INT_EQ(4, bytes);
    WANT(cudaErrorInvalidValue, cudaFuncGetParamInfo(kernel_scale(), 5, &offset, &bytes));
    WANT(cudaErrorInvalidValue, cudaFuncGetAttributes(NULL, kernel_scale()));
}

C_TEST(kernel, occupancy_of_an_h200) {
    struct cudaDeviceProp properties;
    WANT(cudaSuccess, cudaGetDeviceProperties(&properties, 0));
    if (strstr(properties.name, "H200") == NULL) {
        TEST_SKIP("the figures are those of an H200, not of %s", properties.name);
    }
    /* Threads and dynamic bytes of a block, blocks of a kernel with 4096 bytes of its own. */
    const int want[][3] = {{1, 0, 32},      {33, 0, 32},    {64, 0, 32},  {96, 0, 21},
                           {128, 0, 16},    {1000, 0, 2},   {1025, 0, 0}, {32, 20000, 9},
                           {256, 20000, 8}, {64, 100000, 2}};
    for (size_t i = 0; i < sizeof want / sizeof *want; i++) {
        int blocks = -1;
        WANT(cudaSuccess, cudaOccupancyMaxActiveBlocksPerMultiprocessor(
                              &blocks, kernel_static_shared(), want[i][0], (size_t)want[i][1]));
        EXPECT_INT_EQ(want[i][2], blocks);
    }
    int blocks = 0;
    WANT(cudaErrorInvalidValue,
         cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, kernel_scale(), 0, 0));
}

/** Runs kernel_scale() in clusters of @p blocks. @return the launch's error */
static cudaError_t scale_in_clusters(struct arrays *a, unsigned grid, unsigned blocks) {
    int factor = 4, offset = (int)blocks, count = COUNT;
    void *arguments[] = {&a->d_out, &a->d_in, &factor, &offset, &count};
    cudaLaunchAttribute attribute = {.id = cudaLaunchAttributeClusterDimension};
    attribute.val.clusterDim.x = blocks;
    attribute.val.clusterDim.y = attribute.val.clusterDim.z = 1;
    cudaLaunchConfig_t config = {
        .gridDim = {grid, 1, 1}, .blockDim = {BLOCK, 1, 1}, .attrs = &attribute, .numAttrs = 1};
    return cudaLaunchKernelExC(&config, kernel_scale(), arguments);
}

/* Not seen on a GPU: the errors of clusters that are refused. */
ARRAYS_TEST(runs_in_clusters) {
    struct simt_api simt;
    int there = 0;
    WANT(cudaSuccess, cudaDeviceGetAttribute(&there, cudaDevAttrClusterLaunch, 0));
    if (there == 0) {
        TEST_SKIP("clusters came with compute capability 9.0");
    }
    for (unsigned blocks = 1; blocks <= 8; blocks *= 2) {
        WANT(cudaSuccess, scale_in_clusters(a, GRID, blocks));
        expect_line(a, 4, (int)blocks);
    }
    WANT(cudaErrorInvalidValue, scale_in_clusters(a, GRID, 0));
    if (simt_find(&simt)) {
        WANT(cudaErrorInvalidClusterSize, scale_in_clusters(a, 9, 2));
        WANT(cudaErrorInvalidClusterSize, scale_in_clusters(a, 16, 16));
    }
    WANT(cudaSuccess,
         cudaFuncSetAttribute(kernel_scale(), cudaFuncAttributeNonPortableClusterSizeAllowed, 1));
    WANT(cudaSuccess, scale_in_clusters(a, 16, 16));
    expect_line(a, 4, 16);
    WANT(cudaSuccess,
         cudaFuncSetAttribute(kernel_scale(), cudaFuncAttributeNonPortableClusterSizeAllowed, 0));
}

C_TEST(kernel, occupancy_of_clusters) {
    int there = 0, clusters = -1, size = -1, blocks = 0, processors = 0;
    WANT(cudaSuccess, cudaDeviceGetAttribute(&there, cudaDevAttrClusterLaunch, 0));
    if (there == 0) {
        TEST_SKIP("clusters came with compute capability 9.0");
    }
    cudaLaunchAttribute attribute = {.id = cudaLaunchAttributeClusterDimension};
    attribute.val.clusterDim.x = 2;
    attribute.val.clusterDim.y = attribute.val.clusterDim.z = 1;
    cudaLaunchConfig_t config = {
        .gridDim = {GRID, 1, 1}, .blockDim = {1024, 1, 1}, .attrs = &attribute, .numAttrs = 1};
    WANT(cudaSuccess, cudaDeviceGetAttribute(&processors, cudaDevAttrMultiProcessorCount, 0));
    WANT(cudaSuccess,
         cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, kernel_scale(), 1024, 0));
    WANT(cudaSuccess, cudaOccupancyMaxActiveClusters(&clusters, kernel_scale(), &config));
    EXPECT_INT_EQ(blocks * processors / 2, clusters);
    WANT(cudaSuccess, cudaOccupancyMaxPotentialClusterSize(&size, kernel_scale(), &config));
    EXPECT_INT_EQ(8, size);
    WANT(cudaErrorInvalidValue, cudaOccupancyMaxActiveClusters(NULL, kernel_scale(), &config));
    WANT(cudaErrorInvalidValue, cudaOccupancyMaxActiveClusters(&clusters, kernel_scale(), NULL));
}

C_TEST(kernel, reads_symbols) {
    int table[8] = {10, 20, 30, 40, 50, 60, 70, 80};
    int counter = 0;
    int *d_out = NULL;
    void *address = NULL;
    size_t bytes = 0;
    WANT(cudaSuccess, cudaGetSymbolSize(&bytes, symbol_table()));
    EXPECT_INT_EQ(sizeof table, bytes);
    WANT(cudaSuccess,
         cudaMemcpyFromSymbol(&counter, symbol_counter(), 4, 0, cudaMemcpyDeviceToHost));
    EXPECT_INT_EQ(5, counter);
    counter = 1000;
    WANT(cudaSuccess, cudaMemcpyToSymbol(symbol_counter(), &counter, 4, 0, cudaMemcpyHostToDevice));
    WANT(cudaSuccess,
         cudaMemcpyToSymbol(symbol_table(), table, sizeof table, 0, cudaMemcpyHostToDevice));
    WANT(cudaSuccess, cudaMalloc((void **)&d_out, sizeof table));
    launch_symbols(d_out);
    WANT(cudaSuccess, cudaMemcpy(table, d_out, sizeof table, cudaMemcpyDeviceToHost));
    EXPECT_INT_EQ(1010, table[0]);
    EXPECT_INT_EQ(1080, table[7]);
    WANT(cudaSuccess, cudaGetSymbolAddress(&address, symbol_counter()));
    WANT(cudaSuccess, cudaMemcpy(&counter, address, 4, cudaMemcpyDeviceToHost));
    EXPECT_INT_EQ(1000, counter);
    WANT(cudaErrorInvalidValue,
         cudaMemcpyToSymbol(symbol_table(), table, 4, sizeof table, cudaMemcpyHostToDevice));
    WANT(cudaErrorInvalidMemcpyDirection,
         cudaMemcpyToSymbol(symbol_table(), table, 4, 0, cudaMemcpyDeviceToHost));
    WANT(cudaErrorInvalidValue, cudaFree(address));
    WANT(cudaSuccess, cudaFree(d_out));
}

C_TEST(kernel, shares_managed_variables_with_the_host) {
    EXPECT_INT_EQ(7, managed_get());
    managed_set(20);
    launch_managed(3);
    WANT(cudaSuccess, cudaDeviceSynchronize());
    EXPECT_INT_EQ(43, managed_get());
}

C_TEST(kernel, uses_pinned_and_managed_memory_in_place) {
    int *pinned = NULL;
    int *managed = NULL;
    WANT(cudaSuccess, cudaMallocHost((void **)&pinned, COUNT * sizeof(int)));
    WANT(cudaSuccess,
         cudaMallocManaged((void **)&managed, COUNT * sizeof(int), cudaMemAttachGlobal));
    for (int i = 0; i < COUNT; i++) {
        pinned[i] = i;
    }
    launch_scale(managed, pinned, 4, 1, COUNT, GRID, BLOCK, NULL);
    WANT(cudaSuccess, cudaDeviceSynchronize());
    EXPECT_INT_EQ(1, managed[0]);
    EXPECT_INT_EQ(4 * (COUNT - 1) + 1, managed[COUNT - 1]);
    WANT(cudaSuccess, cudaFreeHost(pinned));
    WANT(cudaSuccess, cudaFree(managed));
}

/** Milliseconds of modelled time that a launch on host memory of `count` ints takes. */
static float time_of(int *out, int *in, int count) {
    cudaEvent_t events[2];
    float ms = -1;
    for (int i = 0; i < 2; i++) {
        WANT(cudaSuccess, cudaEventCreate(&events[i]));
    }
    WANT(cudaSuccess, cudaEventRecord(events[0], NULL));
    launch_scale(out, in, 2, 1, count, (unsigned)(count + 255) / 256, 256, NULL);
    WANT(cudaSuccess, cudaEventRecord(events[1], NULL));
    WANT(cudaSuccess, cudaEventElapsedTime(&ms, events[0], events[1]));
    for (int i = 0; i < 2; i++) {
        WANT(cudaSuccess, cudaEventDestroy(events[i]));
    }
    return ms;
}

enum { MANY = 1 << 18, CHUNK = 1 << 14 }; /* ints: 1 MiB, 64 KiB */

/** Two arrays of MANY ints, the first of them 0, 1, 2 ... */
struct managed {
    int *in, *out;
};

static bool create_managed(struct managed *m) {
    bool good =
        cudaMallocManaged((void **)&m->in, MANY * sizeof(int), cudaMemAttachGlobal) ==
            cudaSuccess &&
        cudaMallocManaged((void **)&m->out, MANY * sizeof(int), cudaMemAttachGlobal) == cudaSuccess;
    for (int i = 0; good && i < MANY; i++) {
        m->in[i] = i;
    }
    return good;
}

static void destroy_managed(struct managed *m) {
    WANT(cudaSuccess, cudaFree(m->in));
    WANT(cudaSuccess, cudaFree(m->out));
}

/** Times are simt's. */
#define ON_SIMT_ALONE()                           \
    do {                                          \
        struct simt_api simt;                     \
        if (!simt_find(&simt)) {                  \
            TEST_SKIP("this is a GPU: no model"); \
        }                                         \
    } while (0)

#define MANAGED_TEST(name) \
    FIXTURE_TEST(managed, name, struct managed, m, create_managed(m), destroy_managed(m))

/* What crosses the bus takes its time, 55 GB a second, and 3.5 us a move. */
MANAGED_TEST(memory_takes_the_bus) {
    ON_SIMT_ALONE();
    const float chunk = 65536 / 55e6f, move = 3.5e-3f;
    float both = time_of(m->out, m->in, MANY);
    float none = time_of(m->out, m->in, MANY);
    EXPECT_NEAR(32 * chunk + move, both - none, 1e-3);
    EXPECT_INT_EQ(2 * CHUNK + 1, m->out[CHUNK]); /* comes back with all its 64 KiB */
    EXPECT_INT_EQ(2 * CHUNK + 3, m->out[CHUNK + 1]);
    m->in[5 * CHUNK] = 77;
    EXPECT_NEAR(2 * chunk + move, time_of(m->out, m->in, MANY) - none, 1e-3);
    EXPECT_INT_EQ(155, m->out[5 * CHUNK]);
    EXPECT_INT_EQ(2 * MANY - 1, m->out[MANY - 1]);
}

MANAGED_TEST(memory_is_copied_and_set_where_it_is) {
    int host[4] = {9, 8, 7, 6};
    (void)time_of(m->out, m->in, MANY); /* the device has all of it */
    WANT(cudaSuccess, cudaMemcpy(host, m->out + CHUNK - 2, sizeof host, cudaMemcpyDefault));
    EXPECT_INT_EQ(2 * (CHUNK - 2) + 1, host[0]);
    EXPECT_INT_EQ(2 * (CHUNK + 1) + 1, host[3]);
    m->in[0] = 5; /* one piece comes back, the next one stays */
    WANT(cudaSuccess,
         cudaMemcpy(m->out + CHUNK - 2, m->in + CHUNK - 2, sizeof host, cudaMemcpyHostToHost));
    EXPECT_INT_EQ(CHUNK - 2, m->out[CHUNK - 2]);
    EXPECT_INT_EQ(CHUNK + 1, m->out[CHUNK + 1]);
    WANT(cudaSuccess, cudaMemset(m->in + CHUNK / 2, 1, CHUNK * sizeof(int)));
    EXPECT_INT_EQ(0x01010101, m->in[CHUNK]);
    EXPECT_INT_EQ(5, m->in[0]);
    EXPECT_INT_EQ(2 * CHUNK, m->in[2 * CHUNK]);
}

MANAGED_TEST(memory_is_moved_ahead) {
    struct cudaMemLocation device = {.type = cudaMemLocationTypeDevice};
    struct cudaMemLocation host = {.type = cudaMemLocationTypeHost};
    const size_t bytes = MANY * sizeof(int);
    WANT(cudaSuccess, cudaMemPrefetchAsync(m->in, bytes, device, 0, NULL));
    WANT(cudaSuccess, cudaMemPrefetchAsync(m->out, bytes, device, 0, NULL));
    float ahead = time_of(m->out, m->in, MANY);
    EXPECT_NEAR(ahead, time_of(m->out, m->in, MANY), 1e-3);
    WANT(cudaSuccess, cudaMemPrefetchAsync(m->out, bytes, host, 0, NULL));
    EXPECT_INT_EQ(2 * MANY - 1, m->out[MANY - 1]);
    WANT(cudaErrorInvalidValue, cudaMemPrefetchAsync(m->out, bytes + 1, host, 0, NULL));
}

/* It stays with the host: a kernel that uses it reaches across the bus every time. */
MANAGED_TEST(and_pinned_memory_differ) {
    int *pinned = NULL;
    ON_SIMT_ALONE();
    WANT(cudaSuccess, cudaMallocHost((void **)&pinned, MANY * sizeof(int)));
    pinned[MANY - 1] = 4;
    (void)time_of(m->out, m->in, MANY);
    float near = time_of(m->out, m->in, MANY);
    float first = time_of(m->out, pinned, MANY);
    EXPECT_INT_EQ(9, m->out[MANY - 1]);
    (void)time_of(m->out, m->in, MANY);
    float second = time_of(m->out, pinned, MANY);
    EXPECT_NEAR(first, second, 1e-3);
    EXPECT_NEAR(16 * 65536 / 55e6f, second - near, 1e-3);
    WANT(cudaSuccess, cudaFreeHost(pinned));
}

ARRAYS_TEST(takes_time) {
    cudaEvent_t start = NULL;
    cudaEvent_t stop = NULL;
    float once = 0;
    float ten = 0;
    WANT(cudaSuccess, cudaEventCreate(&start));
    WANT(cudaSuccess, cudaEventCreate(&stop));
    for (int launches = 1; launches <= 100; launches += 99) {
        WANT(cudaSuccess, cudaEventRecord(start, NULL));
        for (int i = 0; i < launches; i++) {
            launch_scale(a->d_out, a->d_in, 1, 1, COUNT, GRID, BLOCK, NULL);
        }
        WANT(cudaSuccess, cudaEventRecord(stop, NULL));
        WANT(cudaSuccess, cudaEventSynchronize(stop));
        WANT(cudaSuccess, cudaEventElapsedTime(launches == 1 ? &once : &ten, start, stop));
    }
    EXPECT_TRUE(once > 0);
    EXPECT_TRUE(ten > 2 * once);
    WANT(cudaSuccess, cudaEventDestroy(start));
    WANT(cudaSuccess, cudaEventDestroy(stop));
}

ARRAYS_TEST(is_counted_for_those_who_ask) {
    struct simt_api simt;
    if (!simt_find(&simt)) {
        TEST_SKIP("this is a GPU: nothing counts");
    }
    struct simt_totals before, after;
    simt.read_totals(&before);
    launch_scale(a->d_out, a->d_in, 3, -5, COUNT, GRID, BLOCK, NULL);
    launch_scale(a->d_out, a->d_in, 2, -5, COUNT, GRID, BLOCK, NULL);
    expect_line(a, 2, -5);
    simt.read_totals(&after);
    struct simt_totals did = simt_totals_between(&before, &after);
    enum { WARPS = (COUNT + 31) / 32, SECTORS = COUNT * sizeof(int) / 32 };
    EXPECT_STR_EQ("h200", simt.gpu_key());
    EXPECT_TRUE(simt.name(a->d_out, "out"));
    EXPECT_TRUE(!simt.name(a->d_out, "two\nlines"));
    EXPECT_TRUE(!simt.name(a, "host memory"));
    simt_name_tensor(a->d_in, "in");
    simt_name_tensor(NULL, "nothing");
    EXPECT_INT_EQ(2, did.launches);
    EXPECT_INT_EQ(2 * WARPS, did.counters.global_load_requests);
    EXPECT_INT_EQ(2 * SECTORS, did.counters.global_load_sectors);
    EXPECT_INT_EQ(2 * SECTORS, did.counters.global_store_sectors);
    EXPECT_INT_EQ(1, did.copies_to_host);
    EXPECT_INT_EQ(sizeof a->host, did.bytes_to_host);
    EXPECT_INT_EQ(0, did.copies_to_device);
    EXPECT_INT_EQ(0, did.allocations);
    EXPECT_TRUE(did.nanoseconds > 0 && did.nanoseconds < after.nanoseconds);
}

/* A name is for messages alone: that there is nothing to name is no error of a call's. */
C_TEST(kernel, names_are_no_errors) {
    void *memory = NULL, *other = NULL;
    EXPECT_INT_EQ(cudaSuccess, cudaMalloc(&memory, 256));
    EXPECT_INT_EQ(cudaSuccess, cudaFree(memory));
    simt_name_tensor(memory, "gone");
    EXPECT_INT_EQ(cudaSuccess, cudaMalloc(&other, 256));
    EXPECT_INT_EQ(cudaSuccess, cudaDeviceSynchronize());
    EXPECT_INT_EQ(cudaSuccess, cudaFree(other));
}

/* By whatever function. */
C_TEST(kernel, allocations_are_counted) {
    struct simt_api simt;
    struct simt_totals before, after;
    void *plain = NULL, *ordered = NULL, *pitched = NULL, *managed = NULL, *pinned = NULL;
    static char own[64];
    const struct cudaChannelFormatDesc floats = {32, 0, 0, 0, cudaChannelFormatKindFloat};
    cudaArray_t array = NULL;
    size_t pitch;
    if (!simt_find(&simt)) {
        TEST_SKIP("this is a GPU: nothing counts");
    }
    simt.read_totals(&before);
    WANT(cudaSuccess, cudaMalloc(&plain, 16));
    WANT(cudaSuccess, cudaMallocAsync(&ordered, 16, NULL));
    WANT(cudaSuccess, cudaMallocPitch(&pitched, &pitch, 16, 2));
    WANT(cudaSuccess, cudaMallocManaged(&managed, 16, cudaMemAttachGlobal));
    WANT(cudaSuccess, cudaMallocHost(&pinned, 16));
    WANT(cudaSuccess, cudaHostRegister(own, sizeof own, cudaHostRegisterDefault));
    WANT(cudaSuccess, cudaMallocArray(&array, &floats, 4, 4, cudaArrayDefault));
    simt.read_totals(&after);
    EXPECT_INT_EQ(7, simt_totals_between(&before, &after).allocations);
    EXPECT_INT_EQ(0, simt_totals_between(&before, &after).releases);
    WANT(cudaSuccess, cudaFree(managed));
    WANT(cudaSuccess, cudaFreeHost(pinned));
    WANT(cudaSuccess, cudaHostUnregister(own));
    WANT(cudaSuccess, cudaFreeArray(array));
    WANT(cudaSuccess, cudaFree(plain));
    WANT(cudaSuccess, cudaFree(ordered));
    WANT(cudaSuccess, cudaFree(pitched));
    simt.read_totals(&after);
    EXPECT_INT_EQ(7, simt_totals_between(&before, &after).releases);
}

ARRAYS_TEST(longest_launch_is_told_once) {
    struct simt_api simt;
    struct simt_profile longest;
    if (!simt_find(&simt)) {
        TEST_SKIP("this is a GPU: nobody tells");
    }
    (void)simt.take_longest(&longest);
    launch_scale(a->d_out, a->d_in, 1, 1, 0, 2, BLOCK, NULL);
    launch_scale(a->d_out, a->d_in, 1, 1, COUNT, GRID, BLOCK, NULL);
    launch_scale(a->d_out, a->d_in, 1, 1, 0, 1, BLOCK, NULL);
    EXPECT_TRUE(simt.take_longest(&longest));
    EXPECT_STR_CONTAINS("scale", longest.kernel);
    EXPECT_STR_CONTAINS("H200", longest.gpu);
    EXPECT_INT_EQ(GRID, longest.blocks);
    EXPECT_INT_EQ(GRID, longest.busy);
    EXPECT_INT_EQ(132, longest.processors);
    EXPECT_INT_EQ(BLOCK, longest.block[0]);
    EXPECT_INT_EQ(BLOCK / 32, longest.warps);
    EXPECT_INT_EQ(64, longest.most_warps);
    EXPECT_INT_EQ(SIMT_OCCUPANCY_GRID, longest.limit);
    EXPECT_INT_EQ(SIMT_UNIT_LAUNCH, longest.unit);
    EXPECT_TRUE(longest.registers > 0 && longest.nanoseconds > longest.overhead);
    EXPECT_INT_EQ((COUNT + 31) / 32, longest.counters.global_load_requests);
    EXPECT_TRUE(!simt.take_longest(&longest)); /* it was taken */
    EXPECT_TRUE(longest.nanoseconds == 0);
}

ARRAYS_TEST(replays_what_a_stream_captured) {
    cudaStream_t stream = NULL;
    cudaGraph_t graph = NULL;
    cudaGraphExec_t ready = NULL;
    size_t nodes = 0;
    enum cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
    WANT(cudaSuccess, cudaMemset(a->d_out, 0, sizeof a->host));
    WANT(cudaSuccess, cudaStreamCreate(&stream));
    WANT(cudaErrorIllegalState, cudaStreamEndCapture(stream, &graph));
    WANT(cudaErrorStreamCaptureUnsupported,
         cudaStreamBeginCapture(NULL, cudaStreamCaptureModeGlobal));
    WANT(cudaSuccess, cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
    launch_scale(a->d_out, a->d_in, 2, 1, COUNT, GRID, BLOCK, stream); /* 2i + 1 */
    launch_scale(a->d_in, a->d_out, 1, 0, COUNT, GRID, BLOCK, stream); /* in = 2i + 1 */
    WANT(cudaSuccess, cudaStreamIsCapturing(stream, &status));
    EXPECT_INT_EQ(cudaStreamCaptureStatusActive, status);
    WANT(cudaSuccess, cudaStreamEndCapture(stream, &graph));
    WANT(cudaSuccess, cudaGraphGetNodes(graph, NULL, &nodes));
    EXPECT_INT_EQ(2, nodes);
    expect_line(a, 0, 0); /* nothing ran yet */
    WANT(cudaSuccess, cudaGraphInstantiate(&ready, graph, 0));
    WANT(cudaSuccess, cudaGraphDestroy(graph));
    WANT(cudaSuccess, cudaGraphLaunch(ready, stream));
    WANT(cudaSuccess, cudaGraphLaunch(ready, stream));
    WANT(cudaSuccess, cudaStreamSynchronize(stream));
    expect_line(a, 4, 3);
    WANT(cudaSuccess, cudaStreamBeginCapture(stream, cudaStreamCaptureModeRelaxed));
    WANT(cudaErrorStreamCaptureUnsupported, cudaGraphLaunch(ready, stream));
    WANT(cudaErrorStreamCaptureInvalidated, cudaStreamEndCapture(stream, &graph));
    WANT(cudaSuccess, cudaGraphExecDestroy(ready));
    WANT(cudaSuccess, cudaStreamDestroy(stream));
}

/* A graph whose one node scales the line by a factor. */
static cudaGraph_t graph_of_scale(struct arrays *a, int factor, cudaGraphNode_t *node) {
    int offset = 1;
    int count = COUNT;
    void *arguments[] = {&a->d_out, &a->d_in, &factor, &offset, &count};
    struct cudaKernelNodeParams launch = {.func = (void *)(uintptr_t)kernel_scale(),
                                          .gridDim = {.x = GRID, .y = 1, .z = 1},
                                          .blockDim = {.x = BLOCK, .y = 1, .z = 1},
                                          .kernelParams = arguments};
    cudaGraph_t graph = NULL;
    WANT(cudaSuccess, cudaGraphCreate(&graph, 0));
    WANT(cudaSuccess, cudaGraphAddKernelNode(node, graph, NULL, 0, &launch));
    return graph;
}

/* Modelled microseconds of launches of the line, and then graphs of one, that nobody waits for in
 * between. */
static float time_in_a_row(struct arrays *a, int launches, cudaGraphExec_t graph, int graphs) {
    cudaEvent_t start = NULL, stop = NULL;
    float ms = 0;
    WANT(cudaSuccess, cudaEventCreate(&start));
    WANT(cudaSuccess, cudaEventCreate(&stop));
    WANT(cudaSuccess, cudaDeviceSynchronize());
    WANT(cudaSuccess, cudaEventRecord(start, NULL));
    for (int i = 0; i < launches; i++) {
        launch_scale(a->d_out, a->d_in, 3, 1, COUNT, GRID, BLOCK, NULL);
    }
    for (int i = 0; i < graphs; i++) {
        WANT(cudaSuccess, cudaGraphLaunch(graph, NULL));
    }
    WANT(cudaSuccess, cudaEventRecord(stop, NULL));
    WANT(cudaSuccess, cudaEventSynchronize(stop));
    WANT(cudaSuccess, cudaEventElapsedTime(&ms, start, stop));
    WANT(cudaSuccess, cudaEventDestroy(start));
    WANT(cudaSuccess, cudaEventDestroy(stop));
    return 1e3f * ms;
}

/* An H200: a launch 5.3 us between two events, as a graph 4.2; in a row 3.5 and 1.4. */
ARRAYS_TEST(a_graph_takes_longer_where_the_host_has_waited) {
    struct simt_api simt;
    if (!simt_find(&simt)) {
        TEST_SKIP("this is a GPU: nothing is modelled");
    }
    cudaGraphNode_t work = NULL;
    cudaGraphExec_t ready = NULL;
    cudaGraph_t graph = graph_of_scale(a, 3, &work);
    WANT(cudaSuccess, cudaGraphInstantiate(&ready, graph, 0));
    (void)time_in_a_row(a, 1, ready, 0); /* from then on L2 has the line */
    float launch = time_in_a_row(a, 1, ready, 0), one = time_in_a_row(a, 0, ready, 1);
    float two = time_in_a_row(a, 0, ready, 2), behind = time_in_a_row(a, 1, ready, 1);
    EXPECT_NEAR(1.0, launch - one, 0.05);
    EXPECT_NEAR(1.6, 2 * one - two, 0.05);
    EXPECT_NEAR(two - one, behind - launch, 0.01);
    EXPECT_NEAR(one, time_in_a_row(a, 0, ready, 1), 0.01); /* waited for again */
    WANT(cudaSuccess, cudaGraphExecDestroy(ready));
    WANT(cudaSuccess, cudaGraphDestroy(graph));
}

ARRAYS_TEST(graphs_have_graphs_as_nodes) {
    cudaGraphNode_t inner = NULL, child = NULL, same = NULL;
    cudaGraph_t held = NULL, outer = NULL;
    cudaGraph_t five = graph_of_scale(a, 5, &inner), seven = graph_of_scale(a, 7, &inner);
    cudaGraphExec_t ready = NULL;
    enum cudaGraphNodeType type = cudaGraphNodeTypeEmpty;
    WANT(cudaSuccess, cudaGraphCreate(&outer, 0));
    WANT(cudaSuccess, cudaGraphAddChildGraphNode(&child, outer, NULL, 0, five));
    WANT(cudaSuccess, cudaGraphDestroy(five)); /* the node has a copy */
    WANT(cudaSuccess, cudaGraphNodeGetType(child, &type));
    EXPECT_INT_EQ(cudaGraphNodeTypeGraph, type);
    size_t count = 1;
    WANT(cudaSuccess, cudaGraphChildGraphNodeGetGraph(child, &held));
    WANT(cudaSuccess, cudaGraphGetNodes(held, &same, &count));
    EXPECT_INT_EQ(1, count);
    WANT(cudaSuccess, cudaGraphNodeGetType(same, &type));
    EXPECT_INT_EQ(cudaGraphNodeTypeKernel, type);
    WANT(cudaErrorInvalidValue, cudaGraphChildGraphNodeGetGraph(same, &held));
    WANT(cudaSuccess, cudaGraphInstantiate(&ready, outer, 0));
    WANT(cudaSuccess, cudaGraphLaunch(ready, NULL));
    expect_line(a, 5, 1);
    WANT(cudaSuccess, cudaGraphExecChildGraphNodeSetParams(ready, child, seven));
    WANT(cudaSuccess, cudaGraphLaunch(ready, NULL));
    expect_line(a, 7, 1);
    WANT(cudaErrorInvalidValue, cudaGraphExecChildGraphNodeSetParams(ready, child, outer));
    struct cudaKernelNodeParams launch;
    WANT(cudaSuccess, cudaGraphKernelNodeGetParams(same, &launch)); /* a node of the child */
    WANT(cudaSuccess, cudaGraphExecKernelNodeSetParams(ready, same, &launch));
    WANT(cudaSuccess, cudaGraphLaunch(ready, NULL));
    expect_line(a, 5, 1);
    WANT(cudaSuccess, cudaGraphExecDestroy(ready));
    WANT(cudaSuccess, cudaGraphDestroy(outer));
    WANT(cudaSuccess, cudaGraphDestroy(seven));
}

ARRAYS_TEST(graphs_record_events_and_wait_for_them) {
    cudaGraphNode_t first = NULL, work = NULL, last = NULL, wait = NULL;
    cudaEvent_t start = NULL, stop = NULL, got = NULL;
    cudaGraphExec_t ready = NULL;
    cudaGraph_t graph = graph_of_scale(a, 3, &work);
    float milliseconds = 0;
    WANT(cudaSuccess, cudaEventCreate(&start));
    WANT(cudaSuccess, cudaEventCreate(&stop));
    WANT(cudaSuccess, cudaGraphAddEventWaitNode(&wait, graph, &work, 1, start));
    WANT(cudaSuccess, cudaGraphAddEventRecordNode(&last, graph, &wait, 1, start));
    WANT(cudaSuccess, cudaGraphEventRecordNodeSetEvent(last, stop));
    WANT(cudaSuccess, cudaGraphEventRecordNodeGetEvent(last, &got));
    EXPECT_TRUE(got == stop);
    WANT(cudaSuccess, cudaGraphEventWaitNodeGetEvent(wait, &got));
    EXPECT_TRUE(got == start);
    WANT(cudaErrorInvalidValue, cudaGraphEventWaitNodeGetEvent(last, &got));
    WANT(cudaSuccess, cudaGraphAddEventRecordNode(&first, graph, NULL, 0, start));
    WANT(cudaSuccess, cudaGraphInstantiate(&ready, graph, 0));
    WANT(cudaSuccess, cudaEventRecord(start, NULL));
    WANT(cudaSuccess, cudaGraphExecEventRecordNodeSetEvent(ready, first, stop));
    WANT(cudaSuccess, cudaGraphLaunch(ready, NULL));
    WANT(cudaSuccess, cudaEventSynchronize(stop));
    WANT(cudaSuccess, cudaEventElapsedTime(&milliseconds, start, stop));
    EXPECT_TRUE(milliseconds > 0);
    expect_line(a, 3, 1);
    WANT(cudaSuccess, cudaGraphExecDestroy(ready));
    WANT(cudaSuccess, cudaGraphDestroy(graph));
    WANT(cudaSuccess, cudaEventDestroy(start));
    WANT(cudaSuccess, cudaEventDestroy(stop));
}

ARRAYS_TEST(nodes_of_executable_graphs_are_switched_off) {
    cudaGraphNode_t work = NULL;
    cudaGraphExec_t ready = NULL;
    cudaGraph_t graph = graph_of_scale(a, 3, &work);
    unsigned enabled = 0;
    launch_scale(a->d_out, a->d_in, 2, 0, COUNT, GRID, BLOCK, NULL);
    WANT(cudaSuccess, cudaGraphInstantiate(&ready, graph, 0));
    WANT(cudaSuccess, cudaGraphNodeGetEnabled(ready, work, &enabled));
    EXPECT_INT_EQ(1, enabled);
    WANT(cudaSuccess, cudaGraphNodeSetEnabled(ready, work, 0));
    WANT(cudaSuccess, cudaGraphLaunch(ready, NULL));
    expect_line(a, 2, 0);
    WANT(cudaSuccess, cudaGraphNodeSetEnabled(ready, work, 1));
    WANT(cudaSuccess, cudaGraphLaunch(ready, NULL));
    expect_line(a, 3, 1);
    WANT(cudaSuccess, cudaGraphExecDestroy(ready));
    WANT(cudaSuccess, cudaGraphDestroy(graph));
}

ARRAYS_TEST(is_captured_to_a_graph_of_the_program) {
    cudaGraphNode_t work = NULL, before = NULL, nodes[2] = {NULL, NULL};
    cudaGraphExec_t ready = NULL;
    cudaStream_t stream = NULL;
    cudaGraph_t graph = graph_of_scale(a, 3, &work), ended = NULL;
    size_t count = 2;
    WANT(cudaSuccess, cudaStreamCreate(&stream));
    WANT(cudaSuccess,
         cudaStreamBeginCaptureToGraph(stream, graph, &work, NULL, 1, cudaStreamCaptureModeGlobal));
    launch_scale(a->d_out, a->d_out, 2, 5, COUNT, GRID, BLOCK, stream);
    WANT(cudaSuccess, cudaStreamEndCapture(stream, &ended));
    EXPECT_TRUE(ended == graph);
    WANT(cudaSuccess, cudaGraphGetNodes(graph, nodes, &count));
    EXPECT_INT_EQ(2, count);
    count = 1;
    WANT(cudaSuccess, cudaGraphNodeGetDependencies(nodes[1], &before, NULL, &count));
    EXPECT_TRUE(count == 1 && before == work);
    WANT(cudaSuccess, cudaGraphInstantiate(&ready, graph, 0));
    WANT(cudaSuccess, cudaGraphLaunch(ready, stream));
    WANT(cudaSuccess, cudaStreamSynchronize(stream));
    expect_line(a, 6, 7);
    WANT(cudaSuccess, cudaGraphExecDestroy(ready));
    WANT(cudaSuccess, cudaGraphDestroy(graph));
    WANT(cudaSuccess, cudaStreamDestroy(stream));
}

/* A memset, then a kernel and an empty node behind it, a copy behind both. */
static void add_four(struct arrays *a, int *copied, cudaGraph_t graph, cudaGraphNode_t nodes[4]) {
    int factor = 2, offset = 1, count = COUNT;
    void *arguments[] = {&a->d_out, &a->d_in, &factor, &offset, &count};
    const size_t bytes = COUNT * sizeof *copied;
    static const cudaGraphEdgeData plain[2];
    struct cudaGraphNodeParams set = {
        .type = cudaGraphNodeTypeMemset,
        .memset = {.dst = a->d_in, .value = 7, .elementSize = 4, .width = COUNT, .height = 1}};
    struct cudaGraphNodeParams kernel = {.type = cudaGraphNodeTypeKernel,
                                         .kernel = {.func = (void *)(uintptr_t)kernel_scale(),
                                                    .gridDim = {GRID, 1, 1},
                                                    .blockDim = {BLOCK, 1, 1},
                                                    .kernelParams = arguments}};
    struct cudaGraphNodeParams empty = {.type = cudaGraphNodeTypeEmpty};
    struct cudaGraphNodeParams copy = {
        .type = cudaGraphNodeTypeMemcpy,
        .memcpy = {.copyParams = {.srcPtr = {a->d_out, bytes, bytes, 1},
                                  .dstPtr = {copied, bytes, bytes, 1},
                                  .extent = {bytes, 1, 1},
                                  .kind = cudaMemcpyDeviceToDevice}}};
    WANT(cudaSuccess, cudaGraphAddNode(&nodes[0], graph, NULL, NULL, 0, &set));
    WANT(cudaSuccess, cudaGraphAddNode(&nodes[1], graph, &nodes[0], plain, 1, &kernel));
    WANT(cudaSuccess, cudaGraphAddNode(&nodes[2], graph, &nodes[0], NULL, 1, &empty));
    WANT(cudaSuccess, cudaGraphAddNode(&nodes[3], graph, &nodes[1], plain, 2, &copy));
}

/* 0 to 1, 0 to 2, 1 to 3, 2 to 3. */
static void expect_four_edges(cudaGraph_t graph, cudaGraphNode_t nodes[4]) {
    static const int wanted[4][2] = {{0, 1}, {0, 2}, {1, 3}, {2, 3}};
    cudaGraphNode_t from[5], to[5], next[2];
    cudaGraphEdgeData edges[5];
    size_t count = 0;
    WANT(cudaSuccess, cudaGraphGetEdges(graph, NULL, NULL, NULL, &count));
    EXPECT_INT_EQ(4, count);
    count = 5;
    WANT(cudaSuccess, cudaGraphGetEdges(graph, from, to, edges, &count));
    ASSERT_TRUE(count == 4);
    for (int n = 0; n < 4; n++) {
        EXPECT_TRUE(from[n] == nodes[wanted[n][0]] && to[n] == nodes[wanted[n][1]]);
        EXPECT_INT_EQ(0, edges[n].type);
    }
    WANT(cudaErrorInvalidValue, cudaGraphGetEdges(graph, from, NULL, NULL, &count));
    WANT(cudaErrorInvalidValue, cudaGraphGetEdges(NULL, from, to, NULL, &count));
    count = 2;
    WANT(cudaSuccess, cudaGraphNodeGetDependentNodes(nodes[0], next, edges, &count));
    EXPECT_TRUE(count == 2 && next[0] == nodes[1] && next[1] == nodes[2]);
    WANT(cudaSuccess, cudaGraphNodeGetDependentNodes(nodes[3], NULL, NULL, &count));
    EXPECT_INT_EQ(0, count);
}

ARRAYS_TEST(nodes_of_all_kinds_are_added_by_one_call) {
    cudaGraph_t graph = NULL, parent = NULL;
    cudaGraphExec_t ready = NULL;
    cudaGraphNode_t nodes[4] = {NULL}, node = NULL;
    int *copied = NULL;
    struct cudaGraphNodeParams child = {.type = cudaGraphNodeTypeGraph};
    cudaGraphEdgeData special = {.type = 1};
    WANT(cudaSuccess, cudaMalloc((void **)&copied, COUNT * sizeof *copied));
    WANT(cudaSuccess, cudaGraphCreate(&graph, 0));
    add_four(a, copied, graph, nodes);
    expect_four_edges(graph, nodes);
    WANT(cudaSuccess, cudaGraphCreate(&parent, 0));
    child.graph.graph = graph;
    WANT(cudaSuccess, cudaGraphAddNode(&node, parent, NULL, NULL, 0, &child));
    WANT(cudaErrorNotSupported, cudaGraphAddNode(&node, parent, &node, &special, 1, &child));
    WANT(cudaErrorInvalidValue, cudaGraphAddNode(&node, parent, NULL, NULL, 0, NULL));
    WANT(cudaSuccess, cudaGraphInstantiate(&ready, parent, 0));
    WANT(cudaSuccess, cudaGraphLaunch(ready, NULL));
    WANT(cudaSuccess, cudaMemcpy(a->host, copied, COUNT * sizeof *copied, cudaMemcpyDeviceToHost));
    EXPECT_INT_EQ(15, a->host[0]);
    EXPECT_INT_EQ(15, a->host[COUNT - 1]);
    WANT(cudaSuccess, cudaGraphExecDestroy(ready));
    WANT(cudaSuccess, cudaGraphDestroy(parent));
    WANT(cudaSuccess, cudaGraphDestroy(graph));
    WANT(cudaSuccess, cudaFree(copied));
}

C_TEST(graph, spoiled_captures_fail_at_their_end) {
    cudaStream_t stream = NULL;
    cudaGraph_t graph = NULL;
    void *memory = NULL;
    WANT(cudaSuccess, cudaStreamCreate(&stream));
    WANT(cudaSuccess, cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
    WANT(cudaErrorIllegalState, cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
    WANT(cudaErrorStreamCaptureUnsupported, cudaMalloc(&memory, 100));
    WANT(cudaErrorStreamCaptureInvalidated, cudaStreamEndCapture(stream, &graph));
    EXPECT_TRUE(graph == NULL);
    WANT(cudaSuccess, cudaStreamBeginCapture(stream, cudaStreamCaptureModeRelaxed));
    WANT(cudaSuccess, cudaMalloc(&memory, 100));
    WANT(cudaErrorStreamCaptureUnsupported, cudaStreamSynchronize(stream));
    WANT(cudaErrorStreamCaptureInvalidated, cudaStreamEndCapture(stream, &graph));
    WANT(cudaSuccess, cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
    WANT(cudaErrorStreamCaptureImplicit, cudaMemset(memory, 0, 100));
    WANT(cudaErrorStreamCaptureInvalidated, cudaStreamEndCapture(stream, &graph));
    WANT(cudaSuccess, cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
    WANT(cudaErrorStreamCaptureUnsupported, cudaDeviceSynchronize());
    WANT(cudaErrorStreamCaptureInvalidated, cudaStreamEndCapture(stream, &graph));
    WANT(cudaSuccess, cudaFree(memory));
    WANT(cudaSuccess, cudaStreamDestroy(stream));
}

/** Launches out = in * factor + offset so that it may begin before the work before it ends. */
static void launch_overlapping(struct arrays *a, int factor, int offset, int allowed,
                               cudaStream_t stream) {
    int count = COUNT;
    void *arguments[] = {&a->d_out, &a->d_in, &factor, &offset, &count};
    cudaLaunchAttribute attribute = {.id = cudaLaunchAttributeProgrammaticStreamSerialization};
    attribute.val.programmaticStreamSerializationAllowed = allowed;
    const cudaLaunchConfig_t config = {.gridDim = {.x = GRID, .y = 1, .z = 1},
                                       .blockDim = {.x = BLOCK, .y = 1, .z = 1},
                                       .stream = stream,
                                       .attrs = &attribute,
                                       .numAttrs = 1};
    WANT(cudaSuccess, cudaLaunchKernelExC(&config, kernel_scale(), arguments));
}

ARRAYS_TEST(may_overlap_the_launch_before) {
    launch_overlapping(a, 7, 2, 1, NULL);
    expect_line(a, 7, 2);
    launch_overlapping(a, 5, 1, 0, NULL);
    expect_line(a, 5, 1);
}

ARRAYS_TEST(captures_launches_that_may_overlap) {
    cudaStream_t stream = NULL;
    cudaGraph_t graph = NULL;
    cudaGraphExec_t ready = NULL;
    size_t nodes = 0;
    WANT(cudaSuccess, cudaMemset(a->d_out, 0, sizeof a->host));
    WANT(cudaSuccess, cudaStreamCreate(&stream));
    WANT(cudaSuccess, cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
    launch_scale(a->d_out, a->d_in, 2, 1, COUNT, GRID, BLOCK, stream);
    launch_overlapping(a, 3, 4, 1, stream);
    WANT(cudaSuccess, cudaStreamEndCapture(stream, &graph));
    WANT(cudaSuccess, cudaGraphGetNodes(graph, NULL, &nodes));
    EXPECT_INT_EQ(2, nodes);
    WANT(cudaSuccess, cudaGraphInstantiate(&ready, graph, 0));
    WANT(cudaSuccess, cudaGraphLaunch(ready, stream));
    WANT(cudaSuccess, cudaStreamSynchronize(stream));
    expect_line(a, 3, 4);
    WANT(cudaSuccess, cudaGraphExecDestroy(ready));
    WANT(cudaSuccess, cudaGraphDestroy(graph));
    WANT(cudaSuccess, cudaStreamDestroy(stream));
}

/** Captures a fork into a second stream, joined again or not. @return error of the end */
static cudaError_t capture_fork(struct arrays *a, bool join, cudaGraph_t *graph) {
    cudaStream_t first = NULL;
    cudaStream_t second = NULL;
    cudaEvent_t forked = NULL;
    cudaEvent_t done = NULL;
    WANT(cudaSuccess, cudaStreamCreate(&first));
    WANT(cudaSuccess, cudaStreamCreate(&second));
    WANT(cudaSuccess, cudaEventCreateWithFlags(&forked, cudaEventDisableTiming));
    WANT(cudaSuccess, cudaEventCreateWithFlags(&done, cudaEventDisableTiming));
    WANT(cudaSuccess, cudaStreamBeginCapture(first, cudaStreamCaptureModeGlobal));
    WANT(cudaSuccess, cudaEventRecord(forked, first));
    WANT(cudaSuccess, cudaStreamWaitEvent(second, forked, 0));
    launch_scale(a->d_out, a->d_in, 6, 2, COUNT, GRID, BLOCK, second);
    WANT(cudaSuccess, cudaEventRecord(done, second));
    if (join) {
        WANT(cudaSuccess, cudaStreamWaitEvent(first, done, 0));
    }
    cudaError_t error = cudaStreamEndCapture(first, graph);
    (void)cudaGetLastError();
    WANT(cudaSuccess, cudaStreamDestroy(second));
    WANT(cudaSuccess, cudaStreamDestroy(first));
    WANT(cudaSuccess, cudaEventDestroy(forked));
    WANT(cudaSuccess, cudaEventDestroy(done));
    return error;
}

ARRAYS_TEST(streams_that_fork_must_join) {
    cudaGraph_t graph = NULL;
    cudaGraphExec_t ready = NULL;
    WANT_KEPT(cudaErrorStreamCaptureUnjoined, capture_fork(a, false, &graph));
    WANT_KEPT(cudaSuccess, capture_fork(a, true, &graph));
    WANT(cudaSuccess, cudaGraphInstantiate(&ready, graph, 0));
    WANT(cudaSuccess, cudaGraphLaunch(ready, NULL));
    expect_line(a, 6, 2);
    WANT(cudaSuccess, cudaGraphExecDestroy(ready));
    WANT(cudaSuccess, cudaGraphDestroy(graph));
}

ARRAYS_TEST(is_built_node_by_node) {
    cudaGraph_t graph = NULL;
    cudaGraphExec_t ready = NULL;
    cudaGraphNode_t cleared = NULL;
    cudaGraphNode_t scaled = NULL;
    cudaGraphNode_t copied = NULL;
    enum cudaGraphNodeType type = cudaGraphNodeTypeEmpty;
    int result[COUNT];
    int factor = 5;
    int offset = 6;
    int count = COUNT / 2;
    void *arguments[] = {&a->d_out, &a->d_in, &factor, &offset, &count};
    struct cudaMemsetParams set = {
        .dst = a->d_out, .value = 77, .elementSize = 4, .width = COUNT, .height = 1};
    struct cudaKernelNodeParams launch = {.func = (void *)kernel_scale(),
                                          .gridDim = {.x = GRID, .y = 1, .z = 1},
                                          .blockDim = {.x = BLOCK, .y = 1, .z = 1},
                                          .kernelParams = arguments};
    WANT(cudaSuccess, cudaGraphCreate(&graph, 0));
    WANT(cudaSuccess, cudaGraphAddMemsetNode(&cleared, graph, NULL, 0, &set));
    WANT(cudaSuccess, cudaGraphAddKernelNode(&scaled, graph, &cleared, 1, &launch));
    WANT(cudaSuccess, cudaGraphAddMemcpyNode1D(&copied, graph, &scaled, 1, result, a->d_out,
                                               sizeof result, cudaMemcpyDeviceToHost));
    WANT(cudaSuccess, cudaGraphNodeGetType(scaled, &type));
    EXPECT_INT_EQ(cudaGraphNodeTypeKernel, type);
    WANT(cudaSuccess, cudaGraphInstantiate(&ready, graph, 0));
    WANT(cudaSuccess, cudaGraphLaunch(ready, NULL));
    WANT(cudaSuccess, cudaDeviceSynchronize());
    EXPECT_INT_EQ(5 * 3 + 6, result[3]);
    EXPECT_INT_EQ(77, result[COUNT - 1]);
    offset = 9;
    WANT(cudaSuccess, cudaGraphExecKernelNodeSetParams(ready, scaled, &launch));
    WANT(cudaSuccess, cudaGraphLaunch(ready, NULL));
    WANT(cudaSuccess, cudaDeviceSynchronize());
    EXPECT_INT_EQ(5 * 3 + 9, result[3]);
    WANT(cudaSuccess, cudaGraphExecDestroy(ready));
    WANT(cudaSuccess, cudaGraphDestroy(graph));
}

/** Captures a fill, a cooperative launch and a copy, one after the other. */
static cudaError_t capture_three(struct arrays *a, int *half, cudaStream_t stream,
                                 cudaGraph_t *graph) {
    int factor = 4, offset = 1, count = COUNT;
    void *arguments[] = {&a->d_out, &a->d_in, &factor, &offset, &count};
    dim3 grid = {.x = GRID, .y = 1, .z = 1};
    dim3 block = {.x = BLOCK, .y = 1, .z = 1};
    WANT(cudaSuccess, cudaStreamBeginCapture(stream, cudaStreamCaptureModeRelaxed));
    WANT(cudaSuccess, cudaMemsetAsync(a->d_out, 3, sizeof a->host, stream));
    WANT(cudaSuccess,
         cudaLaunchCooperativeKernel(kernel_scale(), grid, block, arguments, 0, stream));
    WANT(cudaSuccess, cudaMemcpyAsync(half, a->d_out, COUNT / 2 * sizeof *half,
                                      cudaMemcpyDeviceToDevice, stream));
    return cudaStreamEndCapture(stream, graph);
}

/* Memset, kernel, copy: each waits for the one before it. */
static void expect_dependencies(cudaGraph_t graph, cudaGraphNode_t nodes[3]) {
    cudaGraphNode_t before = NULL;
    cudaGraphEdgeData edge;
    size_t one = 1;
    WANT(cudaSuccess, cudaGraphNodeGetDependencies(nodes[1], &before, &edge, &one));
    EXPECT_INT_EQ(1, one);
    EXPECT_TRUE(before == nodes[0]);
    WANT(cudaSuccess, cudaGraphNodeGetDependencies(nodes[0], NULL, NULL, &one));
    EXPECT_INT_EQ(0, one);
    WANT(cudaErrorInvalidValue, cudaGraphNodeGetDependencies(nodes[1], &before, &edge, &one));
    WANT(cudaErrorInvalidValue, cudaGraphGetNodes(graph, nodes, &one));
    WANT(cudaErrorInvalidValue, cudaGraphGetRootNodes(graph, nodes, &one));
    EXPECT_INT_EQ(0, one);
}

static void expect_kernel_node(cudaGraphNode_t nodes[3], struct cudaKernelNodeParams *kernel) {
    cudaLaunchAttributeValue value;
    const char *name = NULL;
    WANT(cudaErrorInvalidValue, cudaGraphKernelNodeGetParams(nodes[0], kernel));
    WANT(cudaSuccess, cudaGraphKernelNodeGetParams(nodes[1], kernel));
    EXPECT_INT_EQ(GRID, kernel->gridDim.x);
    WANT(cudaSuccess, cudaFuncGetName(&name, kernel->func));
    EXPECT_TRUE(name != NULL && strstr(name, "scale") != NULL);
    WANT(cudaSuccess,
         cudaGraphKernelNodeGetAttribute(nodes[1], cudaLaunchAttributeCooperative, &value));
    EXPECT_INT_EQ(1, value.cooperative);
}

ARRAYS_TEST(nodes_tell_what_they_do) {
    cudaStream_t stream = NULL;
    cudaGraph_t graph = NULL;
    cudaGraphNode_t nodes[3] = {NULL};
    struct cudaMemsetParams set;
    struct cudaKernelNodeParams kernel;
    struct cudaMemcpy3DParms copy;
    size_t count = 3;
    int *half = NULL;
    WANT(cudaSuccess, cudaMalloc((void **)&half, COUNT / 2 * sizeof *half));
    WANT(cudaSuccess, cudaStreamCreate(&stream));
    WANT(cudaSuccess, capture_three(a, half, stream, &graph));
    WANT(cudaSuccess, cudaGraphGetNodes(graph, nodes, &count));
    ASSERT_TRUE(count == 3);
    expect_dependencies(graph, nodes);
    WANT(cudaSuccess, cudaGraphMemsetNodeGetParams(nodes[0], &set));
    EXPECT_TRUE(set.dst == a->d_out);
    EXPECT_INT_EQ(sizeof a->host, set.width * set.elementSize);
    WANT(cudaSuccess, cudaGraphMemcpyNodeGetParams(nodes[2], &copy));
    EXPECT_TRUE(copy.dstPtr.ptr == half && copy.srcPtr.ptr == a->d_out);
    EXPECT_INT_EQ(COUNT / 2 * sizeof *half, copy.extent.width);
    expect_kernel_node(nodes, &kernel);
    /* What it tells is enough to do the same again. */
    WANT(cudaSuccess, cudaLaunchKernel(kernel.func, kernel.gridDim, kernel.blockDim,
                                       kernel.kernelParams, kernel.sharedMemBytes, stream));
    WANT(cudaSuccess, cudaMemcpy3DAsync(&copy, stream));
    WANT(cudaSuccess, cudaStreamSynchronize(stream));
    expect_line(a, 4, 1);
    WANT(cudaSuccess, cudaMemcpy(a->host, half, COUNT / 2 * sizeof *half, cudaMemcpyDeviceToHost));
    EXPECT_INT_EQ(4 * (COUNT / 2 - 1) + 1, a->host[COUNT / 2 - 1]);
    WANT(cudaSuccess, cudaGraphDestroy(graph));
    WANT(cudaSuccess, cudaStreamDestroy(stream));
    WANT(cudaSuccess, cudaFree(half));
}

/** A node added by hand into a capture, and work that the stream does after it. */
ARRAYS_TEST(nodes_may_be_added_to_a_capture) {
    cudaStream_t stream = NULL;
    cudaGraph_t graph = NULL, made = NULL;
    cudaGraphExec_t ready = NULL;
    cudaGraphNode_t node = NULL;
    const cudaGraphNode_t *after = NULL;
    const cudaGraphEdgeData *edges = NULL;
    enum cudaStreamCaptureStatus status;
    size_t count = 0;
    int factor = 2, offset = 1, elements = COUNT;
    void *arguments[] = {&a->d_out, &a->d_in, &factor, &offset, &elements};
    const struct cudaKernelNodeParams kernel = {.func = (void *)(uintptr_t)kernel_scale(),
                                                .gridDim = {.x = GRID, .y = 1, .z = 1},
                                                .blockDim = {.x = BLOCK, .y = 1, .z = 1},
                                                .kernelParams = arguments};
    WANT(cudaSuccess, cudaStreamCreate(&stream));
    WANT(cudaErrorIllegalState, cudaStreamUpdateCaptureDependencies(
                                    stream, &node, NULL, 0, cudaStreamSetCaptureDependencies));
    WANT(cudaSuccess, cudaStreamBeginCapture(stream, cudaStreamCaptureModeRelaxed));
    WANT(cudaSuccess, cudaMemsetAsync(a->d_out, 0, sizeof a->host, stream));
    WANT(cudaSuccess,
         cudaStreamGetCaptureInfo(stream, &status, NULL, &graph, &after, &edges, &count));
    EXPECT_INT_EQ(1, count);
    WANT(cudaSuccess, cudaGraphAddKernelNode(&node, graph, after, count, &kernel));
    WANT(cudaSuccess, cudaStreamUpdateCaptureDependencies(stream, &node, NULL, 1,
                                                          cudaStreamSetCaptureDependencies));
    launch_scale(a->d_in, a->d_out, 1, 0, COUNT, GRID, BLOCK, stream);
    WANT(cudaSuccess, cudaStreamEndCapture(stream, &made));
    EXPECT_TRUE(made == graph);
    WANT(cudaSuccess, cudaGraphInstantiate(&ready, made, 0));
    WANT(cudaSuccess, cudaGraphLaunch(ready, stream));
    WANT(cudaSuccess, cudaGraphLaunch(ready, stream));
    WANT(cudaSuccess, cudaStreamSynchronize(stream));
    expect_line(a, 4, 3);
    WANT(cudaSuccess, cudaGraphExecDestroy(ready));
    WANT(cudaSuccess, cudaGraphDestroy(made));
    WANT(cudaSuccess, cudaStreamDestroy(stream));
}

/** Rows in the middle of d_in go to d_out; then a part of them, by new parameters. */
ARRAYS_TEST(copies_are_nodes_too) {
    enum { WIDTH = 10, ROWS = 5, PITCH = 25 };
    cudaGraph_t graph = NULL;
    cudaGraphExec_t ready = NULL;
    cudaGraphNode_t node = NULL;
    struct cudaMemcpy3DParms copy = {
        .srcPtr = {.ptr = a->d_in + 3, .pitch = PITCH * sizeof(int), .ysize = ROWS},
        .dstPtr = {.ptr = a->d_out, .pitch = WIDTH * sizeof(int), .ysize = ROWS},
        .extent = {.width = WIDTH * sizeof(int), .height = ROWS, .depth = 1},
        .kind = cudaMemcpyDeviceToDevice};
    WANT(cudaSuccess, cudaMemset(a->d_out, 0, sizeof a->host));
    WANT(cudaSuccess, cudaGraphCreate(&graph, 0));
    WANT(cudaErrorInvalidValue, cudaGraphAddMemcpyNode(&node, graph, NULL, 0, NULL));
    WANT(cudaSuccess, cudaGraphAddMemcpyNode(&node, graph, NULL, 0, &copy));
    WANT(cudaSuccess, cudaGraphInstantiate(&ready, graph, 0));
    WANT(cudaSuccess, cudaGraphLaunch(ready, NULL));
    WANT(cudaSuccess, cudaMemcpy(a->host, a->d_out, sizeof a->host, cudaMemcpyDeviceToHost));
    EXPECT_INT_EQ(3 + 4 * PITCH + 9, a->host[4 * WIDTH + 9]);
    EXPECT_INT_EQ(0, a->host[ROWS * WIDTH]);
    copy.dstPtr.ptr = a->d_out + 500;
    WANT(cudaSuccess, cudaGraphExecMemcpyNodeSetParams(ready, node, &copy));
    WANT(cudaSuccess, cudaGraphLaunch(ready, NULL));
    WANT(cudaSuccess, cudaGraphExecMemcpyNodeSetParams1D(ready, node, a->d_out + 600, a->d_in + 7,
                                                         4, cudaMemcpyDeviceToDevice));
    WANT(cudaSuccess, cudaGraphLaunch(ready, NULL));
    WANT(cudaSuccess, cudaMemcpy(a->host, a->d_out, sizeof a->host, cudaMemcpyDeviceToHost));
    EXPECT_INT_EQ(3 + PITCH, a->host[500 + WIDTH]);
    EXPECT_INT_EQ(7, a->host[600]);
    EXPECT_INT_EQ(0, a->host[601]);
    WANT(cudaSuccess, cudaGraphExecDestroy(ready));
    WANT(cudaSuccess, cudaGraphDestroy(graph));
}

C_TEST(kernel, pools_have_limits_and_counts) {
    struct cudaMemPoolProps properties = {.allocType = cudaMemAllocationTypePinned,
                                          .location = {.type = cudaMemLocationTypeDevice}};
    cudaMemPool_t pool = NULL, standard = NULL, current = NULL;
    void *memory = NULL, *other = NULL;
    unsigned long long used = 0, threshold = 1 << 20;
    int reuse = 0;
    WANT(cudaSuccess, cudaDeviceGetDefaultMemPool(&standard, 0));
    WANT(cudaSuccess,
         cudaMemPoolSetAttribute(standard, cudaMemPoolAttrReleaseThreshold, &threshold));
    WANT(cudaSuccess,
         cudaMemPoolGetAttribute(standard, cudaMemPoolReuseAllowOpportunistic, &reuse));
    EXPECT_INT_EQ(1, reuse);
    WANT(cudaErrorInvalidValue, cudaMemPoolDestroy(standard));
    WANT(cudaSuccess, cudaMemPoolCreate(&pool, &properties));
    WANT(cudaSuccess, cudaMallocFromPoolAsync(&memory, 4096, pool, NULL));
    WANT(cudaSuccess, cudaMemPoolGetAttribute(pool, cudaMemPoolAttrUsedMemCurrent, &used));
    EXPECT_INT_EQ(4096, used);
    WANT(cudaSuccess, cudaDeviceSetMemPool(0, pool));
    WANT(cudaSuccess, cudaDeviceGetMemPool(&current, 0));
    EXPECT_TRUE(current == pool);
    WANT(cudaSuccess, cudaMallocAsync(&other, 100, NULL));
    WANT(cudaSuccess, cudaFreeAsync(memory, NULL));
    WANT(cudaSuccess, cudaFreeAsync(other, NULL));
    WANT(cudaSuccess, cudaStreamSynchronize(NULL));
    WANT(cudaSuccess, cudaMemPoolTrimTo(pool, 0));
    WANT(cudaSuccess, cudaMemPoolGetAttribute(pool, cudaMemPoolAttrUsedMemCurrent, &used));
    EXPECT_INT_EQ(0, used);
    WANT(cudaSuccess, cudaMemPoolGetAttribute(pool, cudaMemPoolAttrUsedMemHigh, &used));
    EXPECT_TRUE(used >= 4196);
    WANT(cudaSuccess, cudaDeviceSetMemPool(0, standard));
    WANT(cudaSuccess, cudaMemPoolDestroy(pool));
}

C_TEST(kernel, streams_take_hints_for_the_cache) {
    cudaStream_t stream = NULL;
    cudaStreamAttrValue value, told;
    int most = 0, l2 = 0;
    WANT(cudaSuccess, cudaDeviceGetAttribute(&most, cudaDevAttrMaxPersistingL2CacheSize, 0));
    WANT(cudaSuccess, cudaDeviceGetAttribute(&l2, cudaDevAttrL2CacheSize, 0));
    EXPECT_TRUE(most > 0 && most < l2); /* 0: programs take it that there is no such thing */
    memset(&value, 0, sizeof value);
    memset(&told, 0, sizeof told);
    value.accessPolicyWindow.hitRatio = 0.5f;
    value.accessPolicyWindow.hitProp = cudaAccessPropertyPersisting;
    value.accessPolicyWindow.missProp = cudaAccessPropertyStreaming;
    WANT(cudaSuccess, cudaStreamCreate(&stream));
    WANT(cudaSuccess,
         cudaStreamSetAttribute(stream, cudaStreamAttributeAccessPolicyWindow, &value));
    WANT(cudaSuccess, cudaStreamGetAttribute(stream, cudaStreamAttributeAccessPolicyWindow, &told));
    EXPECT_TRUE(told.accessPolicyWindow.hitRatio == 0.5f);
    WANT(cudaErrorInvalidValue,
         cudaStreamSetAttribute(stream, cudaStreamAttributeAccessPolicyWindow, NULL));
    WANT(cudaSuccess, cudaStreamDestroy(stream));
}
