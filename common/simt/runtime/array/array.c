/**
 * @file array.c
 * @brief cudaMallocArray() and its like.
 */
#include "common/simt/runtime/array/array.h"

#include <stdlib.h>

#include "common/base/checked.h"
#include "common/simt/runtime/graph/graph.h"
#include "common/simt/runtime/state.h"
#include "common/simt/runtime/stream/stream.h"

enum { ALIGNMENT = 512 };

/** The largest arrays: of compute capability 7.5 and later. */
enum {
    MOST_1D = 131072,
    MOST_2D_WIDTH = 131072,
    MOST_2D_HEIGHT = 65536,
    MOST_3D = 16384,
    MOST_DEPTH = 32768,
    MOST_LAYERED = 32768,
    MOST_LAYERS = 2048
};

bool channels_read(const struct cudaChannelFormatDesc *desc, struct simt_image *image) {
    const int bits[] = {desc->x, desc->y, desc->z, desc->w};
    int channels = 0;
    while (channels < 4 && bits[channels] > 0 && bits[channels] == bits[0]) {
        channels++;
    }
    for (int rest = channels; rest < 4; rest++) {
        if (bits[rest] != 0) {
            return false;
        }
    }
    bool is_float = desc->f == cudaChannelFormatKindFloat;
    bool known = is_float || desc->f == cudaChannelFormatKindSigned ||
                 desc->f == cudaChannelFormatKindUnsigned;
    bool sized = bits[0] == 16 || bits[0] == 32 || (bits[0] == 8 && !is_float);
    if (!known || !sized || channels == 0 || channels == 3) {
        return false;
    }
    image->bits = (uint8_t)bits[0];
    image->channels = (uint8_t)channels;
    image->kind = (uint8_t)desc->f;
    return true;
}

static bool fits(const struct cudaExtent *e, bool layered) {
    if (layered) {
        return e->width <= MOST_LAYERED && e->height <= MOST_LAYERED && e->depth >= 1 &&
               e->depth <= MOST_LAYERS;
    }
    if (e->depth > 0) {
        return e->height > 0 && e->width <= MOST_3D && e->height <= MOST_3D &&
               e->depth <= MOST_DEPTH;
    }
    return e->height > 0 ? e->width <= MOST_2D_WIDTH && e->height <= MOST_2D_HEIGHT
                         : e->width <= MOST_1D;
}

/** Says what an array cannot be. @return cudaSuccess, or the error */
static cudaError_t check(const struct runtime *runtime, const struct cudaExtent *extent,
                         unsigned flags) {
    const unsigned known = cudaArrayLayered | cudaArraySurfaceLoadStore | cudaArrayTextureGather;
    bool layered = (flags & cudaArrayLayered) != 0;
    if ((flags & cudaArrayCubemap) != 0) {
        runtime_say("cudaMalloc3DArray: cube maps are not supported");
        return cudaErrorNotSupported;
    }
    if ((flags & (cudaArraySparse | cudaArrayDeferredMapping)) != 0) {
        runtime_say("cudaMalloc3DArray: sparse and deferred arrays are not supported");
        return cudaErrorNotSupported;
    }
    bool gather = (flags & cudaArrayTextureGather) != 0;
    if ((flags & ~known) != 0 || extent->width == 0 || !fits(extent, layered) ||
        (gather && (extent->height == 0 || extent->depth > 0))) {
        runtime_explain(runtime,
                        "cudaMalloc3DArray: no array has %zu x %zu x %zu texels and flags 0x%x",
                        extent->width, extent->height, extent->depth, flags);
        return cudaErrorInvalidValue;
    }
    return cudaSuccess;
}

static void lay_out(struct cudaArray *array) {
    struct simt_image *image = &array->image;
    const struct cudaExtent *e = &array->extent;
    bool layered = (array->flags & cudaArrayLayered) != 0;
    image->width = (uint32_t)e->width;
    image->height = e->height > 0 ? (uint32_t)e->height : 1;
    image->depth = e->depth > 0 && !layered ? (uint32_t)e->depth : 1;
    image->layers = layered ? (uint32_t)e->depth : 0;
    image->dimensions = e->height == 0 ? 1 : e->depth == 0 || layered ? 2 : 3;
    image->pitch = e->width * simt_image_texel(image);
    image->slice = image->pitch * image->height;
    image->array = true;
}

static cudaError_t allocate(struct runtime *runtime, struct cudaArray *array, const char *call) {
    size_t planes = array->extent.depth > 0 ? array->extent.depth : 1, bytes;
    lay_out(array);
    if (!checked_multiply(array->image.slice, planes, &bytes)) {
        return cudaErrorMemoryAllocation;
    }
    enum status status =
        simt_memory_alloc(runtime->memory, bytes, ALIGNMENT, call, &array->image.address);
    runtime->report.allocations += status == STATUS_OK;
    return runtime_error_of(status);
}

static cudaError_t make(struct runtime *runtime, cudaArray_t *handle, const char *call,
                        const struct cudaChannelFormatDesc *desc, struct cudaExtent extent,
                        unsigned flags) {
    struct simt_image image = {0};
    if (handle == NULL || desc == NULL) {
        return cudaErrorInvalidValue;
    }
    CUDA_TRY(capture_allows_call(runtime, false));
    if (!channels_read(desc, &image)) {
        runtime_explain(runtime,
                        "%s: channels of %d, %d, %d and %d bits; an array has 1, 2 or 4, all of 8, "
                        "16 or 32 bits, floats of 16 or 32",
                        call, desc->x, desc->y, desc->z, desc->w);
        return cudaErrorInvalidChannelDescriptor;
    }
    CUDA_TRY(check(runtime, &extent, flags));
    struct cudaArray *array = calloc(1, sizeof *array);
    if (array == NULL) {
        return cudaErrorMemoryAllocation;
    }
    *array = (struct cudaArray){
        .next = runtime->arrays, .image = image, .desc = *desc, .extent = extent, .flags = flags};
    cudaError_t error = allocate(runtime, array, call);
    if (error != cudaSuccess) {
        free(array);
        return error;
    }
    runtime->arrays = *handle = array;
    return cudaSuccess;
}

cudaError_t cudaMallocArray(cudaArray_t *array, const struct cudaChannelFormatDesc *desc,
                            size_t width, size_t height, unsigned flags) {
    struct cudaExtent extent = {.width = width, .height = height};
    DEVICE_CALL(runtime, make(runtime, array, "cudaMallocArray", desc, extent, flags));
}

cudaError_t cudaMalloc3DArray(cudaArray_t *array, const struct cudaChannelFormatDesc *desc,
                              struct cudaExtent extent, unsigned flags) {
    DEVICE_CALL(runtime, make(runtime, array, "cudaMalloc3DArray", desc, extent, flags));
}

static struct cudaArray **find_link(struct runtime *runtime, cudaArray_const_t handle) {
    struct cudaArray **link = &runtime->arrays;
    while (*link != NULL && *link != handle) {
        link = &(*link)->next;
    }
    return link;
}

const struct cudaArray *array_find(const struct runtime *runtime, const char *call,
                                   cudaArray_const_t handle) {
    const struct cudaArray *array = runtime->arrays;
    while (array != NULL && array != handle) {
        array = array->next;
    }
    if (array == NULL) { /* in a device process the handle is not what the program knows it as */
        runtime_explain(runtime, "%s: what it was given is no array, or one that was freed", call);
    }
    return array;
}

static cudaError_t release(struct runtime *runtime, cudaArray_t handle) {
    cudaError_t error = capture_allows_call(runtime, false);
    if (error != cudaSuccess || handle == NULL) {
        return error;
    }
    if (array_find(runtime, "cudaFreeArray", handle) == NULL) {
        return cudaErrorInvalidResourceHandle;
    }
    struct cudaArray **link = find_link(runtime, handle);
    struct cudaArray *array = *link;
    *link = array->next;
    enum status status = simt_memory_release(runtime->memory, array->image.address);
    runtime->report.releases++;
    free(array);
    return runtime_error_of(status);
}

cudaError_t cudaFreeArray(cudaArray_t array) {
    SYNCHRONOUS_CALL(runtime, release(runtime, array));
}

void arrays_free(struct runtime *runtime) {
    while (runtime->arrays != NULL) {
        struct cudaArray *array = runtime->arrays;
        runtime->arrays = array->next;
        free(array);
    }
}

static cudaError_t get_info(const struct runtime *runtime, struct cudaChannelFormatDesc *desc,
                            struct cudaExtent *extent, unsigned *flags, cudaArray_const_t handle) {
    const struct cudaArray *array = array_find(runtime, "cudaArrayGetInfo", handle);
    if (array == NULL) {
        return cudaErrorInvalidResourceHandle;
    }
    if (desc != NULL) {
        *desc = array->desc;
    }
    if (extent != NULL) {
        *extent = array->extent;
    }
    if (flags != NULL) {
        *flags = array->flags;
    }
    return cudaSuccess;
}

cudaError_t cudaArrayGetInfo(struct cudaChannelFormatDesc *desc, struct cudaExtent *extent,
                             unsigned *flags, cudaArray_t array) {
    DEVICE_CALL(runtime, get_info(runtime, desc, extent, flags, array));
}

cudaError_t cudaGetChannelDesc(struct cudaChannelFormatDesc *desc, cudaArray_const_t array) {
    DEVICE_CALL(runtime,
                desc == NULL ? cudaErrorInvalidValue : get_info(runtime, desc, NULL, NULL, array));
}

static cudaError_t refuse_mipmaps(const char *call) {
    runtime_say("%s: mipmapped arrays are not supported", call);
    return cudaErrorNotSupported;
}

cudaError_t cudaMallocMipmappedArray(cudaMipmappedArray_t *array,
                                     const struct cudaChannelFormatDesc *desc,
                                     struct cudaExtent extent, unsigned levels, unsigned flags) {
    (void)array, (void)desc, (void)extent, (void)levels, (void)flags;
    QUERY_CALL(runtime, refuse_mipmaps("cudaMallocMipmappedArray"));
}
