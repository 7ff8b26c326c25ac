/*
 * Arrays, texture and surface objects without kernels; the program runs on simt and on a GPU, but
 * for what simt refuses. Descriptions and copies that are wrong: see texture/table/table_errors.cu.
 */
#include <stdlib.h>
#include <string.h>

#include <cuda_runtime_api.h>

#include "common/simt/runtime/testdata/checks.h"
#include "common/simt/simt.h"

enum { WIDTH = 6, HEIGHT = 5, DEPTH = 4, COUNT = WIDTH * HEIGHT * DEPTH };

static const struct cudaChannelFormatDesc ints = {32, 0, 0, 0, cudaChannelFormatKindSigned};

/* An array, and numbers to be copied. */
struct stage {
    cudaArray_t array;
    int in[COUNT], out[COUNT];
};

static void open_stage(struct stage *s, size_t height, size_t depth, unsigned flags) {
    struct cudaExtent extent = {.width = WIDTH, .height = height, .depth = depth};
    memset(s, 0, sizeof *s);
    for (int n = 0; n < COUNT; n++) {
        s->in[n] = 100 + n;
    }
    WANT(cudaSuccess, cudaMalloc3DArray(&s->array, &ints, extent, flags));
}

static void close_stage(struct stage *s) {
    WANT(cudaSuccess, cudaFreeArray(s->array));
}

static void expect_same(const struct stage *s, size_t count) {
    EXPECT_INT_EQ(0, memcmp(s->in, s->out, count * sizeof *s->in));
}

C_TEST(array, rows_go_there_and_back) {
    struct stage s;
    size_t row = WIDTH * sizeof(int);
    open_stage(&s, HEIGHT, 0, cudaArrayDefault);
    WANT(cudaSuccess,
         cudaMemcpy2DToArray(s.array, 0, 0, s.in, row, row, HEIGHT, cudaMemcpyHostToDevice));
    WANT(cudaSuccess,
         cudaMemcpy2DFromArray(s.out, row, s.array, 0, 0, row, HEIGHT, cudaMemcpyDeviceToHost));
    expect_same(&s, (size_t)WIDTH * HEIGHT);
    /* Two elements of two rows, from the middle. */
    WANT(cudaSuccess,
         cudaMemcpy2DFromArrayAsync(s.out, 8, s.array, 8, 3, 8, 2, cudaMemcpyDefault, NULL));
    WANT(cudaSuccess, cudaDeviceSynchronize());
    EXPECT_INT_EQ(s.in[3 * WIDTH + 2], s.out[0]);
    EXPECT_INT_EQ(s.in[4 * WIDTH + 3], s.out[3]);
    close_stage(&s);
}

C_TEST(array, planes_and_layers_go_there_and_back) {
    for (unsigned flags = 0; flags < 2; flags++) { /* cudaArrayLayered is 1 */
        struct stage s;
        open_stage(&s, HEIGHT, DEPTH, flags);
        struct cudaMemcpy3DParms to = {
            .srcPtr = {s.in, WIDTH * sizeof(int), WIDTH, HEIGHT},
            .dstArray = s.array,
            .extent = {WIDTH, HEIGHT, DEPTH},
            .kind = cudaMemcpyHostToDevice,
        };
        struct cudaMemcpy3DParms from = {
            .srcArray = s.array,
            .dstPtr = {s.out, WIDTH * sizeof(int), WIDTH, HEIGHT},
            .extent = {WIDTH, HEIGHT, DEPTH},
            .kind = cudaMemcpyDeviceToHost,
        };
        WANT(cudaSuccess, cudaMemcpy3D(&to));
        WANT(cudaSuccess, cudaMemcpy3D(&from));
        expect_same(&s, COUNT);
        from.srcPos = (struct cudaPos){2, 1, 3}; /* elements, not bytes */
        from.extent = (struct cudaExtent){1, 1, 1};
        WANT(cudaSuccess, cudaMemcpy3DAsync(&from, NULL));
        EXPECT_INT_EQ(s.in[(3 * HEIGHT + 1) * WIDTH + 2], s.out[0]);
        from.extent.depth = 2;
        WANT(cudaErrorInvalidValue, cudaMemcpy3D(&from));
        close_stage(&s);
    }
}

C_TEST(array, copies_between_arrays_and_device_memory) {
    struct stage s;
    cudaArray_t other = NULL;
    int *d_memory = NULL;
    size_t row = WIDTH * sizeof(int), bytes = row * HEIGHT;
    open_stage(&s, HEIGHT, 0, cudaArrayDefault);
    WANT(cudaSuccess, cudaMallocArray(&other, &ints, WIDTH, HEIGHT, cudaArrayDefault));
    WANT(cudaSuccess, cudaMalloc((void **)&d_memory, bytes));
    WANT(cudaSuccess, cudaMemcpy(d_memory, s.in, bytes, cudaMemcpyHostToDevice));
    WANT(cudaSuccess,
         cudaMemcpy2DToArray(s.array, 0, 0, d_memory, row, row, HEIGHT, cudaMemcpyDeviceToDevice));
    WANT(cudaSuccess, cudaMemcpy2DArrayToArray(other, 0, 0, s.array, 0, 0, row, HEIGHT,
                                               cudaMemcpyDeviceToDevice));
    WANT(cudaSuccess, cudaMemset(d_memory, 0, bytes));
    WANT(cudaSuccess,
         cudaMemcpy2DFromArray(d_memory, row, other, 0, 0, row, HEIGHT, cudaMemcpyDeviceToDevice));
    WANT(cudaSuccess, cudaMemcpy(s.out, d_memory, bytes, cudaMemcpyDeviceToHost));
    expect_same(&s, (size_t)WIDTH * HEIGHT);
    WANT(cudaErrorInvalidMemcpyDirection,
         cudaMemcpy2DFromArray(s.out, row, other, 0, 0, row, 1, cudaMemcpyHostToDevice));
    WANT(cudaSuccess, cudaFree(d_memory));
    WANT(cudaSuccess, cudaFreeArray(other));
    close_stage(&s);
}

C_TEST(array, copies_are_nodes_of_graphs) {
    struct stage s;
    cudaGraph_t graph = NULL;
    cudaGraphNode_t there = NULL, back = NULL;
    cudaGraphExec_t executable = NULL;
    open_stage(&s, HEIGHT, DEPTH, cudaArrayDefault);
    struct cudaMemcpy3DParms to = {.srcPtr = {s.in, WIDTH * sizeof(int), WIDTH, HEIGHT},
                                   .dstArray = s.array,
                                   .extent = {WIDTH, HEIGHT, DEPTH},
                                   .kind = cudaMemcpyHostToDevice};
    struct cudaMemcpy3DParms from = {.srcArray = s.array,
                                     .dstPtr = {s.out, WIDTH * sizeof(int), WIDTH, HEIGHT},
                                     .extent = {WIDTH, HEIGHT, DEPTH},
                                     .kind = cudaMemcpyDeviceToHost};
    WANT(cudaSuccess, cudaGraphCreate(&graph, 0));
    WANT(cudaSuccess, cudaGraphAddMemcpyNode(&there, graph, NULL, 0, &to));
    WANT(cudaSuccess, cudaGraphAddMemcpyNode(&back, graph, &there, 1, &from));
    WANT(cudaSuccess, cudaGraphInstantiate(&executable, graph, 0));
    WANT(cudaSuccess, cudaGraphLaunch(executable, NULL));
    WANT(cudaSuccess, cudaDeviceSynchronize());
    expect_same(&s, COUNT);
    from.srcPos.x = 1;
    WANT(cudaErrorInvalidValue, cudaGraphExecMemcpyNodeSetParams(executable, back, &from));
    from.extent.width = 1;
    WANT(cudaSuccess, cudaGraphExecMemcpyNodeSetParams(executable, back, &from));
    WANT(cudaSuccess, cudaGraphLaunch(executable, NULL));
    WANT(cudaSuccess, cudaDeviceSynchronize());
    EXPECT_INT_EQ(s.in[1], s.out[0]);
    WANT(cudaSuccess, cudaGraphExecDestroy(executable));
    WANT(cudaSuccess, cudaGraphDestroy(graph));
    close_stage(&s);
}

C_TEST(array, a_captured_copy_is_replayed) {
    struct stage s;
    cudaStream_t stream = NULL;
    cudaGraph_t graph = NULL;
    cudaGraphExec_t executable = NULL;
    size_t row = WIDTH * sizeof(int);
    open_stage(&s, HEIGHT, 0, cudaArrayDefault);
    WANT(cudaSuccess, cudaStreamCreate(&stream));
    WANT(cudaSuccess, cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
    WANT(cudaSuccess, cudaMemcpy2DToArrayAsync(s.array, 0, 0, s.in, row, row, HEIGHT,
                                               cudaMemcpyHostToDevice, stream));
    WANT(cudaSuccess, cudaMemcpy2DFromArrayAsync(s.out, row, s.array, 0, 0, row, HEIGHT,
                                                 cudaMemcpyDeviceToHost, stream));
    WANT(cudaSuccess, cudaStreamEndCapture(stream, &graph));
    WANT(cudaSuccess, cudaGraphInstantiate(&executable, graph, 0));
    EXPECT_INT_EQ(0, s.out[0]);
    WANT(cudaSuccess, cudaGraphLaunch(executable, stream));
    WANT(cudaSuccess, cudaStreamSynchronize(stream));
    expect_same(&s, (size_t)WIDTH * HEIGHT);
    WANT(cudaSuccess, cudaGraphExecDestroy(executable));
    WANT(cudaSuccess, cudaGraphDestroy(graph));
    WANT(cudaSuccess, cudaStreamDestroy(stream));
    close_stage(&s);
}

C_TEST(array, tells_what_it_is) {
    struct stage s;
    struct cudaChannelFormatDesc desc;
    struct cudaExtent extent;
    unsigned flags = 0;
    open_stage(&s, HEIGHT, DEPTH, cudaArrayLayered | cudaArraySurfaceLoadStore);
    WANT(cudaSuccess, cudaArrayGetInfo(&desc, &extent, &flags, s.array));
    EXPECT_INT_EQ(32, desc.x);
    EXPECT_INT_EQ(cudaChannelFormatKindSigned, desc.f);
    EXPECT_INT_EQ(DEPTH, extent.depth);
    EXPECT_INT_EQ(cudaArrayLayered | cudaArraySurfaceLoadStore, flags);
    WANT(cudaSuccess, cudaGetChannelDesc(&desc, s.array));
    EXPECT_INT_EQ(0, desc.y);
    WANT(cudaSuccess, cudaArrayGetInfo(NULL, NULL, NULL, s.array));
    close_stage(&s);
}

static struct cudaResourceDesc resource_of(cudaArray_t array) {
    struct cudaResourceDesc resource;
    memset(&resource, 0, sizeof resource);
    resource.resType = cudaResourceTypeArray;
    resource.res.array.array = array;
    return resource;
}

C_TEST(array, objects_tell_what_they_were_made_of) {
    struct stage s;
    struct cudaTextureDesc desc = {.borderColor = {0.5f}, .normalizedCoords = 1}, settings;
    cudaTextureObject_t texture = 0;
    cudaSurfaceObject_t surface = 0;
    open_stage(&s, HEIGHT, 0, cudaArraySurfaceLoadStore);
    struct cudaResourceDesc resource = resource_of(s.array), got;
    WANT(cudaSuccess, cudaCreateTextureObject(&texture, &resource, &desc, NULL));
    WANT(cudaSuccess, cudaCreateSurfaceObject(&surface, &resource));
    EXPECT_TRUE(texture != 0 && surface != 0);
    WANT(cudaSuccess, cudaGetTextureObjectResourceDesc(&got, texture));
    EXPECT_TRUE(got.res.array.array == s.array);
    WANT(cudaSuccess, cudaGetTextureObjectTextureDesc(&settings, texture));
    EXPECT_NEAR(0.5, (double)settings.borderColor[0], 0);
    EXPECT_INT_EQ(1, settings.normalizedCoords);
    WANT(cudaSuccess, cudaGetSurfaceObjectResourceDesc(&got, surface));
    EXPECT_TRUE(got.res.array.array == s.array);
    WANT(cudaSuccess, cudaDestroyTextureObject(texture));
    WANT(cudaSuccess, cudaDestroySurfaceObject(surface));
    close_stage(&s);
}

/* What a GPU does otherwise, or leaves open. */
C_TEST(array, simt_names_what_is_wrong_or_missing) {
    struct stage s;
    struct cudaTextureDesc desc = {.sRGB = 1};
    cudaMipmappedArray_t mipmap = NULL;
    cudaTextureObject_t texture = 0;
    cudaArray_t cube = NULL;
    struct simt_api api;
    if (!simt_find(&api)) {
        return;
    }
    open_stage(&s, HEIGHT, 0, cudaArrayDefault);
    struct cudaResourceDesc resource = resource_of(s.array);
    struct cudaExtent extent = {4, 4, 6};
    WANT(cudaErrorNotSupported, cudaCreateTextureObject(&texture, &resource, &desc, NULL));
    WANT(cudaErrorNotSupported, cudaMalloc3DArray(&cube, &ints, extent, cudaArrayCubemap));
    WANT(cudaErrorNotSupported, cudaMallocMipmappedArray(&mipmap, &ints, extent, 2, 0));
    desc.sRGB = 0;
    WANT(cudaSuccess, cudaCreateTextureObject(&texture, &resource, &desc, NULL));
    WANT(cudaSuccess, cudaDestroyTextureObject(texture));
    WANT(cudaErrorInvalidValue, cudaDestroyTextureObject(texture));
    WANT(cudaErrorInvalidValue, cudaGetTextureObjectTextureDesc(&desc, texture));
    close_stage(&s);
    WANT(cudaErrorInvalidResourceHandle, cudaFreeArray(s.array));
    WANT(cudaErrorInvalidResourceHandle, cudaCreateTextureObject(&texture, &resource, &desc, NULL));
}
