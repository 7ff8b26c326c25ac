/**
 * @file texture_object.c
 * @brief cudaCreateTextureObject(), cudaCreateSurfaceObject() and questions about the objects.
 */
#include <stdlib.h>
#include <string.h>

#include <cuda_runtime_api.h>

#include "common/simt/runtime/array/array.h"
#include "common/simt/runtime/state.h"

/** Of memory that a texture reads: what cudaMalloc() returns fits; so does no address inside. */
enum { MEMORY_ALIGNMENT = 256, PITCH_ALIGNMENT = 32 };

/** What the questions about an object return. */
struct object_desc {
    struct object_desc *next;
    uint64_t handle;
    struct cudaResourceDesc resource;
    struct cudaTextureDesc texture;
};

static cudaError_t image_of_array(const struct runtime *runtime, const char *call,
                                  cudaArray_t handle, struct simt_image *image) {
    const struct cudaArray *array = array_find(runtime, call, handle);
    if (array == NULL) {
        return cudaErrorInvalidResourceHandle;
    }
    *image = array->image;
    return cudaSuccess;
}

static cudaError_t check_memory(const struct runtime *runtime, const void *memory) {
    if (memory == NULL || (uintptr_t)memory % MEMORY_ALIGNMENT != 0) {
        runtime_explain(runtime,
                        "cudaCreateTextureObject: a texture of memory at %p; it must begin "
                        "at a multiple of %d bytes, as what cudaMalloc() returns does",
                        memory, MEMORY_ALIGNMENT);
        return cudaErrorInvalidValue;
    }
    return cudaSuccess;
}

static cudaError_t image_of_memory(const struct runtime *runtime,
                                   const struct cudaResourceDesc *resource,
                                   struct simt_image *image) {
    CUDA_TRY(check_memory(runtime, resource->res.linear.devPtr));
    if (!channels_read(&resource->res.linear.desc, image)) {
        return cudaErrorInvalidChannelDescriptor;
    }
    size_t texels = resource->res.linear.sizeInBytes / simt_image_texel(image);
    if (texels > (size_t)1 << 27) {
        runtime_explain(runtime, "cudaCreateTextureObject: %zu texels; tex1Dfetch() reaches 2^27",
                        texels);
        return cudaErrorInvalidValue;
    }
    image->address = (uint64_t)(uintptr_t)resource->res.linear.devPtr;
    image->width = (uint32_t)texels;
    image->height = image->depth = 1;
    image->dimensions = 1;
    return cudaSuccess;
}

static cudaError_t image_of_rows(const struct runtime *runtime,
                                 const struct cudaResourceDesc *resource,
                                 struct simt_image *image) {
    size_t width = resource->res.pitch2D.width, height = resource->res.pitch2D.height;
    size_t pitch = resource->res.pitch2D.pitchInBytes;
    CUDA_TRY(check_memory(runtime, resource->res.pitch2D.devPtr));
    if (!channels_read(&resource->res.pitch2D.desc, image)) {
        return cudaErrorInvalidChannelDescriptor;
    }
    if (width == 0 || height == 0 || width > 131072 || height > 65000 ||
        pitch % PITCH_ALIGNMENT != 0 || pitch < width * simt_image_texel(image)) {
        runtime_explain(
            runtime,
            "cudaCreateTextureObject: %zu rows of %zu texels of %u bytes, %zu bytes "
            "apart; rows must be a multiple of %d bytes apart, and lie beside each other",
            height, width, simt_image_texel(image), pitch, PITCH_ALIGNMENT);
        return cudaErrorInvalidValue;
    }
    image->address = (uint64_t)(uintptr_t)resource->res.pitch2D.devPtr;
    image->width = (uint32_t)width;
    image->height = (uint32_t)height;
    image->depth = 1;
    image->dimensions = 2;
    image->pitch = pitch;
    return cudaSuccess;
}

static cudaError_t find_image(const struct runtime *runtime,
                              const struct cudaResourceDesc *resource, struct simt_image *image) {
    switch (resource->resType) {
    case cudaResourceTypeArray:
        return image_of_array(runtime, "cudaCreateTextureObject", resource->res.array.array, image);
    case cudaResourceTypeLinear:
        return image_of_memory(runtime, resource, image);
    case cudaResourceTypePitch2D:
        return image_of_rows(runtime, resource, image);
    case cudaResourceTypeMipmappedArray:
        runtime_say("cudaCreateTextureObject: mipmapped arrays are not supported");
        return cudaErrorNotSupported;
    default:
        return cudaErrorInvalidValue;
    }
}

/** Says which setting does not go with the texels. */
static cudaError_t check_settings(const struct runtime *runtime, const struct cudaTextureDesc *desc,
                                  const struct simt_image *image) {
    bool is_float = image->kind == SIMT_CHANNEL_FLOAT;
    bool as_float = desc->readMode == cudaReadModeNormalizedFloat;
    bool array = image->array || image->dimensions == 2;
    if (desc->sRGB != 0) {
        runtime_say("cudaCreateTextureObject: sRGB is not supported");
        return cudaErrorNotSupported;
    }
    if (array && desc->filterMode == cudaFilterModeLinear && !is_float &&
        (!as_float || image->bits == 32)) {
        runtime_explain(runtime, "cudaCreateTextureObject: integers are not filtered, but as "
                                 "normalised floats, of 8 or 16 bits");
        return cudaErrorInvalidFilterSetting;
    }
    if (as_float && (is_float || image->bits == 32)) {
        runtime_explain(runtime, "cudaCreateTextureObject: only integers of 8 or 16 bits are read "
                                 "as normalised floats");
        return cudaErrorInvalidNormSetting;
    }
    bool known = (unsigned)desc->filterMode <= cudaFilterModeLinear &&
                 (unsigned)desc->readMode <= cudaReadModeNormalizedFloat;
    for (size_t axis = 0; axis < 3; axis++) {
        known = known && (unsigned)desc->addressMode[axis] <= cudaAddressModeBorder;
    }
    return known ? cudaSuccess : cudaErrorInvalidValue;
}

static cudaError_t add(struct runtime *runtime, const struct simt_texture *texture,
                       const struct cudaResourceDesc *resource, const struct cudaTextureDesc *desc,
                       unsigned long long *object) {
    struct object_desc *kept = calloc(1, sizeof *kept);
    uint64_t handle = 0;
    if (kept == NULL || simt_textures_add(runtime->textures, texture, &handle) != STATUS_OK) {
        free(kept);
        return cudaErrorMemoryAllocation;
    }
    *kept = (struct object_desc){
        .next = runtime->object_descs, .handle = handle, .resource = *resource};
    if (desc != NULL) {
        kept->texture = *desc;
    }
    runtime->object_descs = kept;
    *object = handle;
    return cudaSuccess;
}

static cudaError_t create_texture(struct runtime *runtime, cudaTextureObject_t *object,
                                  const struct cudaResourceDesc *resource,
                                  const struct cudaTextureDesc *desc,
                                  const struct cudaResourceViewDesc *view) {
    struct simt_texture texture = {.surface = false};
    if (object == NULL || resource == NULL) {
        return cudaErrorInvalidValue;
    }
    if (view != NULL) {
        runtime_say("cudaCreateTextureObject: resource views are not supported");
        return cudaErrorNotSupported;
    }
    CUDA_TRY(find_image(runtime, resource, &texture.image));
    if (desc == NULL) {
        return cudaErrorInvalidResourceHandle;
    }
    CUDA_TRY(check_settings(runtime, desc, &texture.image));
    for (size_t axis = 0; axis < 3; axis++) {
        texture.modes[axis] = (uint8_t)desc->addressMode[axis];
    }
    bool filtered = texture.image.array || texture.image.dimensions == 2;
    texture.linear = filtered && desc->filterMode == cudaFilterModeLinear;
    texture.normalised = filtered && desc->normalizedCoords != 0;
    texture.as_float = desc->readMode == cudaReadModeNormalizedFloat;
    memcpy(texture.border, desc->borderColor, sizeof texture.border);
    return add(runtime, &texture, resource, desc, object);
}

cudaError_t cudaCreateTextureObject(cudaTextureObject_t *object,
                                    const struct cudaResourceDesc *resource,
                                    const struct cudaTextureDesc *desc,
                                    const struct cudaResourceViewDesc *view) {
    DEVICE_CALL(runtime, create_texture(runtime, object, resource, desc, view));
}

static cudaError_t create_surface(struct runtime *runtime, cudaSurfaceObject_t *object,
                                  const struct cudaResourceDesc *resource) {
    struct simt_texture surface = {.surface = true};
    if (object == NULL || resource == NULL) {
        return cudaErrorInvalidValue;
    }
    if (resource->resType != cudaResourceTypeArray) {
        runtime_explain(runtime, "cudaCreateSurfaceObject: a surface is that of an array");
        return cudaErrorInvalidChannelDescriptor;
    }
    CUDA_TRY(image_of_array(runtime, "cudaCreateSurfaceObject", resource->res.array.array,
                            &surface.image));
    return add(runtime, &surface, resource, NULL, object);
}

cudaError_t cudaCreateSurfaceObject(cudaSurfaceObject_t *object,
                                    const struct cudaResourceDesc *resource) {
    DEVICE_CALL(runtime, create_surface(runtime, object, resource));
}

static cudaError_t destroy(struct runtime *runtime, uint64_t handle, bool surface) {
    struct simt_texture *texture = simt_textures_find(runtime->textures, handle);
    if (handle == 0) {
        return cudaSuccess;
    }
    if (texture == NULL || texture->surface != surface || texture->destroyed) {
        runtime_explain(runtime, "cudaDestroy%sObject: 0x%llx is no such object%s",
                        surface ? "Surface" : "Texture", (unsigned long long)handle,
                        texture != NULL && texture->destroyed ? ": it was destroyed before" : "");
        return cudaErrorInvalidValue;
    }
    texture->destroyed = true;
    return cudaSuccess;
}

cudaError_t cudaDestroyTextureObject(cudaTextureObject_t object) {
    DEVICE_CALL(runtime, destroy(runtime, object, false));
}

cudaError_t cudaDestroySurfaceObject(cudaSurfaceObject_t object) {
    DEVICE_CALL(runtime, destroy(runtime, object, true));
}

static const struct object_desc *find_desc(const struct runtime *runtime, uint64_t handle,
                                           bool surface) {
    const struct simt_texture *texture = simt_textures_find(runtime->textures, handle);
    const struct object_desc *desc = runtime->object_descs;
    while (desc != NULL && desc->handle != handle) {
        desc = desc->next;
    }
    bool live = texture != NULL && !texture->destroyed && texture->surface == surface;
    return live ? desc : NULL;
}

static cudaError_t get_resource(const struct runtime *runtime, struct cudaResourceDesc *resource,
                                uint64_t handle, bool surface) {
    const struct object_desc *desc = find_desc(runtime, handle, surface);
    if (resource == NULL || desc == NULL) {
        return cudaErrorInvalidValue;
    }
    *resource = desc->resource;
    return cudaSuccess;
}

cudaError_t cudaGetTextureObjectResourceDesc(struct cudaResourceDesc *resource,
                                             cudaTextureObject_t object) {
    DEVICE_CALL(runtime, get_resource(runtime, resource, object, false));
}

cudaError_t cudaGetSurfaceObjectResourceDesc(struct cudaResourceDesc *resource,
                                             cudaSurfaceObject_t object) {
    DEVICE_CALL(runtime, get_resource(runtime, resource, object, true));
}

static cudaError_t get_settings(const struct runtime *runtime, struct cudaTextureDesc *settings,
                                uint64_t handle) {
    const struct object_desc *desc = find_desc(runtime, handle, false);
    if (settings == NULL || desc == NULL) {
        return cudaErrorInvalidValue;
    }
    *settings = desc->texture;
    return cudaSuccess;
}

cudaError_t cudaGetTextureObjectTextureDesc(struct cudaTextureDesc *settings,
                                            cudaTextureObject_t object) {
    DEVICE_CALL(runtime, get_settings(runtime, settings, object));
}

void texture_objects_free(struct runtime *runtime) {
    while (runtime->object_descs != NULL) {
        struct object_desc *desc = runtime->object_descs;
        runtime->object_descs = desc->next;
        free(desc);
    }
    simt_textures_free(runtime->textures);
    runtime->textures = NULL;
}
