// Surface accesses: boundary modes, sizes of an access against sizes of an element, queries.
#include "common/simt/texture/table/table.h"

#include <string.h>

static const struct format u32 = {"u32", 32, 1, cudaChannelFormatKindUnsigned};

static cudaSurfaceObject_t surface_make(cudaArray_t array) {
    struct cudaResourceDesc resource;
    cudaSurfaceObject_t object;
    memset(&resource, 0, sizeof resource);
    resource.resType = cudaResourceTypeArray;
    resource.res.array.array = array;
    NEED(cudaCreateSurfaceObject(&object, &resource));
    return object;
}

enum { WIDTH = 6, HEIGHT = 4, DEPTH = 3, TEXELS = WIDTH * HEIGHT * DEPTH };

// An array of those dimensions with 1, 2, 3 ... for texels.
static cudaArray_t numbered(int dimensions, bool layered) {
    uint32_t texels[TEXELS];
    for (int n = 0; n < TEXELS; n++) {
        texels[n] = n + 1;
    }
    return array_make(u32, WIDTH, dimensions > 1 ? HEIGHT : 0,
                      dimensions > 2 || layered ? DEPTH : 0,
                      cudaArraySurfaceLoadStore | (layered ? cudaArrayLayered : 0), texels);
}

template <enum cudaSurfaceBoundaryMode M>
static __device__ unsigned read_at(cudaSurfaceObject_t s, int how, int x, int y, int z) {
    unsigned value = 77;
    switch (how) {
    case 0:
        surf1Dread(&value, s, x, M);
        break;
    case 1:
        surf2Dread(&value, s, x, y, M);
        break;
    case 2:
        surf3Dread(&value, s, x, y, z, M);
        break;
    case 3:
        surf1DLayeredread(&value, s, x, z, M);
        break;
    default:
        surf2DLayeredread(&value, s, x, y, z, M);
        break;
    }
    return value;
}

template <enum cudaSurfaceBoundaryMode M>
static __device__ void write_at(cudaSurfaceObject_t s, int how, int x, int y, int z,
                                unsigned value) {
    switch (how) {
    case 0:
        surf1Dwrite(value, s, x, M);
        break;
    case 1:
        surf2Dwrite(value, s, x, y, M);
        break;
    case 2:
        surf3Dwrite(value, s, x, y, z, M);
        break;
    case 3:
        surf1DLayeredwrite(value, s, x, z, M);
        break;
    default:
        surf2DLayeredwrite(value, s, x, y, z, M);
        break;
    }
}

// Thread n has a place of its own around the array: x from -2 to 7, y from -1 to 5, z from -1 to 3.
template <enum cudaSurfaceBoundaryMode M>
static __global__ void reads(cudaSurfaceObject_t s, int how, unsigned *out) {
    int x = (int)threadIdx.x - 2, y = (int)threadIdx.y - 1, z = (int)blockIdx.x - 1;
    int n = (blockIdx.x * blockDim.y + threadIdx.y) * blockDim.x + threadIdx.x;
    out[n] = read_at<M>(s, how, 4 * x, y, z);
}

// Only places beyond the array or all: at most one thread writes to each element that is inside.
template <enum cudaSurfaceBoundaryMode M>
static __global__ void writes(cudaSurfaceObject_t s, int how, int x, int y, int z) {
    write_at<M>(s, how, 4 * x, y, z, 1000);
}

static void print_boundaries(int how) {
    static const char *const names[] = {"1d", "2d", "3d", "1d layered", "2d layered"};
    enum { COUNT = 10 * 7 * 5 };
    uint32_t out[COUNT];
    unsigned *d_out;
    int dimensions = how == 0 || how == 3 ? 1 : how == 2 ? 3 : 2;
    dim3 threads(10, dimensions > 1 ? 7 : 1), blocks(how >= 2 ? 5 : 1);
    int count = threads.x * threads.y * blocks.x;
    cudaArray_t array = numbered(dimensions, how >= 3);
    cudaSurfaceObject_t s = surface_make(array);
    NEED(cudaMalloc((void **)&d_out, sizeof out));
    for (int mode = 0; mode < 2; mode++) {
        if (mode == 0) {
            reads<cudaBoundaryModeClamp><<<blocks, threads>>>(s, how, d_out);
        } else {
            reads<cudaBoundaryModeZero><<<blocks, threads>>>(s, how, d_out);
        }
        NEED(cudaMemcpy(out, d_out, sizeof out, cudaMemcpyDeviceToHost));
        printf("surface %s %s\n", names[how], mode == 0 ? "clamp" : "zero");
        print_words(out, count, false);
    }
    NEED(cudaDestroySurfaceObject(s));
    NEED(cudaFreeArray(array));
    NEED(cudaFree(d_out));
}

// What of an array changes when one thread writes beside it.
static void print_write(int how, bool clamp, int x, int y, int z) {
    uint32_t texels[TEXELS];
    int dimensions = how == 0 || how == 3 ? 1 : how == 2 ? 3 : 2;
    cudaArray_t array = numbered(dimensions, how >= 3);
    cudaSurfaceObject_t s = surface_make(array);
    struct cudaMemcpy3DParms copy;
    if (clamp) {
        writes<cudaBoundaryModeClamp><<<1, 1>>>(s, how, x, y, z);
    } else {
        writes<cudaBoundaryModeZero><<<1, 1>>>(s, how, x, y, z);
    }
    int height = dimensions > 1 ? HEIGHT : 1, depth = how >= 2 ? DEPTH : 1;
    memset(&copy, 0, sizeof copy);
    copy.srcArray = array;
    copy.dstPtr = make_cudaPitchedPtr(texels, WIDTH * sizeof *texels, WIDTH, height);
    copy.extent = make_cudaExtent(WIDTH, height, depth);
    copy.kind = cudaMemcpyDeviceToHost;
    NEED(cudaMemcpy3D(&copy));
    printf("write %d %s %d %d %d:", how, clamp ? "clamp" : "zero", x, y, z);
    for (int n = 0; n < WIDTH * height * depth; n++) {
        if (texels[n] == 1000) {
            printf(" %d", n);
        }
    }
    printf("\n");
    NEED(cudaDestroySurfaceObject(s));
    NEED(cudaFreeArray(array));
}

static void print_writes(void) {
    static const int places[][3] = {{-1, 1, 1}, {6, 1, 1}, {2, -1, 1}, {2, 4, 1},
                                    {2, 2, -1}, {2, 2, 3}, {9, 9, 9},  {3, 2, 1}};
    for (int how = 0; how < 5; how++) {
        for (int n = 0; n < 8; n++) {
            print_write(how, true, places[n][0], places[n][1], places[n][2]);
            print_write(how, false, places[n][0], places[n][1], places[n][2]);
        }
    }
}

template <class T>
static __global__ void round_trip(cudaSurfaceObject_t from, cudaSurfaceObject_t to) {
    T value;
    surf2Dread(&value, from, threadIdx.x * sizeof value, threadIdx.y);
    surf2Dwrite(value, to, threadIdx.x * sizeof value, threadIdx.y);
}

// Elements go through a kernel from one array to another of the same format.
template <class T> static void print_round_trip(struct format format) {
    unsigned char bytes[16 * 8], back[16 * 8];
    size_t row = 4 * format_bytes(format);
    for (size_t n = 0; n < sizeof bytes; n++) {
        bytes[n] = (unsigned char)(37 * n + 11);
    }
    cudaArray_t from = array_make(format, 4, 2, 0, cudaArraySurfaceLoadStore, bytes);
    cudaArray_t to = array_make(format, 4, 2, 0, cudaArraySurfaceLoadStore, NULL);
    cudaSurfaceObject_t s[] = {surface_make(from), surface_make(to)};
    round_trip<T><<<1, dim3(4, 2)>>>(s[0], s[1]);
    NEED(cudaMemcpy2DFromArray(back, row, to, 0, 0, row, 2, cudaMemcpyDeviceToHost));
    printf("round trip %sx%d: %s\n", format.name, format.channels,
           memcmp(bytes, back, 2 * row) == 0 ? "the same" : "other bytes");
    NEED(cudaDestroySurfaceObject(s[0]));
    NEED(cudaDestroySurfaceObject(s[1]));
    NEED(cudaFreeArray(from));
    NEED(cudaFreeArray(to));
}

static void print_round_trips(void) {
    enum cudaChannelFormatKind u = cudaChannelFormatKindUnsigned, f = cudaChannelFormatKindFloat;
    print_round_trip<unsigned char>((struct format){"u8", 8, 1, u});
    print_round_trip<uchar2>((struct format){"u8", 8, 2, u});
    print_round_trip<uchar4>((struct format){"u8", 8, 4, u});
    print_round_trip<unsigned short>((struct format){"u16", 16, 1, u});
    print_round_trip<ushort2>((struct format){"u16", 16, 2, u});
    print_round_trip<ushort4>((struct format){"f16", 16, 4, f});
    print_round_trip<unsigned>((struct format){"u32", 32, 1, u});
    print_round_trip<uint2>((struct format){"u32", 32, 2, u});
    print_round_trip<float4>((struct format){"f32", 32, 4, f});
}

// txq and suq answer with the array's size, and with OpenCL's numbers of order and type.
static __global__ void ask(cudaTextureObject_t t, cudaSurfaceObject_t s, unsigned *out) {
    asm("txq.width.b32 %0, [%1];" : "=r"(out[0]) : "l"(t));
    asm("txq.height.b32 %0, [%1];" : "=r"(out[1]) : "l"(t));
    asm("txq.depth.b32 %0, [%1];" : "=r"(out[2]) : "l"(t));
    asm("suq.width.b32 %0, [%1];" : "=r"(out[3]) : "l"(s));
    asm("suq.height.b32 %0, [%1];" : "=r"(out[4]) : "l"(s));
    asm("suq.depth.b32 %0, [%1];" : "=r"(out[5]) : "l"(s));
}

static void print_queries(void) {
    unsigned out[6], *d_out;
    NEED(cudaMalloc((void **)&d_out, sizeof out));
    for (int layered = 0; layered < 2; layered++) {
        struct texture t = {u32, WIDTH, HEIGHT, DEPTH};
        t.layered = layered;
        t.address = cudaAddressModeClamp;
        t.filter = cudaFilterModePoint;
        texture_make(&t);
        cudaArray_t array = numbered(layered ? 2 : 3, layered);
        cudaSurfaceObject_t s = surface_make(array);
        ask<<<1, 1>>>(t.object, s, d_out);
        NEED(cudaMemcpy(out, d_out, sizeof out, cudaMemcpyDeviceToHost));
        printf("queries %s: %u %u %u, %u %u %u\n", layered ? "layered" : "3d", out[0], out[1],
               out[2], out[3], out[4], out[5]);
        NEED(cudaDestroySurfaceObject(s));
        NEED(cudaFreeArray(array));
        texture_free(&t);
    }
    NEED(cudaFree(d_out));
}

void print_surfaces(void) {
    for (int how = 0; how < 5; how++) {
        print_boundaries(how);
    }
    print_writes();
    print_round_trips();
    print_queries();
}
