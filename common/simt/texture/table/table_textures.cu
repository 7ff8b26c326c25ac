// Texture fetches: address modes, filters, formats, weights, roundings, layers, gathers.
#include "common/simt/texture/table/table.h"

#include <math.h>
#include <string.h>

static const struct format f32 = {"f32", 32, 1, cudaChannelFormatKindFloat};

static const char *const address_names[] = {"wrap", "clamp", "mirror", "border"};

// Places in texels, as factors of the width and what is added: on borders, beside them, far away,
// no numbers.
static const float edges[][2] = {{0, -INFINITY},
                                 {0, -3e38f},
                                 {0, -1e30f},
                                 {0, -1e9f},
                                 {-2.5f, 0},
                                 {-1, -0.5f},
                                 {-1, 0},
                                 {0, -3.5f},
                                 {0, -1},
                                 {0, -0.75f},
                                 {0, -0.5f},
                                 {0, -0.25f},
                                 {0, -1 / 512.0f},
                                 {0, -1e-20f},
                                 {0, -0.0f},
                                 {0, 0},
                                 {0, 1e-20f},
                                 {0, 1 / 512.0f},
                                 {0, 0.25f},
                                 {0, 0.5f},
                                 {0, 0.5f + 1 / 1024.0f},
                                 {0, 0.5f + 1 / 512.0f},
                                 {0, 0.5f + 3 / 1024.0f},
                                 {0, 0.75f},
                                 {0, 0.999999f},
                                 {0, 1},
                                 {0, 1.25f},
                                 {0, 1.5f},
                                 {0, 1.7f},
                                 {0, 2},
                                 {0, 2.499999f},
                                 {0, 2.5f},
                                 {0, 3},
                                 {0, 3.3f},
                                 {0, 4},
                                 {0, 4.2f},
                                 {0, 4.5f},
                                 {1, -0.5f},
                                 {1, -0.25f},
                                 {1, -1e-6f},
                                 {1, 0},
                                 {1, 0.25f},
                                 {1, 0.5f},
                                 {1, 1},
                                 {1, 2.6f},
                                 {2, 0},
                                 {2, 0.5f},
                                 {2.5f, 0},
                                 {3, 0},
                                 {7.7f, 0},
                                 {0, 65535.5f},
                                 {0, 1e9f},
                                 {0, 1e30f},
                                 {0, 3e38f},
                                 {0, INFINITY},
                                 {0, NAN}};

static int edge_places(struct coordinate *at, float width, bool normalised) {
    int count = sizeof edges / sizeof *edges;
    for (int n = 0; n < count; n++) {
        float place = edges[n][0] * width + edges[n][1];
        float x = normalised ? place / width : place;
        at[n] = (struct coordinate){x, x, x, 0};
    }
    return count;
}

// One texel a word of its own, so that a fetch shows where it was.
static void print_address_modes(void) {
    static const float texels[] = {1, 2, 4, 8, 16};
    struct coordinate at[128];
    uint32_t out[128][4];
    for (int mode = 0; mode < 16; mode++) {
        struct texture t = {f32, 5, 0, 0};
        t.address = (enum cudaTextureAddressMode)(mode % 4);
        t.filter = mode & 4 ? cudaFilterModeLinear : cudaFilterModePoint;
        t.normalised = mode >= 8;
        t.texels = texels;
        t.border[0] = 32;
        texture_make(&t);
        int count = edge_places(at, 5, t.normalised);
        fetch_all(&t, FETCH_1D, at, count, out);
        printf("address %s %s %s\n", address_names[mode % 4], mode & 4 ? "linear" : "point",
               t.normalised ? "normalised" : "texels");
        print_fetches(out, count, 1, true);
        texture_free(&t);
    }
}

// Modes of the other axes: each crosses its border while the others stay inside.
static void print_axes(void) {
    struct coordinate at[64];
    uint32_t out[64][4];
    for (int mode = 0; mode < 8; mode++) {
        struct texture t = {f32, 3, 4, 5};
        t.address = (enum cudaTextureAddressMode)(mode % 4);
        t.filter = mode & 4 ? cudaFilterModeLinear : cudaFilterModePoint;
        t.normalised = true;
        t.border[0] = 32;
        texture_make(&t);
        int count = 0;
        for (int n = 0; n < 16; n++) {
            float beyond = -1.4f + 0.27f * n;
            at[count++] = (struct coordinate){0.4f, beyond, 0.3f, 0};
            at[count++] = (struct coordinate){0.4f, 0.7f, beyond, 0};
            at[count++] = (struct coordinate){beyond, beyond, beyond, 0};
        }
        fetch_all(&t, FETCH_3D, at, count, out);
        printf("axes %s %s\n", address_names[mode % 4], mode & 4 ? "linear" : "point");
        print_fetches(out, count, 1, true);
        texture_free(&t);
    }
}

static const struct format kinds[] = {
    {"u8", 8, 1, cudaChannelFormatKindUnsigned},   {"s8", 8, 1, cudaChannelFormatKindSigned},
    {"u16", 16, 1, cudaChannelFormatKindUnsigned}, {"s16", 16, 1, cudaChannelFormatKindSigned},
    {"u32", 32, 1, cudaChannelFormatKindUnsigned}, {"s32", 32, 1, cudaChannelFormatKindSigned},
    {"f16", 16, 1, cudaChannelFormatKindFloat},    {"f32", 32, 1, cudaChannelFormatKindFloat}};

// A format with all channels fetched, also those that it does not have; border included.
static void print_format(struct format format, bool normalised_float, bool linear) {
    struct coordinate at[] = {{0.5f, 0.5f, 0, 0},          {1.3f, 0.9f, 0, 0}, {3.5f, 2.5f, 0, 0},
                              {2.8125f, 1.4453125f, 0, 0}, {-5, 1, 0, 0},      {0.2f, 1.6f, 0, 0}};
    uint32_t out[6][4];
    struct texture t = {format, 4, 3, 0};
    t.address = cudaAddressModeBorder;
    t.filter = linear ? cudaFilterModeLinear : cudaFilterModePoint;
    t.normalised_float = normalised_float;
    for (int c = 0; c < 4; c++) {
        t.border[c] = 0.25f * (c + 1);
    }
    texture_make(&t);
    fetch_all(&t, FETCH_2D, at, 6, out);
    printf("format %sx%d %s %s\n", format.name, format.channels,
           normalised_float ? "as float" : "as it is", linear ? "linear" : "point");
    print_fetches(out, 6, 4, format.kind == cudaChannelFormatKindFloat || normalised_float);
    texture_free(&t);
}

static void print_formats(void) {
    for (size_t n = 0; n < sizeof kinds / sizeof *kinds; n++) {
        for (int channels = 1; channels <= 4; channels *= 2) {
            struct format format = kinds[n];
            format.channels = channels;
            bool is_float = format.kind == cudaChannelFormatKindFloat;
            print_format(format, false, false);
            if (is_float) {
                print_format(format, false, true);
            } else if (format.bits < 32) {
                print_format(format, true, false);
                print_format(format, true, true);
            }
        }
    }
}

// Every value of a small format as a float.
static void print_values(struct format format) {
    static struct coordinate at[256];
    static uint32_t out[256][4];
    uint16_t wide[256];
    unsigned char narrow[256];
    struct texture t = {format, 256, 0, 0};
    for (int n = 0; n < 256; n++) {
        wide[n] = (uint16_t)(n < 128 ? n * 257 : n * 331 - 7);
        narrow[n] = (unsigned char)n;
        at[n].x = n + 0.5f;
    }
    t.texels = format.bits == 8 ? (void *)narrow : (void *)wide;
    t.normalised_float = true;
    t.address = cudaAddressModeClamp;
    t.filter = cudaFilterModePoint;
    texture_make(&t);
    fetch_all(&t, FETCH_1D, at, 256, out);
    printf("values %s\n", format.name);
    print_fetches(out, 256, 1, true);
    texture_free(&t);
}

// Weights: of texels that are 0 but for one, which is 1. In units of 1/256, where they are whole.
static void print_weights_1d(int width, float first) {
    static struct coordinate at[2049];
    static uint32_t out[2049][4];
    float *texels = (float *)calloc(width, sizeof *texels);
    struct texture t = {f32, width, 0, 0};
    texels[(int)first + 1] = 1;
    t.texels = texels;
    t.address = cudaAddressModeClamp;
    t.filter = cudaFilterModeLinear;
    for (int n = 0; n < 2049; n++) {
        at[n].x = first + 0.5f + n / 2048.0f;
    }
    texture_make(&t);
    fetch_all(&t, FETCH_1D, at, 2049, out);
    printf("weights 1d of %d from %g\n", width, first);
    for (int n = 0; n < 2049; n++) {
        float weight;
        memcpy(&weight, &out[n], 4);
        printf("%g%s", 256 * weight, n % 32 == 31 || n == 2048 ? "\n" : " ");
    }
    texture_free(&t);
    free(texels);
}

static void print_weights(int dimensions) {
    static const float fractions[] = {0, 1, 3, 77, 128, 200, 255};
    static struct coordinate at[343];
    static uint32_t out[343][4];
    int edge = dimensions == 2 ? 1 : 7;
    int count = 49 * edge;
    for (int n = 0; n < count; n++) {
        at[n] =
            (struct coordinate){0.5f + fractions[n % 7] / 256, 0.5f + fractions[n / 7 % 7] / 256,
                                0.5f + fractions[n / 49] / 256, 0};
    }
    for (int corner = 0; corner < 1 << dimensions; corner++) {
        float texels[8] = {0};
        struct texture t = {f32, 2, 2, dimensions == 3 ? 2 : 0};
        texels[corner] = 1;
        t.texels = texels;
        t.address = cudaAddressModeClamp;
        t.filter = cudaFilterModeLinear;
        texture_make(&t);
        fetch_all(&t, dimensions == 2 ? FETCH_2D : FETCH_3D, at, count, out);
        printf("weights %dd of corner %d\n", dimensions, corner);
        print_fetches(out, count, 1, true);
        texture_free(&t);
    }
}

// Random places in random texels.
static void print_random(struct format format, bool normalised_float, int dimensions, int seed) {
    enum { COUNT = 96 };
    struct coordinate at[COUNT];
    uint32_t out[COUNT][4];
    uint32_t state = seed;
    struct texture t = {format, 7, dimensions > 1 ? 5 : 0, dimensions > 2 ? 3 : 0};
    t.address = cudaAddressModeClamp;
    t.filter = cudaFilterModeLinear;
    t.normalised_float = normalised_float;
    for (int n = 0; n < COUNT; n++) {
        at[n] = (struct coordinate){next_float(&state, 0, 7), next_float(&state, 0, 5),
                                    next_float(&state, 0, 3), 0};
    }
    texture_make(&t);
    fetch_all(&t, (enum fetch)(FETCH_1D + dimensions - 1), at, COUNT, out);
    printf("random %sx%d %dd\n", format.name, format.channels, dimensions);
    print_fetches(out, COUNT, 1, true);
    texture_free(&t);
}

// Normalised coordinates of odd widths.
static void print_normalised(int width, enum cudaTextureAddressMode address,
                             enum cudaTextureFilterMode filter) {
    enum { COUNT = 64 };
    struct coordinate at[COUNT];
    uint32_t out[COUNT][4];
    uint32_t state = width;
    struct texture t = {f32, width, 0, 0};
    t.address = address;
    t.filter = filter;
    t.normalised = true;
    for (int n = 0; n < COUNT; n++) {
        at[n].x =
            n < 32 ? next_float(&state, -1.5f, 2.5f) : (float)(next_bits(&state) % width) / width;
    }
    texture_make(&t);
    fetch_all(&t, FETCH_1D, at, COUNT, out);
    printf("normalised %d %s %s\n", width, address_names[address],
           filter == cudaFilterModeLinear ? "linear" : "point");
    print_fetches(out, COUNT, 1, true);
    texture_free(&t);
}

static void print_layers(void) {
    struct coordinate at[32];
    uint32_t out[32][4];
    for (int n = 0; n < 32; n++) {
        static const int layers[] = {-2147483647, -1, 0, 1, 2, 3, 100, 2147483647};
        at[n] = (struct coordinate){0.3f + n / 8, 1.6f, 0, layers[n % 8]};
    }
    for (int mode = 0; mode < 4; mode++) {
        struct texture t = {f32, 4, mode & 1 ? 3 : 0, 3};
        t.layered = true;
        t.address = cudaAddressModeBorder;
        t.border[0] = 32;
        t.filter = mode & 2 ? cudaFilterModeLinear : cudaFilterModePoint;
        texture_make(&t);
        fetch_all(&t, mode & 1 ? FETCH_2D_LAYERED : FETCH_1D_LAYERED, at, 32, out);
        printf("layers %s %s\n", mode & 1 ? "2d" : "1d", mode & 2 ? "linear" : "point");
        print_fetches(out, 32, 1, true);
        texture_free(&t);
    }
}

static void print_gathers(void) {
    enum { COUNT = 48 };
    struct coordinate at[COUNT];
    uint32_t out[COUNT][4];
    static const float places[] = {-0.75f, 0, 0.5f, 0.99f, 1, 1.501f, 1.998f, 2.5f, 3, 3.4f, 4, 5};
    for (int n = 0; n < COUNT; n++) {
        at[n] = (struct coordinate){places[n % 12], places[(n * 5 + 3) % 12], 0, n / 12};
    }
    for (int mode = 0; mode < 8; mode++) {
        struct texture t = {{"f32", 32, 4, cudaChannelFormatKindFloat}, 4, 3, 0};
        unsigned char bytes[48];
        t.address = mode & 1 ? cudaAddressModeBorder : cudaAddressModeClamp;
        t.filter = mode & 2 ? cudaFilterModeLinear : cudaFilterModePoint;
        t.normalised_float = (mode & 4) != 0;
        t.border[0] = t.border[1] = 0.5f;
        t.gathered = true;
        if (mode & 4) {
            for (int n = 0; n < 48; n++) {
                bytes[n] = (unsigned char)(5 * n);
            }
            t.format = (struct format){"u8", 8, 4, cudaChannelFormatKindUnsigned};
            t.texels = bytes;
        }
        texture_make(&t);
        fetch_all(&t, FETCH_GATHER, at, COUNT, out);
        printf("gather %s %s %s\n", t.format.name, address_names[t.address],
               mode & 2 ? "linear" : "point");
        print_fetches(out, COUNT, 4, true);
        texture_free(&t);
    }
}

// Textures of memory that is no array.

static __global__ void fetch_index(cudaTextureObject_t t, float4 *out) {
    out[threadIdx.x] = tex1Dfetch<float4>(t, (int)threadIdx.x - 3);
}

static __global__ void fetch_pitched(cudaTextureObject_t t, const struct coordinate *at,
                                     float4 *out) {
    out[threadIdx.x] = tex2D<float4>(t, at[threadIdx.x].x, at[threadIdx.x].y);
}

static void print_linear_memory(void) {
    float *d_memory;
    float4 *d_out;
    uint32_t out[12][4];
    const float values[5] = {1, 2, 4, 8, 16};
    NEED(cudaMalloc((void **)&d_memory, sizeof values));
    NEED(cudaMalloc((void **)&d_out, sizeof out));
    NEED(cudaMemcpy(d_memory, values, sizeof values, cudaMemcpyHostToDevice));
    for (int mode = 0; mode < 4; mode++) {
        struct cudaResourceDesc resource;
        struct cudaTextureDesc desc;
        cudaTextureObject_t object;
        memset(&resource, 0, sizeof resource);
        memset(&desc, 0, sizeof desc);
        resource.resType = cudaResourceTypeLinear;
        resource.res.linear.devPtr = d_memory;
        resource.res.linear.sizeInBytes = sizeof values;
        resource.res.linear.desc = cudaCreateChannelDesc(32, 0, 0, 0, cudaChannelFormatKindFloat);
        desc.addressMode[0] = (enum cudaTextureAddressMode)mode;
        desc.borderColor[0] = 32;
        NEED(cudaCreateTextureObject(&object, &resource, &desc, NULL));
        fetch_index<<<1, 8>>>(object, d_out); // up to the last element; beyond it see the probes
        NEED(cudaMemcpy(out, d_out, sizeof out, cudaMemcpyDeviceToHost));
        printf("linear memory %s\n", address_names[mode]);
        print_fetches(out + 3, 5, 4, true);
        NEED(cudaDestroyTextureObject(object));
    }
    NEED(cudaFree(d_memory));
    NEED(cudaFree(d_out));
}

enum { PITCHED_WIDTH = 5, PITCHED_HEIGHT = 4, PITCHED_PLACES = 64 };

static cudaTextureObject_t pitched_object(float *d_memory, size_t pitch, int mode) {
    struct cudaResourceDesc resource;
    struct cudaTextureDesc desc;
    cudaTextureObject_t object = 0;
    memset(&resource, 0, sizeof resource);
    memset(&desc, 0, sizeof desc);
    resource.resType = cudaResourceTypePitch2D;
    resource.res.pitch2D.devPtr = d_memory;
    resource.res.pitch2D.width = PITCHED_WIDTH;
    resource.res.pitch2D.height = PITCHED_HEIGHT;
    resource.res.pitch2D.pitchInBytes = pitch;
    resource.res.pitch2D.desc = cudaCreateChannelDesc(32, 0, 0, 0, cudaChannelFormatKindFloat);
    desc.addressMode[0] = desc.addressMode[1] = (enum cudaTextureAddressMode)(mode % 4);
    desc.filterMode = mode & 4 ? cudaFilterModeLinear : cudaFilterModePoint;
    desc.normalizedCoords = mode >= 8;
    desc.borderColor[0] = 32;
    NEED(cudaCreateTextureObject(&object, &resource, &desc, NULL));
    return object;
}

static void print_pitched(float *d_memory, size_t pitch, int mode) {
    struct coordinate at[PITCHED_PLACES], *d_at;
    uint32_t out[PITCHED_PLACES][4];
    float4 *d_out;
    bool normalised = mode >= 8;
    for (int n = 0; n < PITCHED_PLACES; n++) {
        float x = (n % 8 - 1) * 0.9f, y = (n / 8 - 1) * 0.8f;
        at[n] = (struct coordinate){normalised ? x / PITCHED_WIDTH : x,
                                    normalised ? y / PITCHED_HEIGHT : y, 0, 0};
    }
    cudaTextureObject_t object = pitched_object(d_memory, pitch, mode);
    NEED(cudaMalloc((void **)&d_at, sizeof at));
    NEED(cudaMalloc((void **)&d_out, sizeof out));
    NEED(cudaMemcpy(d_at, at, sizeof at, cudaMemcpyHostToDevice));
    fetch_pitched<<<1, PITCHED_PLACES>>>(object, d_at, d_out);
    NEED(cudaMemcpy(out, d_out, sizeof out, cudaMemcpyDeviceToHost));
    printf("pitched memory %s %s %s\n", address_names[mode % 4], mode & 4 ? "linear" : "point",
           normalised ? "normalised" : "texels");
    print_fetches(out, PITCHED_PLACES, 1, true);
    NEED(cudaDestroyTextureObject(object));
    NEED(cudaFree(d_at));
    NEED(cudaFree(d_out));
}

static void print_pitched_memory(void) {
    float values[PITCHED_HEIGHT][PITCHED_WIDTH], *d_memory;
    size_t pitch;
    for (int n = 0; n < PITCHED_WIDTH * PITCHED_HEIGHT; n++) {
        values[n / PITCHED_WIDTH][n % PITCHED_WIDTH] = n + 0.125f * n * n;
    }
    NEED(cudaMallocPitch((void **)&d_memory, &pitch, sizeof *values, PITCHED_HEIGHT));
    NEED(cudaMemcpy2D(d_memory, pitch, values, sizeof *values, sizeof *values, PITCHED_HEIGHT,
                      cudaMemcpyHostToDevice));
    for (int mode = 0; mode < 16; mode++) {
        print_pitched(d_memory, pitch, mode);
    }
    NEED(cudaFree(d_memory));
}

// Levels and gradients of a texture that has no mipmap.
static __global__ void fetch_levels(cudaTextureObject_t t, float *out) {
    const float levels[] = {0, 0.3f, 1, 2.5f, -1, -100};
    int n = threadIdx.x;
    float level = levels[n];
    out[n] = tex2DLod<float>(t, 1.3f, 1.7f, level);
    out[6 + n] = tex2DGrad<float>(t, 1.3f, 1.7f, make_float2(level, 0), make_float2(0, level));
}

static void print_levels(void) {
    uint32_t out[12];
    float *d_out;
    NEED(cudaMalloc((void **)&d_out, sizeof out));
    for (int mode = 0; mode < 2; mode++) {
        struct texture t = {f32, 4, 4, 0};
        t.address = cudaAddressModeClamp;
        t.filter = mode == 1 ? cudaFilterModeLinear : cudaFilterModePoint;
        texture_make(&t);
        fetch_levels<<<1, 6>>>(t.object, d_out);
        NEED(cudaMemcpy(out, d_out, sizeof out, cudaMemcpyDeviceToHost));
        printf("levels and gradients %s\n", mode == 1 ? "linear" : "point");
        print_words(out, 12, true);
        texture_free(&t);
    }
    NEED(cudaFree(d_out));
}

void print_textures(void) {
    print_address_modes();
    print_axes();
    print_formats();
    for (int n = 0; n < 4; n++) {
        print_values(kinds[n]);
    }
    print_weights_1d(2, 0);
    print_weights_1d(4096, 1000);
    print_weights_1d(16384, 16000);
    print_weights(2);
    print_weights(3);
    for (int dimensions = 1; dimensions <= 3; dimensions++) {
        print_random(f32, false, dimensions, dimensions);
        for (int n = 0; n < 4; n++) {
            print_random(kinds[n], true, dimensions, 10 * n + dimensions);
        }
        print_random(kinds[6], false, dimensions, 50 + dimensions);
    }
    static const int widths[] = {1, 3, 5, 7, 100, 1000, 1021};
    for (size_t n = 0; n < 7 * 4 * 2; n++) {
        print_normalised(widths[n % 7], (enum cudaTextureAddressMode)(n / 7 % 4),
                         (enum cudaTextureFilterMode)(n / 28));
    }
    print_layers();
    print_gathers();
    print_linear_memory();
    print_pitched_memory();
    print_levels();
}
