// What the API answers to descriptors and copies, good and bad.
#include "common/simt/texture/table/table.h"

#include <string.h>

static void print_result(const char *what, cudaError_t error) {
    cudaGetLastError();
    printf("%s: %s\n", what, cudaGetErrorName(error));
}

static struct cudaChannelFormatDesc desc_of(int x, int y, int z, int w,
                                            enum cudaChannelFormatKind f) {
    return cudaCreateChannelDesc(x, y, z, w, f);
}

static void print_array(const char *what, struct cudaChannelFormatDesc desc, int width, int height,
                        int depth, unsigned flags) {
    cudaArray_t array = NULL;
    cudaError_t error =
        cudaMalloc3DArray(&array, &desc, make_cudaExtent(width, height, depth), flags);
    print_result(what, error);
    if (error == cudaSuccess) {
        struct cudaExtent extent;
        struct cudaChannelFormatDesc got;
        unsigned got_flags;
        NEED(cudaArrayGetInfo(&got, &extent, &got_flags, array));
        printf("  %d %d %d %d %d, %zu %zu %zu, flags %u\n", got.x, got.y, got.z, got.w, (int)got.f,
               extent.width, extent.height, extent.depth, got_flags);
        NEED(cudaFreeArray(array));
    }
}

static void print_arrays(void) {
    enum cudaChannelFormatKind u = cudaChannelFormatKindUnsigned, s = cudaChannelFormatKindSigned,
                               f = cudaChannelFormatKindFloat;
    print_array("array of three channels", desc_of(8, 8, 8, 0, u), 4, 4, 0, 0);
    print_array("array of unequal channels", desc_of(8, 16, 0, 0, u), 4, 4, 0, 0);
    print_array("array with a gap", desc_of(8, 0, 8, 0, u), 4, 4, 0, 0);
    print_array("array of 64 bits", desc_of(64, 0, 0, 0, u), 4, 4, 0, 0);
    print_array("array of float 8", desc_of(8, 0, 0, 0, f), 4, 4, 0, 0);
    print_array("array of no bits", desc_of(0, 0, 0, 0, u), 4, 4, 0, 0);
    print_array("array of no kind", desc_of(32, 0, 0, 0, cudaChannelFormatKindNone), 4, 4, 0, 0);
    print_array("array 1d", desc_of(16, 16, 0, 0, s), 5, 0, 0, 0);
    print_array("array 2d", desc_of(32, 32, 32, 32, f), 5, 3, 0, cudaArraySurfaceLoadStore);
    print_array("array 2d gather", desc_of(32, 0, 0, 0, f), 5, 3, 0, cudaArrayTextureGather);
    print_array("array 3d", desc_of(16, 0, 0, 0, f), 5, 3, 2, 0);
    print_array("array 1d layered", desc_of(8, 0, 0, 0, u), 5, 0, 3, cudaArrayLayered);
    print_array("array 2d layered", desc_of(8, 0, 0, 0, u), 5, 2, 3, cudaArrayLayered);
    print_array("array of no width", desc_of(32, 0, 0, 0, f), 0, 3, 0, 0);
    print_array("array of depth without height", desc_of(32, 0, 0, 0, f), 4, 0, 3, 0);
    print_array("array layered of no layers", desc_of(32, 0, 0, 0, f), 4, 4, 0, cudaArrayLayered);
    print_array("array 1d too wide", desc_of(8, 0, 0, 0, u), 200000, 0, 0, 0);
    print_array("array 2d too high", desc_of(8, 0, 0, 0, u), 4, 200000, 0, 0);
    print_array("array 3d too deep", desc_of(8, 0, 0, 0, u), 4, 4, 20000, 0);
    print_array("array of too many layers", desc_of(8, 0, 0, 0, u), 4, 4, 3000, cudaArrayLayered);
    print_array("array gather 3d", desc_of(8, 0, 0, 0, u), 4, 4, 4, cudaArrayTextureGather);
    print_array("array of unknown flags", desc_of(8, 0, 0, 0, u), 4, 4, 0, 0x1000);
}

// Descriptors of a good texture, to be spoiled.
static cudaArray_t good(struct cudaResourceDesc *resource, struct cudaTextureDesc *desc,
                        struct format format) {
    memset(resource, 0, sizeof *resource);
    memset(desc, 0, sizeof *desc);
    resource->resType = cudaResourceTypeArray;
    resource->res.array.array = array_make(format, 4, 4, 0, cudaArrayDefault, NULL);
    desc->addressMode[0] = desc->addressMode[1] = cudaAddressModeClamp;
    return resource->res.array.array;
}

static void print_texture(const char *what, const struct cudaResourceDesc *resource,
                          const struct cudaTextureDesc *desc) {
    cudaTextureObject_t object = 0;
    cudaError_t error = cudaCreateTextureObject(&object, resource, desc, NULL);
    print_result(what, error);
    if (error == cudaSuccess) {
        struct cudaTextureDesc got;
        struct cudaResourceDesc back;
        NEED(cudaGetTextureObjectTextureDesc(&got, object));
        NEED(cudaGetTextureObjectResourceDesc(&back, object));
        printf("  modes %d %d %d filter %d read %d normalised %d border %g, resource %d\n",
               (int)got.addressMode[0], (int)got.addressMode[1], (int)got.addressMode[2],
               (int)got.filterMode, (int)got.readMode, got.normalizedCoords, got.borderColor[0],
               (int)back.resType);
        NEED(cudaDestroyTextureObject(object));
    }
}

static void print_textures_of(struct format format) {
    struct cudaResourceDesc resource;
    struct cudaTextureDesc desc;
    char what[64];
    cudaArray_t array = good(&resource, &desc, format);
    for (int mode = 0; mode < 8; mode++) {
        desc.filterMode = mode & 1 ? cudaFilterModeLinear : cudaFilterModePoint;
        desc.readMode = mode & 2 ? cudaReadModeNormalizedFloat : cudaReadModeElementType;
        desc.normalizedCoords = mode >> 2;
        desc.addressMode[0] = mode & 4 ? cudaAddressModeMirror : cudaAddressModeWrap;
        snprintf(what, sizeof what, "texture %s %s %s %s", format.name,
                 mode & 1 ? "linear" : "point", mode & 2 ? "as float" : "as it is",
                 mode & 4 ? "normalised" : "texels");
        print_texture(what, &resource, &desc);
    }
    NEED(cudaFreeArray(array));
}

static void print_textures_of_memory(void) {
    struct cudaResourceDesc other;
    struct cudaTextureDesc desc;
    float *d_memory;
    memset(&desc, 0, sizeof desc);
    desc.addressMode[0] = desc.addressMode[1] = cudaAddressModeClamp;
    NEED(cudaMalloc((void **)&d_memory, 4096));
    memset(&other, 0, sizeof other);
    other.resType = cudaResourceTypeLinear;
    other.res.linear.desc = desc_of(32, 0, 0, 0, cudaChannelFormatKindFloat);
    print_texture("texture of no memory", &other, &desc);
    other.res.linear.devPtr = d_memory;
    print_texture("texture of no bytes", &other, &desc);
    other.res.linear.sizeInBytes = 1024;
    print_texture("texture of memory", &other, &desc);
    other.res.linear.devPtr = d_memory + 1;
    print_texture("texture of memory not aligned", &other, &desc);
    other.res.linear.devPtr = d_memory;
    desc.filterMode = cudaFilterModeLinear;
    print_texture("texture of memory linear", &other, &desc);
    desc.filterMode = cudaFilterModePoint;
    desc.normalizedCoords = 1;
    print_texture("texture of memory normalised", &other, &desc);
    desc.normalizedCoords = 0;
    other.res.linear.desc = desc_of(8, 8, 8, 0, cudaChannelFormatKindUnsigned);
    print_texture("texture of three channels", &other, &desc);
    memset(&other, 0, sizeof other);
    other.resType = cudaResourceTypePitch2D;
    other.res.pitch2D.devPtr = d_memory;
    other.res.pitch2D.desc = desc_of(32, 0, 0, 0, cudaChannelFormatKindFloat);
    other.res.pitch2D.width = 4;
    other.res.pitch2D.height = 4;
    other.res.pitch2D.pitchInBytes = 32;
    print_texture("texture of a pitch of 32", &other, &desc);
    other.res.pitch2D.pitchInBytes = 20;
    print_texture("texture of a pitch of 20", &other, &desc);
    NEED(cudaFree(d_memory));
}

static void print_bad_textures(void) {
    struct cudaResourceDesc resource, other;
    struct cudaTextureDesc desc;
    cudaArray_t array =
        good(&resource, &desc, (struct format){"f32", 32, 1, cudaChannelFormatKindFloat});
    print_texture("texture without a resource", NULL, &desc);
    print_texture("texture without a description", &resource, NULL);
    other = resource;
    other.res.array.array = NULL;
    print_texture("texture of no array", &other, &desc);
    other.resType = (enum cudaResourceType)9;
    print_texture("texture of an unknown resource", &other, &desc);
    NEED(cudaFreeArray(array));
    print_textures_of_memory();
}

static void print_surfaces_made(void) {
    struct format f32 = {"f32", 32, 1, cudaChannelFormatKindFloat};
    struct cudaResourceDesc resource;
    cudaSurfaceObject_t object = 0;
    memset(&resource, 0, sizeof resource);
    resource.resType = cudaResourceTypeArray;
    print_result("surface of no array", cudaCreateSurfaceObject(&object, &resource));
    resource.res.array.array = array_make(f32, 4, 4, 0, cudaArrayDefault, NULL);
    print_result("surface of an array without the flag",
                 cudaCreateSurfaceObject(&object, &resource));
    NEED(cudaFreeArray(resource.res.array.array));
    resource.res.array.array = array_make(f32, 4, 4, 0, cudaArraySurfaceLoadStore, NULL);
    print_result("surface", cudaCreateSurfaceObject(&object, &resource));
    print_result("surface destroyed", cudaDestroySurfaceObject(object));
    resource.resType = cudaResourceTypeLinear;
    print_result("surface of memory", cudaCreateSurfaceObject(&object, &resource));
    resource.resType = cudaResourceTypeArray;
    NEED(cudaFreeArray(resource.res.array.array));
    print_result("null array freed", cudaFreeArray(NULL));
    print_result("null texture destroyed", cudaDestroyTextureObject(0));
    print_result("null surface destroyed", cudaDestroySurfaceObject(0));
}

static void print_copies(void) {
    struct format f32 = {"f32", 32, 1, cudaChannelFormatKindFloat};
    float host[16 * 16] = {0};
    cudaArray_t a = array_make(f32, 4, 4, 0, cudaArrayDefault, host);
    cudaArray_t b = array_make((struct format){"u8", 8, 4, cudaChannelFormatKindUnsigned}, 4, 4, 0,
                               cudaArrayDefault, host);
    enum cudaMemcpyKind in = cudaMemcpyHostToDevice;
    print_result("copy", cudaMemcpy2DToArray(a, 0, 0, host, 64, 16, 4, in));
    print_result("copy of nothing", cudaMemcpy2DToArray(a, 0, 0, host, 64, 0, 0, in));
    print_result("copy too wide", cudaMemcpy2DToArray(a, 0, 0, host, 64, 20, 4, in));
    print_result("copy too high", cudaMemcpy2DToArray(a, 0, 0, host, 64, 16, 5, in));
    print_result("copy beyond by its offset", cudaMemcpy2DToArray(a, 4, 0, host, 64, 16, 4, in));
    print_result("copy beyond by its row", cudaMemcpy2DToArray(a, 0, 1, host, 64, 16, 4, in));
    print_result("copy to half an element", cudaMemcpy2DToArray(a, 2, 0, host, 64, 4, 1, in));
    print_result("copy of half an element", cudaMemcpy2DToArray(a, 0, 0, host, 64, 6, 1, in));
    print_result("copy with a short pitch", cudaMemcpy2DToArray(a, 0, 0, host, 8, 16, 2, in));
    print_result("copy in the wrong direction",
                 cudaMemcpy2DToArray(a, 0, 0, host, 64, 16, 4, cudaMemcpyDeviceToHost));
    print_result("copy without an array", cudaMemcpy2DToArray(NULL, 0, 0, host, 64, 16, 4, in));
    print_result("copy to another format",
                 cudaMemcpy2DArrayToArray(b, 0, 0, a, 0, 0, 16, 4, cudaMemcpyDeviceToDevice));
    print_result("copy that wraps to the next row", cudaMemcpyToArray(a, 8, 1, host, 24, in));
    print_result("copy that wraps beyond the end", cudaMemcpyToArray(a, 8, 3, host, 24, in));
    NEED(cudaFreeArray(a));
    NEED(cudaFreeArray(b));
}

void print_errors(void) {
    print_arrays();
    print_textures_of((struct format){"u8", 8, 1, cudaChannelFormatKindUnsigned});
    print_textures_of((struct format){"s16", 16, 2, cudaChannelFormatKindSigned});
    print_textures_of((struct format){"u32", 32, 1, cudaChannelFormatKindUnsigned});
    print_textures_of((struct format){"f16", 16, 1, cudaChannelFormatKindFloat});
    print_textures_of((struct format){"f32", 32, 4, cudaChannelFormatKindFloat});
    print_bad_textures();
    print_surfaces_made();
    print_copies();
}
