// What a GPU does where simt finds a mistake of the program: for the GPU alone.
#include "common/simt/texture/table/table.h"

#include <string.h>

static const struct format f32 = {"f32", 32, 1, cudaChannelFormatKindFloat};

static cudaSurfaceObject_t surface_of(cudaArray_t array) {
    struct cudaResourceDesc resource;
    cudaSurfaceObject_t object;
    memset(&resource, 0, sizeof resource);
    resource.resType = cudaResourceTypeArray;
    resource.res.array.array = array;
    NEED(cudaCreateSurfaceObject(&object, &resource));
    return object;
}

template <class T, enum cudaSurfaceBoundaryMode M>
static __global__ void surface_read(cudaSurfaceObject_t s, int x, int y, T *out) {
    surf2Dread(out, s, x, y, M);
}

template <enum cudaSurfaceBoundaryMode M>
static __global__ void surface_write(cudaSurfaceObject_t s, int x, int y) {
    surf2Dwrite(9.0f, s, x, y, M);
}

static __global__ void fetch_mixed(cudaTextureObject_t t, uint4 *out) {
    out[0] = tex2D<uint4>(t, 1.5f, 1.5f);
    int4 i = tex2D<int4>(t, 1.5f, 1.5f);
    out[1] = make_uint4(i.x, i.y, i.z, i.w);
    float4 f = tex2D<float4>(t, 1.5f, 1.5f);
    out[2] = make_uint4(__float_as_uint(f.x), __float_as_uint(f.y), __float_as_uint(f.z),
                        __float_as_uint(f.w));
    f = tex1D<float4>(t, 1.5f);
    out[3] = make_uint4(__float_as_uint(f.x), 0, 0, 0);
    f = tex3D<float4>(t, 1.5f, 1.5f, 0.5f);
    out[4] = make_uint4(__float_as_uint(f.x), 0, 0, 0);
    f = tex2DLayered<float4>(t, 1.5f, 1.5f, 0);
    out[5] = make_uint4(__float_as_uint(f.x), 0, 0, 0);
    f = tex1Dfetch<float4>(t, 1);
    out[6] = make_uint4(__float_as_uint(f.x), 0, 0, 0);
}

static __global__ void fetch_index(cudaTextureObject_t t, float *out, int first) {
    out[threadIdx.x] = tex1Dfetch<float>(t, first + (int)threadIdx.x);
}

static __global__ void write_formatted(cudaSurfaceObject_t s) {
    asm volatile("sust.p.2d.v4.b32.trap [%0, {%1, %1}], {%2, %2, %2, %2};" ::"l"(s), "r"(1),
                 "r"(0x3f400000));
}

// A texture of 4 x 4 of a format, read in all ways, of all types.
static void print_mixed(struct format format, bool as_float) {
    uint32_t out[7][4];
    uint4 *d_out;
    struct texture t = {format, 4, 4, 0};
    t.normalised_float = as_float;
    t.address = cudaAddressModeClamp;
    t.filter = cudaFilterModePoint;
    texture_make(&t);
    NEED(cudaMalloc((void **)&d_out, sizeof out));
    fetch_mixed<<<1, 1>>>(t.object, d_out);
    cudaError_t error = cudaMemcpy(out, d_out, sizeof out, cudaMemcpyDeviceToHost);
    printf("mixed %sx%d %s: %s\n", format.name, format.channels, as_float ? "as float" : "as it is",
           cudaGetErrorName(error));
    print_fetches(out, 7, 4, false);
}

// Elements of other sizes than the array's, and places that are no multiple of them.
static void print_sizes(void) {
    uint32_t texels[16], *d_out, out[4];
    for (int n = 0; n < 16; n++) {
        texels[n] = 0x03020100 + n * 0x04040404;
    }
    cudaArray_t array = array_make(f32, 4, 4, 0, cudaArraySurfaceLoadStore, texels);
    cudaSurfaceObject_t s = surface_of(array);
    NEED(cudaMalloc((void **)&d_out, 16));
    for (int x = 0; x < 16; x++) {
        printf("size at %d:", x);
        for (int size = 0; size < 5; size++) {
            NEED(cudaMemset(d_out, 0xee, 16));
            if (size == 0) {
                surface_read<unsigned char, cudaBoundaryModeZero>
                    <<<1, 1>>>(s, x, 1, (unsigned char *)d_out);
            } else if (size == 1) {
                surface_read<unsigned short, cudaBoundaryModeZero>
                    <<<1, 1>>>(s, x, 1, (unsigned short *)d_out);
            } else if (size == 2) {
                surface_read<unsigned, cudaBoundaryModeZero><<<1, 1>>>(s, x, 1, d_out);
            } else if (size == 3) {
                surface_read<uint2, cudaBoundaryModeZero><<<1, 1>>>(s, x, 1, (uint2 *)d_out);
            } else {
                surface_read<uint4, cudaBoundaryModeZero><<<1, 1>>>(s, x, 1, (uint4 *)d_out);
            }
            NEED(cudaMemcpy(out, d_out, 16, cudaMemcpyDeviceToHost));
            printf(" %x:%x:%x:%x", out[0], out[1], out[2], out[3]);
        }
        printf("\n");
    }
}

static void print_fetch_beyond(enum cudaTextureAddressMode mode) {
    float values[5] = {1, 2, 4, 8, 16}, *d_memory, *d_out;
    uint32_t out[12];
    struct cudaResourceDesc resource;
    struct cudaTextureDesc desc;
    cudaTextureObject_t object;
    memset(&resource, 0, sizeof resource);
    memset(&desc, 0, sizeof desc);
    NEED(cudaMalloc((void **)&d_memory, sizeof values));
    NEED(cudaMalloc((void **)&d_out, sizeof out));
    NEED(cudaMemcpy(d_memory, values, sizeof values, cudaMemcpyHostToDevice));
    resource.resType = cudaResourceTypeLinear;
    resource.res.linear.devPtr = d_memory;
    resource.res.linear.sizeInBytes = sizeof values;
    resource.res.linear.desc = cudaCreateChannelDesc(32, 0, 0, 0, cudaChannelFormatKindFloat);
    desc.addressMode[0] = mode;
    desc.borderColor[0] = 32;
    NEED(cudaCreateTextureObject(&object, &resource, &desc, NULL));
    fetch_index<<<1, 12>>>(object, d_out, -3);
    cudaError_t error = cudaMemcpy(out, d_out, sizeof out, cudaMemcpyDeviceToHost);
    printf("index from -3 of 5, mode %d: %s\n", (int)mode, cudaGetErrorName(error));
    print_words(out, 12, true);
}

// A surface access that ends the launch, perhaps.
static void print_trap(const char *what, int x, int y, bool write) {
    float zeros[16] = {0}, back[16], *d_out;
    cudaArray_t array = array_make(f32, 4, 4, 0, cudaArraySurfaceLoadStore, zeros);
    cudaSurfaceObject_t s = surface_of(array);
    NEED(cudaMalloc((void **)&d_out, 4));
    if (write) {
        surface_write<cudaBoundaryModeTrap><<<1, 1>>>(s, x, y);
    } else {
        surface_read<float, cudaBoundaryModeTrap><<<1, 1>>>(s, x, y, d_out);
    }
    printf("%s: %s", what, cudaGetErrorName(cudaDeviceSynchronize()));
    cudaError_t error = cudaMemcpy2DFromArray(back, 16, array, 0, 0, 16, 4, cudaMemcpyDeviceToHost);
    printf(", then %s\n", cudaGetErrorName(error));
}

static void print_after(const char *what, bool destroy, bool free_array) {
    struct texture t = {f32, 4, 4, 0};
    uint32_t out[7][4] = {{0}};
    uint4 *d_out;
    texture_make(&t);
    NEED(cudaMalloc((void **)&d_out, sizeof out));
    if (destroy) {
        NEED(cudaDestroyTextureObject(t.object));
    }
    if (free_array) {
        printf("freed: %s\n", cudaGetErrorName(cudaFreeArray(t.array)));
    }
    fetch_mixed<<<1, 1>>>(t.object, d_out);
    cudaError_t error = cudaMemcpy(out, d_out, sizeof out, cudaMemcpyDeviceToHost);
    printf("%s: %s\n", what, cudaGetErrorName(error));
    print_fetches(out, 7, 4, false);
}

static void print_formatted(struct format format) {
    unsigned char back[256];
    cudaArray_t array = array_make(format, 4, 4, 0, cudaArraySurfaceLoadStore, NULL);
    cudaSurfaceObject_t s = surface_of(array);
    size_t row = 4 * format_bytes(format);
    write_formatted<<<1, 1>>>(s);
    NEED(cudaMemcpy2DFromArray(back, row, array, 0, 0, row, 4, cudaMemcpyDeviceToHost));
    printf("sust.p of 0.75 to %sx%d:", format.name, format.channels);
    for (size_t n = 0; n < format_bytes(format); n++) {
        printf(" %02x", back[row + format_bytes(format) + n]);
    }
    printf("\n");
}

static void probe_access(int number) {
    switch (number) {
    case 24:
        print_sizes();
        break;
    case 25:
        print_trap("read beyond x", 16, 0, false);
        break;
    case 26:
        print_trap("read beyond y", 0, 4, false);
        break;
    case 27:
        print_trap("write beyond x", 16, 0, true);
        break;
    case 28:
        print_trap("write before x", -4, 0, true);
        break;
    case 29:
        print_trap("read not aligned", 2, 0, false);
        break;
    case 30:
        print_trap("write not aligned", 2, 0, true);
        break;
    case 31:
        print_after("destroyed", true, false);
        break;
    case 32:
        print_after("array freed", false, true);
        break;
    case 33:
        print_after("destroyed and freed", true, true);
        break;
    default:
        break;
    }
}

void probe(const char *what) {
    enum cudaChannelFormatKind u = cudaChannelFormatKindUnsigned, s = cudaChannelFormatKindSigned,
                               f = cudaChannelFormatKindFloat;
    static const struct format formats[] = {{"f32", 32, 4, f}, {"f32", 32, 1, f}, {"u8", 8, 4, u},
                                            {"s8", 8, 1, s},   {"u16", 16, 2, u}, {"s16", 16, 1, s},
                                            {"f16", 16, 4, f}, {"u32", 32, 1, u}};
    int number = atoi(what);
    if (number < 8) {
        print_mixed(formats[number], false);
    } else if (number < 12) {
        print_mixed(formats[number - 6], true);
    } else if (number < 16) {
        print_fetch_beyond((enum cudaTextureAddressMode)(number - 12));
    } else if (number < 24) {
        print_formatted(formats[number - 16]);
    }
    probe_access(number);
    if (number > 33) {
        exit(1);
    }
}
