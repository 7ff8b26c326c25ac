/*
 * The runtime API without kernels. What is wanted here was seen on an H200 with
 * NVIDIA's library; the program runs on either.
 */
#include <stdlib.h>
#include <string.h>

#include <cuda.h>
#include <cuda_runtime_api.h>

#include "common/simt/runtime/testdata/checks.h"

C_TEST(api, has_one_device_of_cuda_13) {
    int count = 0;
    int device = -1;
    int version = 0;
    WANT(cudaSuccess, cudaGetDeviceCount(&count));
    EXPECT_TRUE(count >= 1);
    WANT(cudaSuccess, cudaSetDevice(0));
    WANT(cudaSuccess, cudaGetDevice(&device));
    EXPECT_INT_EQ(0, device);
    WANT(cudaSuccess, cudaRuntimeGetVersion(&version));
    EXPECT_INT_EQ(13, version / 1000);
    WANT(cudaErrorInvalidDevice, cudaSetDevice(-1));
    WANT(cudaErrorInvalidDevice, cudaSetDevice(count));
    WANT(cudaErrorInvalidValue, cudaGetDeviceCount(NULL));
}

C_TEST(api, tells_properties_and_attributes_alike) {
    struct cudaDeviceProp properties;
    int value = 0;
    WANT(cudaSuccess, cudaGetDeviceProperties(&properties, 0));
    WANT(cudaSuccess, cudaDeviceGetAttribute(&value, cudaDevAttrMultiProcessorCount, 0));
    EXPECT_INT_EQ(properties.multiProcessorCount, value);
    WANT(cudaSuccess, cudaDeviceGetAttribute(&value, cudaDevAttrComputeCapabilityMajor, 0));
    EXPECT_INT_EQ(properties.major, value);
    WANT(cudaSuccess, cudaDeviceGetAttribute(&value, cudaDevAttrMaxSharedMemoryPerBlockOptin, 0));
    EXPECT_INT_EQ(properties.sharedMemPerBlockOptin, value);
    WANT(cudaSuccess, cudaDeviceGetAttribute(&value, cudaDevAttrMemoryPoolsSupported, 0));
    EXPECT_INT_EQ(1, value); // programs leave their pools out where it is 0
    EXPECT_INT_EQ(1, properties.memoryPoolsSupported);
    EXPECT_INT_EQ(32, properties.warpSize);
    EXPECT_INT_EQ(1024, properties.maxThreadsPerBlock);
    EXPECT_INT_EQ(64, properties.maxThreadsDim[2]);
    EXPECT_INT_EQ(65535, properties.maxGridSize[1]);
    EXPECT_INT_EQ(49152, properties.sharedMemPerBlock);
    WANT(cudaErrorInvalidValue, cudaDeviceGetAttribute(&value, (enum cudaDeviceAttr)9999, 0));
    WANT(cudaErrorInvalidValue, cudaDeviceGetAttribute(NULL, cudaDevAttrWarpSize, 0));
    WANT(cudaErrorInvalidDevice, cudaDeviceGetAttribute(&value, cudaDevAttrWarpSize, 99));
}

C_TEST(api, last_error_is_kept_until_it_is_taken) {
    WANT_KEPT(cudaErrorInvalidDevice, cudaSetDevice(-1));
    WANT_KEPT(cudaSuccess, cudaSetDevice(0));
    EXPECT_INT_EQ(cudaErrorInvalidDevice, cudaPeekAtLastError());
    EXPECT_INT_EQ(cudaErrorInvalidDevice, cudaGetLastError());
    EXPECT_INT_EQ(cudaSuccess, cudaGetLastError());
}

C_TEST(api, names_errors) {
    EXPECT_STR_EQ("cudaErrorIllegalAddress", cudaGetErrorName(cudaErrorIllegalAddress));
    EXPECT_STR_EQ("an illegal memory access was encountered",
                  cudaGetErrorString(cudaErrorIllegalAddress));
    EXPECT_STR_EQ("no error", cudaGetErrorString(cudaSuccess));
    EXPECT_STR_EQ("unrecognized error code", cudaGetErrorName((cudaError_t)12345));
    EXPECT_STR_EQ("unrecognized error code", cudaGetErrorString((cudaError_t)-1));
}

C_TEST(api, allocates_and_frees) {
    char *a = NULL;
    char *b = NULL;
    char host[8];
    void *big = NULL;
    WANT(cudaSuccess, cudaMalloc((void **)&a, 1000));
    WANT(cudaSuccess, cudaMalloc((void **)&b, 1000));
    EXPECT_INT_EQ(0, (uintptr_t)a % 256);
    EXPECT_TRUE(a != b);
    WANT(cudaErrorInvalidValue, cudaMalloc(NULL, 4));
    WANT(cudaErrorMemoryAllocation, cudaMalloc(&big, (size_t)1 << 50));
    WANT(cudaSuccess, cudaFree(NULL));
    WANT(cudaErrorInvalidValue, cudaFree(a + 4));
    WANT(cudaErrorInvalidValue, cudaFree(host));
    WANT(cudaSuccess, cudaFree(b));
    WANT(cudaErrorInvalidValue, cudaFree(b));
    WANT(cudaSuccess, cudaFree(a));
    a = host;
    WANT(cudaSuccess, cudaMalloc((void **)&a, 0));
    EXPECT_TRUE(a == NULL);
}

C_TEST(api, memory_info_follows_allocations) {
    const size_t megabytes = (size_t)64 << 20;
    size_t before = 0;
    size_t after = 0;
    size_t total = 0;
    void *memory = NULL;
    WANT(cudaSuccess, cudaMemGetInfo(&before, &total));
    WANT(cudaSuccess, cudaMalloc(&memory, megabytes));
    WANT(cudaSuccess, cudaMemGetInfo(&after, &total));
    EXPECT_TRUE(before <= total);
    EXPECT_TRUE(before - after >= megabytes);
    WANT(cudaSuccess, cudaFree(memory));
}

static void fill(unsigned char *bytes, size_t count, unsigned seed) {
    for (size_t i = 0; i < count; i++) {
        bytes[i] = (unsigned char)(i * 31 + seed);
    }
}

C_TEST(api, copies_in_all_directions) {
    enum { BYTES = 5000 };
    unsigned char from[BYTES], to[BYTES];
    char *a = NULL;
    char *b = NULL;
    fill(from, BYTES, 1);
    memset(to, 0, BYTES);
    WANT(cudaSuccess, cudaMalloc((void **)&a, BYTES));
    WANT(cudaSuccess, cudaMalloc((void **)&b, BYTES));
    WANT(cudaSuccess, cudaMemcpy(a, from, BYTES, cudaMemcpyHostToDevice));
    WANT(cudaSuccess, cudaMemcpy(b + 100, a + 100, BYTES - 100, cudaMemcpyDeviceToDevice));
    WANT(cudaSuccess, cudaMemcpy(b, from, 100, cudaMemcpyDefault));
    WANT(cudaSuccess, cudaMemcpy(to, b, BYTES, cudaMemcpyDeviceToHost));
    EXPECT_INT_EQ(0, memcmp(from, to, BYTES));
    memset(to, 0, BYTES);
    WANT(cudaSuccess, cudaMemcpyAsync(to, a, BYTES, cudaMemcpyDefault, NULL));
    WANT(cudaSuccess, cudaStreamSynchronize(NULL));
    EXPECT_INT_EQ(0, memcmp(from, to, BYTES));
    memset(to, 0, BYTES);
    WANT(cudaSuccess, cudaMemcpy(to, from, BYTES, cudaMemcpyHostToHost));
    EXPECT_INT_EQ(0, memcmp(from, to, BYTES));
    WANT(cudaSuccess, cudaFree(a));
    WANT(cudaSuccess, cudaFree(b));
}

C_TEST(api, refuses_copies_that_cannot_be_right) {
    char host[4096];
    char *a = NULL;
    char *gone = NULL;
    WANT(cudaSuccess, cudaMalloc((void **)&a, 1000));
    WANT(cudaErrorInvalidValue, cudaMemcpy(a, host, 1000, cudaMemcpyDeviceToHost));
    WANT(cudaErrorInvalidValue, cudaMemcpy(host, a, 1000, cudaMemcpyHostToDevice));
    WANT(cudaErrorInvalidValue, cudaMemcpy(host, host + 2048, 9, cudaMemcpyDeviceToDevice));
    WANT(cudaErrorInvalidMemcpyDirection, cudaMemcpy(a, host, 100, (enum cudaMemcpyKind)7));
    WANT(cudaErrorInvalidValue, cudaMemcpy(NULL, a, 4, cudaMemcpyDefault));
    WANT(cudaErrorInvalidValue, cudaMemcpy(a, NULL, 4, cudaMemcpyHostToDevice));
    WANT(cudaSuccess, cudaMemcpy(NULL, a, 0, cudaMemcpyDefault));
    WANT(cudaErrorInvalidValue, cudaMemset(NULL, 0, 4));
    WANT(cudaErrorInvalidValue, cudaMemset(host, 0, 4));
    WANT(cudaErrorInvalidValue, cudaMemset(a, 0, (size_t)1 << 24));
    WANT(cudaSuccess, cudaMalloc((void **)&gone, (size_t)16 << 20));
    WANT(cudaSuccess, cudaFree(gone));
    WANT(cudaErrorInvalidValue, cudaMemcpy(host, gone, 4, cudaMemcpyDeviceToHost));
    WANT(cudaSuccess, cudaFree(a));
}

C_TEST(api, sets_memory) {
    unsigned char to[1000];
    char *a = NULL;
    WANT(cudaSuccess, cudaMalloc((void **)&a, 1000));
    WANT(cudaSuccess, cudaMemset(a, 0x1a5, 1000)); /* the low byte counts */
    WANT(cudaSuccess, cudaMemsetAsync(a + 10, 7, 20, NULL));
    WANT(cudaSuccess, cudaMemcpy(to, a, 1000, cudaMemcpyDeviceToHost));
    EXPECT_INT_EQ(0xa5, to[9]);
    EXPECT_INT_EQ(7, to[10]);
    EXPECT_INT_EQ(7, to[29]);
    EXPECT_INT_EQ(0xa5, to[30]);
    EXPECT_INT_EQ(0xa5, to[999]);
    WANT(cudaSuccess, cudaFree(a));
}

C_TEST(api, pitched_rows_keep_apart) {
    enum { WIDTH = 100, HEIGHT = 7 };
    unsigned char from[HEIGHT][WIDTH], to[HEIGHT][WIDTH + 3];
    char *a = NULL;
    size_t pitch = 0;
    fill(&from[0][0], sizeof from, 3);
    memset(to, 0xee, sizeof to);
    WANT(cudaSuccess, cudaMallocPitch((void **)&a, &pitch, WIDTH, HEIGHT));
    EXPECT_INT_EQ(0, pitch % 512);
    EXPECT_TRUE(pitch >= WIDTH);
    WANT(cudaSuccess, cudaMemset2D(a, pitch, 9, WIDTH, HEIGHT));
    WANT(cudaSuccess,
         cudaMemcpy2D(a + pitch, pitch, from[1], WIDTH, WIDTH, HEIGHT - 1, cudaMemcpyHostToDevice));
    WANT(cudaSuccess, cudaMemcpy2D(to, WIDTH + 3, a, pitch, WIDTH, HEIGHT, cudaMemcpyDeviceToHost));
    for (size_t row = 0; row < HEIGHT; row++) {
        EXPECT_INT_EQ(row == 0 ? 9 : from[row][0], to[row][0]);
        EXPECT_INT_EQ(row == 0 ? 9 : from[row][WIDTH - 1], to[row][WIDTH - 1]);
        EXPECT_INT_EQ(0xee, to[row][WIDTH]);
    }
    WANT(cudaErrorInvalidPitchValue,
         cudaMemcpy2D(to, 8, a, pitch, WIDTH, 2, cudaMemcpyDeviceToHost));
    WANT(cudaErrorInvalidPitchValue,
         cudaMemcpy2D(to, WIDTH, a, 8, WIDTH, 2, cudaMemcpyDeviceToHost));
    WANT(cudaErrorInvalidValue, cudaMemset2D(a, 16, 1, 32, 2));
    WANT(cudaSuccess, cudaFree(a));
}

C_TEST(api, copies_boxes) {
    enum { X = 5, Y = 4, Z = 3 };
    unsigned char from[Z][Y][X], to[Z][Y][X];
    struct cudaPitchedPtr pitched;
    struct cudaExtent extent = {.width = X, .height = Y, .depth = Z};
    fill(&from[0][0][0], sizeof from, 5);
    memset(to, 0, sizeof to);
    WANT(cudaSuccess, cudaMalloc3D(&pitched, extent));
    struct cudaMemcpy3DParms in = {
        .srcPtr = {.ptr = from, .pitch = X, .xsize = X, .ysize = Y},
        .dstPtr = pitched,
        .extent = extent,
        .kind = cudaMemcpyHostToDevice,
    };
    WANT(cudaSuccess, cudaMemcpy3D(&in));
    struct cudaMemcpy3DParms out = {
        .srcPtr = pitched,
        .srcPos = {.x = 1, .y = 1, .z = 1},
        .dstPtr = {.ptr = to, .pitch = X, .xsize = X, .ysize = Y},
        .extent = {.width = X - 1, .height = Y - 1, .depth = Z - 1},
        .kind = cudaMemcpyDeviceToHost,
    };
    WANT(cudaSuccess, cudaMemcpy3D(&out));
    for (size_t z = 0; z < Z; z++) {
        for (size_t y = 0; y < Y; y++) {
            for (size_t x = 0; x < X; x++) {
                bool inside = x < X - 1 && y < Y - 1 && z < Z - 1;
                EXPECT_INT_EQ(inside ? from[z + 1][y + 1][x + 1] : 0, to[z][y][x]);
            }
        }
    }
    WANT(cudaSuccess, cudaFree(pitched.ptr));
}

C_TEST(api, pinned_memory_is_host_memory_that_the_device_sees) {
    struct cudaPointerAttributes attributes;
    char pageable[8];
    char *pinned = NULL;
    void *device = NULL;
    unsigned flags = 0;
    WANT(cudaSuccess, cudaHostAlloc((void **)&pinned, 100, cudaHostAllocMapped));
    memset(pinned, 1, 100);
    WANT(cudaSuccess, cudaPointerGetAttributes(&attributes, pinned));
    EXPECT_INT_EQ(cudaMemoryTypeHost, attributes.type);
    EXPECT_TRUE(attributes.hostPointer == pinned);
    WANT(cudaSuccess, cudaHostGetDevicePointer(&device, pinned, 0));
    EXPECT_TRUE(device == pinned);
    WANT(cudaSuccess, cudaHostGetFlags(&flags, pinned));
    EXPECT_INT_EQ(cudaHostAllocMapped, flags & cudaHostAllocMapped);
    WANT(cudaErrorInvalidValue, cudaHostGetDevicePointer(&device, pageable, 0));
    WANT(cudaErrorInvalidValue, cudaHostGetFlags(&flags, pageable));
    WANT(cudaErrorInvalidValue, cudaHostAlloc(&device, 100, 0x80));
    WANT(cudaErrorInvalidValue, cudaFree(pinned));
    WANT(cudaErrorInvalidValue, cudaFreeHost(pageable));
    WANT(cudaSuccess, cudaFreeHost(pinned));
    WANT(cudaErrorInvalidValue, cudaFreeHost(pinned));
    WANT(cudaSuccess, cudaFreeHost(NULL));
}

C_TEST(api, registers_host_memory_once) {
    enum { BYTES = 1 << 16 };
    struct cudaPointerAttributes attributes;
    char *memory = malloc(BYTES);
    ASSERT_TRUE(memory != NULL);
    WANT(cudaSuccess, cudaHostRegister(memory, BYTES, cudaHostRegisterDefault));
    WANT(cudaErrorHostMemoryAlreadyRegistered, cudaHostRegister(memory, BYTES, 0));
    WANT(cudaSuccess, cudaPointerGetAttributes(&attributes, memory));
    EXPECT_INT_EQ(cudaMemoryTypeHost, attributes.type);
    WANT(cudaErrorInvalidValue, cudaFreeHost(memory));
    WANT(cudaSuccess, cudaHostUnregister(memory));
    WANT(cudaErrorHostMemoryNotRegistered, cudaHostUnregister(memory));
    WANT(cudaErrorInvalidValue, cudaHostRegister(NULL, 4, 0));
    WANT(cudaErrorInvalidValue, cudaHostRegister(memory, 0, 0));
    free(memory);
}

C_TEST(api, managed_memory_is_for_both) {
    struct cudaPointerAttributes attributes;
    int *memory = NULL;
    WANT(cudaSuccess, cudaMallocManaged((void **)&memory, 400, cudaMemAttachGlobal));
    memory[99] = 4;
    WANT(cudaSuccess, cudaPointerGetAttributes(&attributes, memory));
    EXPECT_INT_EQ(cudaMemoryTypeManaged, attributes.type);
    EXPECT_TRUE(attributes.devicePointer == memory && attributes.hostPointer == memory);
    WANT(cudaErrorInvalidValue, cudaFreeHost(memory));
    WANT(cudaSuccess, cudaFree(memory));
    WANT(cudaErrorInvalidValue, cudaMallocManaged((void **)&memory, 100, 0));
}

C_TEST(api, tells_pointers_apart) {
    struct cudaPointerAttributes attributes;
    char *device = NULL;
    int host = 0;
    WANT(cudaSuccess, cudaMalloc((void **)&device, 100));
    WANT(cudaSuccess, cudaPointerGetAttributes(&attributes, device + 5));
    EXPECT_INT_EQ(cudaMemoryTypeDevice, attributes.type);
    EXPECT_TRUE(attributes.devicePointer == device + 5 && attributes.hostPointer == NULL);
    WANT(cudaSuccess, cudaPointerGetAttributes(&attributes, &host));
    EXPECT_INT_EQ(cudaMemoryTypeUnregistered, attributes.type);
    EXPECT_INT_EQ(-2, attributes.device);
    EXPECT_TRUE(attributes.devicePointer == NULL && attributes.hostPointer == &host);
    WANT(cudaErrorInvalidValue, cudaPointerGetAttributes(NULL, device));
    WANT(cudaSuccess, cudaFree(device));
}

C_TEST(api, events_tell_time_forwards) {
    cudaEvent_t first = NULL;
    cudaEvent_t second = NULL;
    cudaEvent_t silent = NULL;
    char *memory = NULL;
    float none = -1;
    float some = -1;
    WANT(cudaSuccess, cudaMalloc((void **)&memory, 1 << 20));
    WANT(cudaSuccess, cudaEventCreate(&first));
    WANT(cudaSuccess, cudaEventCreate(&second));
    WANT(cudaErrorInvalidResourceHandle, cudaEventElapsedTime(&some, first, second));
    WANT(cudaSuccess, cudaEventQuery(first));
    WANT(cudaSuccess, cudaEventRecord(first, NULL));
    WANT(cudaSuccess, cudaMemset(memory, 0, 1 << 20));
    WANT(cudaSuccess, cudaEventRecord(second, NULL));
    WANT(cudaSuccess, cudaEventSynchronize(second));
    WANT(cudaSuccess, cudaEventElapsedTime(&some, first, second));
    WANT(cudaSuccess, cudaEventElapsedTime(&none, first, first));
    EXPECT_TRUE(some > 0);
    EXPECT_TRUE(none == 0);
    WANT(cudaErrorInvalidValue, cudaEventElapsedTime(NULL, first, second));
    WANT(cudaErrorInvalidResourceHandle, cudaEventElapsedTime(&some, NULL, second));
    WANT(cudaSuccess, cudaEventCreateWithFlags(&silent, cudaEventDisableTiming));
    WANT(cudaSuccess, cudaEventRecord(silent, NULL));
    WANT(cudaErrorInvalidResourceHandle, cudaEventElapsedTime(&some, first, silent));
    WANT(cudaErrorInvalidValue, cudaEventCreateWithFlags(&silent, 99));
    WANT(cudaErrorInvalidResourceHandle, cudaEventDestroy(NULL));
    WANT(cudaSuccess, cudaEventDestroy(first));
    WANT(cudaSuccess, cudaEventDestroy(second));
    WANT(cudaSuccess, cudaEventDestroy(silent));
    WANT(cudaSuccess, cudaFree(memory));
}

C_TEST(api, streams_come_and_go) {
    cudaStream_t stream = NULL;
    unsigned flags = 9;
    int priority = 9;
    WANT(cudaErrorInvalidValue, cudaStreamCreate(NULL));
    WANT(cudaErrorInvalidValue, cudaStreamCreateWithFlags(&stream, 7));
    WANT(cudaSuccess, cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    WANT(cudaSuccess, cudaStreamGetFlags(stream, &flags));
    EXPECT_INT_EQ(cudaStreamNonBlocking, flags);
    WANT(cudaSuccess, cudaStreamQuery(stream));
    WANT(cudaSuccess, cudaStreamSynchronize(stream));
    WANT(cudaSuccess, cudaStreamDestroy(stream));
    WANT(cudaSuccess, cudaStreamCreateWithPriority(&stream, cudaStreamDefault, -100));
    WANT(cudaSuccess, cudaStreamGetPriority(stream, &priority));
    EXPECT_TRUE(priority < 0 && priority > -100);
    WANT(cudaSuccess, cudaStreamDestroy(stream));
    WANT(cudaSuccess, cudaStreamSynchronize(cudaStreamLegacy));
    WANT(cudaSuccess, cudaStreamSynchronize(cudaStreamPerThread));
    WANT(cudaErrorInvalidResourceHandle, cudaStreamDestroy(NULL));
}

static void add_one(void *data) {
    ++*(int *)data;
}

C_TEST(api, host_functions_run_in_their_stream) {
    cudaStream_t stream = NULL;
    int calls = 0;
    WANT(cudaSuccess, cudaStreamCreate(&stream));
    WANT(cudaSuccess, cudaLaunchHostFunc(stream, add_one, &calls));
    WANT(cudaSuccess, cudaLaunchHostFunc(stream, add_one, &calls));
    WANT(cudaSuccess, cudaStreamSynchronize(stream));
    EXPECT_INT_EQ(2, calls);
    WANT(cudaSuccess, cudaStreamDestroy(stream));
}

C_TEST(api, memory_of_a_stream) {
    void *memory = NULL;
    WANT(cudaSuccess, cudaMallocAsync(&memory, 100, NULL));
    WANT(cudaSuccess, cudaMemsetAsync(memory, 1, 100, NULL));
    WANT(cudaSuccess, cudaFreeAsync(memory, NULL));
    WANT(cudaSuccess, cudaDeviceSynchronize());
}

C_TEST(api, limits) {
    size_t value = 0;
    WANT(cudaSuccess, cudaDeviceGetLimit(&value, cudaLimitMallocHeapSize));
    EXPECT_INT_EQ(8388608, value);
    WANT(cudaSuccess, cudaDeviceSetLimit(cudaLimitStackSize, 4096));
    WANT(cudaSuccess, cudaDeviceGetLimit(&value, cudaLimitStackSize));
    EXPECT_INT_EQ(4096, value);
    WANT(cudaErrorUnsupportedLimit, cudaDeviceGetLimit(&value, cudaLimitDevRuntimeSyncDepth));
    WANT(cudaErrorInvalidValue, cudaDeviceGetLimit(&value, (enum cudaLimit)77));
}

C_TEST(api, a_device_is_no_peer_of_itself) {
    int can = 9;
    WANT(cudaSuccess, cudaDeviceCanAccessPeer(&can, 0, 0));
    EXPECT_INT_EQ(0, can);
    WANT(cudaErrorInvalidDevice, cudaDeviceCanAccessPeer(&can, 0, 99));
    WANT(cudaErrorPeerAccessUnsupported, cudaDeviceEnablePeerAccess(0, 0));
    WANT(cudaErrorInvalidDevice, cudaDeviceEnablePeerAccess(99, 0));
    WANT(cudaErrorPeerAccessNotEnabled, cudaDeviceDisablePeerAccess(0));
}

C_TEST(api, symbols_and_kernels_must_be_some) {
    int host = 0;
    void *address = NULL;
    size_t bytes = 0;
    struct cudaFuncAttributes attributes;
    WANT(cudaErrorInvalidSymbol, cudaGetSymbolAddress(&address, &host));
    WANT(cudaErrorInvalidSymbol, cudaGetSymbolSize(&bytes, &host));
    WANT(cudaErrorInvalidSymbol, cudaMemcpyToSymbol(&host, &bytes, 4, 0, cudaMemcpyHostToDevice));
    WANT(cudaErrorInvalidResourceHandle, cudaFuncGetAttributes(&attributes, &host));
    dim3 one = {.x = 1, .y = 1, .z = 1};
    WANT(cudaErrorInvalidResourceHandle, cudaLaunchKernel(&host, one, one, NULL, 0, NULL));
}

typedef CUresult encode_tiled(CUtensorMap *map, CUtensorMapDataType type, cuuint32_t rank,
                              void *address, const cuuint64_t *sizes, const cuuint64_t *strides,
                              const cuuint32_t *box, const cuuint32_t *steps,
                              CUtensorMapInterleave interleave, CUtensorMapSwizzle swizzle,
                              CUtensorMapL2promotion promotion, CUtensorMapFloatOOBfill fill);

/* 100 rows of `columns` 16-bit numbers, in boxes of `box` columns. */
static CUresult encode(encode_tiled *function, char *address, cuuint64_t columns, cuuint32_t box,
                       CUtensorMapSwizzle swizzle) {
    static CUtensorMap map;
    const cuuint64_t sizes[] = {columns, 100}, strides[] = {2 * columns};
    const cuuint32_t boxes[] = {box, 8}, steps[] = {1, 1};
    return function(&map, CU_TENSOR_MAP_DATA_TYPE_FLOAT16, 2, address, sizes, strides, boxes, steps,
                    CU_TENSOR_MAP_INTERLEAVE_NONE, swizzle, CU_TENSOR_MAP_L2_PROMOTION_NONE,
                    CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
}

C_TEST(api, tensor_maps_are_encoded_by_the_driver) {
    void *found = NULL;
    encode_tiled *function;
    char *d_matrix = NULL;
    enum cudaDriverEntryPointQueryResult result = cudaDriverEntryPointSymbolNotFound;
    WANT(cudaSuccess, cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &found, 12000,
                                                       cudaEnableDefault, &result));
    EXPECT_INT_EQ(cudaDriverEntryPointSuccess, result);
    ASSERT_TRUE(found != NULL);
    memcpy(&function, &found, sizeof function);
    WANT(cudaSuccess, cudaMalloc((void **)&d_matrix, 100 * 128 * 2));
    EXPECT_INT_EQ(CUDA_SUCCESS, encode(function, d_matrix, 128, 64, CU_TENSOR_MAP_SWIZZLE_128B));
    EXPECT_INT_EQ(CUDA_SUCCESS, encode(function, d_matrix, 128, 128, CU_TENSOR_MAP_SWIZZLE_NONE));
    /* An address, a stride and a box that are no multiples of 16 bytes; a box that is wider than
       the swizzle. */
    EXPECT_INT_EQ(CUDA_ERROR_INVALID_VALUE,
                  encode(function, d_matrix + 8, 120, 64, CU_TENSOR_MAP_SWIZZLE_128B));
    EXPECT_INT_EQ(CUDA_ERROR_INVALID_VALUE,
                  encode(function, d_matrix, 100, 64, CU_TENSOR_MAP_SWIZZLE_128B));
    EXPECT_INT_EQ(CUDA_ERROR_INVALID_VALUE,
                  encode(function, d_matrix, 128, 20, CU_TENSOR_MAP_SWIZZLE_128B));
    EXPECT_INT_EQ(CUDA_ERROR_INVALID_VALUE,
                  encode(function, d_matrix, 128, 64, CU_TENSOR_MAP_SWIZZLE_64B));
    WANT(cudaSuccess, cudaGetDriverEntryPointByVersion("cuNoSuchFunction", &found, 12000,
                                                       cudaEnableDefault, &result));
    EXPECT_INT_EQ(cudaDriverEntryPointSymbolNotFound, result);
    EXPECT_TRUE(found == NULL);
    WANT(cudaSuccess, cudaFree(d_matrix));
}
