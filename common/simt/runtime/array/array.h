/**
 * @file array.h
 * @brief CUDA arrays: texels in device memory, row after row.
 */
#ifndef WARPBOOK_COMMON_SIMT_RUNTIME_ARRAY_ARRAY_H_
#define WARPBOOK_COMMON_SIMT_RUNTIME_ARRAY_ARRAY_H_

#include <stdbool.h>

#include <cuda_runtime_api.h>

#include "common/simt/runtime/stream/work.h"
#include "common/simt/texture/texture.h"

struct runtime;
struct work;

/** What a cudaArray_t points to. */
struct cudaArray {
    struct cudaArray *next;
    struct simt_image image;
    struct cudaChannelFormatDesc desc;
    struct cudaExtent extent; /**< as asked for: 0 where there is no such dimension */
    unsigned flags;
};

/** @return true when channels are ones that an array can have: 1, 2 or 4, all of 8, 16 or 32 bits,
 *  floats of 16 or 32. @param image receives bits, channels and kind */
bool channels_read(const struct cudaChannelFormatDesc *desc, struct simt_image *image);

/** @return the array, or NULL with a line of explanation: it is none, or was freed. */
const struct cudaArray *array_find(const struct runtime *runtime, const char *call,
                                   cudaArray_const_t handle);

/**
 * @brief Finds the rows of a part of an array.
 * @param at  x in bytes, row, plane or layer
 * @param box of the part, width in bytes
 * @return false, with a line of explanation, when it is not all inside
 */
bool array_area(const struct runtime *runtime, const char *call, const struct cudaArray *array,
                const struct cudaPos *at, const struct box *box, struct area *area);

/** work_copy_planes() with an array on one side or both. */
cudaError_t array_planes_work(const struct runtime *runtime, const char *call,
                              const struct cudaMemcpy3DParms *parameters, struct work *work);

/** Forgets all arrays, whose memory goes with the device's, and all texture and surface objects. */
void arrays_free(struct runtime *runtime);
void texture_objects_free(struct runtime *runtime);

#endif
