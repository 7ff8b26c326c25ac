// table: prints what this GPU returns for texture fetches and surface accesses, as bits.
//
//   table          what is compared with recorded_h100.txt, which an NVIDIA H100 80GB HBM3 printed
//   table probe    also what simt takes for a mistake of the program
#include "common/simt/texture/table/table.h"

#include <string.h>

size_t format_bytes(struct format format) {
    return (size_t)format.bits / 8 * format.channels;
}

uint32_t next_bits(uint32_t *state) {
    *state = *state * 1664525 + 1013904223;
    return *state ^ *state >> 16;
}

float next_float(uint32_t *state, float low, float high) {
    return low + (high - low) * (float)(next_bits(state) >> 8) / 16777216.0f;
}

// Copies texels that lie one after the other into an array.
static void fill_array(cudaArray_t array, struct format format, int width, int height, int depth,
                       const void *texels) {
    struct cudaMemcpy3DParms copy;
    size_t row = width * format_bytes(format);
    memset(&copy, 0, sizeof copy);
    copy.srcPtr = make_cudaPitchedPtr((void *)texels, row, width, height > 0 ? height : 1);
    copy.dstArray = array;
    copy.extent = make_cudaExtent(width, height > 0 ? height : 1, depth > 0 ? depth : 1);
    copy.kind = cudaMemcpyHostToDevice;
    NEED(cudaMemcpy3D(&copy));
}

cudaArray_t array_make(struct format format, int width, int height, int depth, unsigned flags,
                       const void *texels) {
    int bits[4] = {0, 0, 0, 0};
    for (int c = 0; c < format.channels; c++) {
        bits[c] = format.bits;
    }
    struct cudaChannelFormatDesc desc =
        cudaCreateChannelDesc(bits[0], bits[1], bits[2], bits[3], format.kind);
    cudaArray_t array = NULL;
    NEED(cudaMalloc3DArray(&array, &desc, make_cudaExtent(width, height, depth), flags));
    if (texels != NULL) {
        fill_array(array, format, width, height, depth, texels);
    }
    return array;
}

// Texels of a fixed pattern: floats between -4 and 4, other bits as they come.
static void *make_texels(struct format format, size_t count) {
    size_t bytes = count * format_bytes(format);
    unsigned char *texels = (unsigned char *)malloc(bytes);
    uint32_t state = 12345;
    for (size_t n = 0; n < bytes; n += format.bits / 8) {
        uint32_t word = next_bits(&state);
        if (format.kind == cudaChannelFormatKindFloat && format.bits == 32) {
            float value = next_float(&state, -4, 4);
            memcpy(&word, &value, 4);
        } else if (format.kind == cudaChannelFormatKindFloat) {
            word = (word & 0x83ff) | (8 + word % 10) << 10; // exponents -7 to 2
        }
        memcpy(texels + n, &word, format.bits / 8);
    }
    return texels;
}

void texture_make(struct texture *t) {
    size_t count =
        (size_t)t->width * (t->height > 0 ? t->height : 1) * (t->depth > 0 ? t->depth : 1);
    void *made = t->texels == NULL ? make_texels(t->format, count) : NULL;
    t->array =
        array_make(t->format, t->width, t->height, t->depth,
                   (t->layered ? cudaArrayLayered : 0) | (t->gathered ? cudaArrayTextureGather : 0),
                   made != NULL ? made : t->texels);
    free(made);
    struct cudaResourceDesc resource;
    struct cudaTextureDesc desc;
    memset(&resource, 0, sizeof resource);
    memset(&desc, 0, sizeof desc);
    resource.resType = cudaResourceTypeArray;
    resource.res.array.array = t->array;
    for (int axis = 0; axis < 3; axis++) {
        desc.addressMode[axis] = t->address;
    }
    desc.filterMode = t->filter;
    desc.readMode = t->normalised_float ? cudaReadModeNormalizedFloat : cudaReadModeElementType;
    desc.normalizedCoords = t->normalised;
    memcpy(desc.borderColor, t->border, sizeof desc.borderColor);
    t->object = 0;
    NEED(cudaCreateTextureObject(&t->object, &resource, &desc, NULL));
}

void texture_free(struct texture *t) {
    NEED(cudaDestroyTextureObject(t->object));
    NEED(cudaFreeArray(t->array));
}

// V: float4, int4 or uint4.
template <class V>
static __device__ V fetch_one(cudaTextureObject_t t, enum fetch fetch, struct coordinate c) {
    switch (fetch) {
    case FETCH_1D:
        return tex1D<V>(t, c.x);
    case FETCH_2D:
        return tex2D<V>(t, c.x, c.y);
    case FETCH_3D:
        return tex3D<V>(t, c.x, c.y, c.z);
    case FETCH_1D_LAYERED:
        return tex1DLayered<V>(t, c.x, c.layer);
    case FETCH_2D_LAYERED:
        return tex2DLayered<V>(t, c.x, c.y, c.layer);
    default:
        return c.layer == 0   ? tex2Dgather<V>(t, c.x, c.y, 0)
               : c.layer == 1 ? tex2Dgather<V>(t, c.x, c.y, 1)
               : c.layer == 2 ? tex2Dgather<V>(t, c.x, c.y, 2)
                              : tex2Dgather<V>(t, c.x, c.y, 3);
    }
}

template <class V>
static __global__ void fetch_kernel(cudaTextureObject_t t, enum fetch fetch,
                                    const struct coordinate *at, int count, V *out) {
    int n = blockIdx.x * blockDim.x + threadIdx.x;
    if (n < count) {
        out[n] = fetch_one<V>(t, fetch, at[n]);
    }
}

void fetch_all(const struct texture *t, enum fetch fetch, const struct coordinate *at, int count,
               uint32_t (*out)[4]) {
    struct coordinate *d_at;
    void *d_out;
    int blocks = (count + 63) / 64;
    NEED(cudaMalloc((void **)&d_at, count * sizeof *at));
    NEED(cudaMalloc(&d_out, count * sizeof *out));
    NEED(cudaMemcpy(d_at, at, count * sizeof *at, cudaMemcpyHostToDevice));
    if (t->format.kind == cudaChannelFormatKindFloat || t->normalised_float) {
        fetch_kernel<<<blocks, 64>>>(t->object, fetch, d_at, count, (float4 *)d_out);
    } else if (t->format.kind == cudaChannelFormatKindSigned) {
        fetch_kernel<<<blocks, 64>>>(t->object, fetch, d_at, count, (int4 *)d_out);
    } else {
        fetch_kernel<<<blocks, 64>>>(t->object, fetch, d_at, count, (uint4 *)d_out);
    }
    NEED(cudaGetLastError());
    NEED(cudaMemcpy(out, d_out, count * sizeof *out, cudaMemcpyDeviceToHost));
    NEED(cudaFree(d_at));
    NEED(cudaFree(d_out));
}

void print_words(const uint32_t *words, int count, bool is_float) {
    for (int n = 0; n < count; n++) {
        bool nan = is_float && (words[n] & 0x7fffffff) > 0x7f800000;
        const char *end = n % 8 == 7 || n == count - 1 ? "\n" : " ";
        nan ? printf("nan%s", end) : printf("%x%s", words[n], end);
    }
}

void print_fetches(uint32_t (*out)[4], int count, int channels, bool is_float) {
    uint32_t *words = (uint32_t *)malloc(count * channels * sizeof *words);
    for (int n = 0; n < count * channels; n++) {
        words[n] = out[n / channels][n % channels];
    }
    print_words(words, count * channels, is_float);
    free(words);
}

int main(int argc, char **argv) {
    if (argc > 2) { // one probe, in a process of its own: it may end in an error that stays
        probe(argv[2]);
        return 0;
    }
    print_textures();
    print_surfaces();
    print_errors();
    fflush(stdout);
    for (int n = 0; argc > 1 && n < 64; n++) {
        char command[512];
        snprintf(command, sizeof command, "%s probe %d", argv[0], n);
        if (system(command) != 0) {
            break;
        }
    }
    return 0;
}
