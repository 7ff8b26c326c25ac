/**
 * @file array_copy.c
 * @brief Copies from and to arrays: what cudaMemcpy2D() does, with rows of an array.
 */
#include "common/base/checked.h"
#include "common/simt/runtime/array/array.h"
#include "common/simt/runtime/state.h"
#include "common/simt/runtime/stream/stream.h"

/** One side of a copy: memory, or a part of an array. */
struct side {
    cudaArray_const_t array; /**< NULL: memory */
    struct cudaPos at;       /**< in the array, x in bytes */
    struct area area;        /**< memory; of an array found by resolve() */
};

static bool is_inside(size_t at, size_t count, size_t all) {
    return at <= all && count <= all - at;
}

bool array_area(const struct runtime *runtime, const char *call, const struct cudaArray *array,
                const struct cudaPos *at, const struct box *box, struct area *area) {
    const struct simt_image *image = &array->image;
    size_t planes = image->layers > 0 ? image->layers : image->depth;
    if (!is_inside(at->x, box->width, image->pitch) ||
        !is_inside(at->y, box->height, image->height) || !is_inside(at->z, box->depth, planes)) {
        runtime_explain(runtime,
                        "%s: %zu bytes of %zu rows and %zu planes at byte %zu, row %zu, plane %zu "
                        "of an array of %zu bytes, %u rows and %zu planes",
                        call, box->width, box->height, box->depth, at->x, at->y, at->z,
                        image->pitch, image->height, planes);
        return false;
    }
    uint64_t address = image->address + at->z * image->slice + at->y * image->pitch + at->x;
    *area = (struct area){
        .pointer = (void *)(uintptr_t)address, .pitch = image->pitch, .slice = image->slice};
    return true;
}

static cudaError_t resolve(const struct runtime *runtime, const char *call, const struct box *box,
                           struct side *side) {
    const struct cudaArray *array = array_find(runtime, call, side->array);
    if (array == NULL) {
        return cudaErrorInvalidResourceHandle;
    }
    return array_area(runtime, call, array, &side->at, box, &side->area) ? cudaSuccess
                                                                         : cudaErrorInvalidValue;
}

/** @return false when an array is on a side that the direction says is the host's. */
static bool direction_fits(const struct side *to, const struct side *from,
                           enum cudaMemcpyKind kind) {
    bool from_host = kind == cudaMemcpyHostToDevice || kind == cudaMemcpyHostToHost;
    bool to_host = kind == cudaMemcpyDeviceToHost || kind == cudaMemcpyHostToHost;
    return (unsigned)kind <= cudaMemcpyDefault && !(to->array != NULL && to_host) &&
           !(from->array != NULL && from_host);
}

static cudaError_t make(const struct runtime *runtime, const char *call, struct side to,
                        struct side from, struct box box, enum cudaMemcpyKind kind,
                        struct work *work) {
    if (!direction_fits(&to, &from, kind)) {
        return cudaErrorInvalidMemcpyDirection;
    }
    if (to.array != NULL) {
        CUDA_TRY(resolve(runtime, call, &box, &to));
    }
    if (from.array != NULL) {
        CUDA_TRY(resolve(runtime, call, &box, &from));
    }
    *work = (struct work){.kind = WORK_COPY, .call = call};
    work->copy = (struct copy_work){.to = to.area, .from = from.area, .box = box, .kind = kind};
    return cudaSuccess;
}

static cudaError_t copy(struct runtime *runtime, const char *call, struct side to, struct side from,
                        struct box box, enum cudaMemcpyKind kind, cudaStream_t stream) {
    struct work work;
    CUDA_TRY(make(runtime, call, to, from, box, kind, &work));
    return stream_submit(runtime, stream, &work);
}

static struct side side_of_array(cudaArray_const_t array, size_t x, size_t y) {
    return (struct side){.array = array, .at = {.x = x, .y = y}};
}

static struct side side_of_memory(const void *memory, size_t pitch) {
    return (struct side){.area = {.pointer = (void *)(uintptr_t)memory, .pitch = pitch}};
}

static cudaError_t rows_to_array(struct runtime *runtime, struct side to, const void *from,
                                 size_t pitch, size_t width, size_t height,
                                 enum cudaMemcpyKind kind, cudaStream_t stream) {
    const char *call = "cudaMemcpy2DToArray";
    struct box box = {.width = width, .height = height, .depth = 1};
    if (to.array == NULL) {
        return cudaErrorInvalidResourceHandle;
    }
    return width > pitch ? cudaErrorInvalidPitchValue
                         : copy(runtime, call, to, side_of_memory(from, pitch), box, kind, stream);
}

cudaError_t cudaMemcpy2DToArray(cudaArray_t to, size_t x, size_t y, const void *from, size_t pitch,
                                size_t width, size_t height, enum cudaMemcpyKind kind) {
    SYNCHRONOUS_CALL(runtime, order_waited_for_copy(
                                  runtime, rows_to_array(runtime, side_of_array(to, x, y), from,
                                                         pitch, width, height, kind, NULL)));
}

cudaError_t cudaMemcpy2DToArrayAsync(cudaArray_t to, size_t x, size_t y, const void *from,
                                     size_t pitch, size_t width, size_t height,
                                     enum cudaMemcpyKind kind, cudaStream_t stream) {
    DEVICE_CALL(runtime, rows_to_array(runtime, side_of_array(to, x, y), from, pitch, width, height,
                                       kind, stream));
}

static cudaError_t rows_from_array(struct runtime *runtime, void *to, size_t pitch,
                                   struct side from, size_t width, size_t height,
                                   enum cudaMemcpyKind kind, cudaStream_t stream) {
    const char *call = "cudaMemcpy2DFromArray";
    struct box box = {.width = width, .height = height, .depth = 1};
    if (from.array == NULL) {
        return cudaErrorInvalidResourceHandle;
    }
    return width > pitch ? cudaErrorInvalidPitchValue
                         : copy(runtime, call, side_of_memory(to, pitch), from, box, kind, stream);
}

cudaError_t cudaMemcpy2DFromArray(void *to, size_t pitch, cudaArray_const_t from, size_t x,
                                  size_t y, size_t width, size_t height, enum cudaMemcpyKind kind) {
    SYNCHRONOUS_CALL(runtime,
                     order_waited_for_copy(runtime, rows_from_array(runtime, to, pitch,
                                                                    side_of_array(from, x, y),
                                                                    width, height, kind, NULL)));
}

cudaError_t cudaMemcpy2DFromArrayAsync(void *to, size_t pitch, cudaArray_const_t from, size_t x,
                                       size_t y, size_t width, size_t height,
                                       enum cudaMemcpyKind kind, cudaStream_t stream) {
    DEVICE_CALL(runtime, rows_from_array(runtime, to, pitch, side_of_array(from, x, y), width,
                                         height, kind, stream));
}

static cudaError_t between(struct runtime *runtime, const char *call, struct side to,
                           struct side from, size_t width, size_t height,
                           enum cudaMemcpyKind kind) {
    struct box box = {.width = width, .height = height, .depth = 1};
    return to.array == NULL || from.array == NULL ? cudaErrorInvalidResourceHandle
                                                  : copy(runtime, call, to, from, box, kind, NULL);
}

cudaError_t cudaMemcpy2DArrayToArray(cudaArray_t to, size_t to_x, size_t to_y,
                                     cudaArray_const_t from, size_t from_x, size_t from_y,
                                     size_t width, size_t height, enum cudaMemcpyKind kind) {
    SYNCHRONOUS_CALL(runtime,
                     order_waited_for_copy(runtime, between(runtime, "cudaMemcpy2DArrayToArray",
                                                            side_of_array(to, to_x, to_y),
                                                            side_of_array(from, from_x, from_y),
                                                            width, height, kind)));
}

/**
 * Bytes that go on in the next row of an array: rows lie without gaps, so they are one piece.
 * @return false when they do not end before the array does
 */
static bool take_piece(const struct runtime *runtime, const char *call, size_t bytes,
                       struct side *side) {
    const struct cudaArray *array = array_find(runtime, call, side->array);
    size_t begin, skipped;
    if (array == NULL || !checked_multiply(side->at.y, array->image.pitch, &skipped) ||
        !checked_add(skipped, side->at.x, &begin) || !is_inside(begin, bytes, array->image.slice)) {
        if (array != NULL) {
            runtime_explain(runtime, "%s: %zu bytes at byte %zu of row %zu of an array of %zu",
                            call, bytes, side->at.x, side->at.y, array->image.slice);
        }
        return false;
    }
    side->array = NULL;
    side->area.pointer = (void *)(uintptr_t)(array->image.address + begin);
    return true;
}

static cudaError_t piece(struct runtime *runtime, const char *call, struct side to,
                         struct side from, size_t bytes, enum cudaMemcpyKind kind,
                         cudaStream_t stream) {
    struct box box = {.width = bytes, .height = 1, .depth = 1};
    if (!direction_fits(&to, &from, kind)) {
        return cudaErrorInvalidMemcpyDirection;
    }
    if ((to.array != NULL && !take_piece(runtime, call, bytes, &to)) ||
        (from.array != NULL && !take_piece(runtime, call, bytes, &from))) {
        return cudaErrorInvalidValue;
    }
    return copy(runtime, call, to, from, box, kind, stream);
}

cudaError_t cudaMemcpyToArray(cudaArray_t to, size_t x, size_t y, const void *from, size_t bytes,
                              enum cudaMemcpyKind kind) {
    SYNCHRONOUS_CALL(
        runtime,
        order_waited_for_copy(runtime, piece(runtime, "cudaMemcpyToArray", side_of_array(to, x, y),
                                             side_of_memory(from, 0), bytes, kind, NULL)));
}

cudaError_t cudaMemcpyToArrayAsync(cudaArray_t to, size_t x, size_t y, const void *from,
                                   size_t bytes, enum cudaMemcpyKind kind, cudaStream_t stream) {
    DEVICE_CALL(runtime, piece(runtime, "cudaMemcpyToArrayAsync", side_of_array(to, x, y),
                               side_of_memory(from, 0), bytes, kind, stream));
}

cudaError_t cudaMemcpyFromArray(void *to, cudaArray_const_t from, size_t x, size_t y, size_t bytes,
                                enum cudaMemcpyKind kind) {
    SYNCHRONOUS_CALL(
        runtime,
        order_waited_for_copy(runtime, piece(runtime, "cudaMemcpyFromArray", side_of_memory(to, 0),
                                             side_of_array(from, x, y), bytes, kind, NULL)));
}

cudaError_t cudaMemcpyFromArrayAsync(void *to, cudaArray_const_t from, size_t x, size_t y,
                                     size_t bytes, enum cudaMemcpyKind kind, cudaStream_t stream) {
    DEVICE_CALL(runtime, piece(runtime, "cudaMemcpyFromArrayAsync", side_of_memory(to, 0),
                               side_of_array(from, x, y), bytes, kind, stream));
}

cudaError_t cudaMemcpyArrayToArray(cudaArray_t to, size_t to_x, size_t to_y, cudaArray_const_t from,
                                   size_t from_x, size_t from_y, size_t bytes,
                                   enum cudaMemcpyKind kind) {
    SYNCHRONOUS_CALL(runtime,
                     order_waited_for_copy(runtime, piece(runtime, "cudaMemcpyArrayToArray",
                                                          side_of_array(to, to_x, to_y),
                                                          side_of_array(from, from_x, from_y),
                                                          bytes, kind, NULL)));
}

/** A side of cudaMemcpy3D(): positions in an array count elements, in memory bytes. */
static struct side side_3d(cudaArray_const_t array, size_t element,
                           const struct cudaPitchedPtr *memory, const struct cudaPos *at) {
    struct side side = {.array = array, .at = *at};
    if (array != NULL) {
        side.at.x *= element;
        return side;
    }
    size_t slice = memory->pitch * memory->ysize;
    size_t offset = at->z * slice + at->y * memory->pitch + at->x;
    side.area = (struct area){.pitch = memory->pitch, .slice = slice};
    side.area.pointer = memory->ptr != NULL ? (void *)((uintptr_t)memory->ptr + offset) : NULL;
    return side;
}

static size_t element_of(const struct runtime *runtime, const char *call,
                         cudaArray_const_t handle) {
    const struct cudaArray *array = array_find(runtime, call, handle);
    return array != NULL ? simt_image_texel(&array->image) : 0;
}

cudaError_t array_planes_work(const struct runtime *runtime, const char *call,
                              const struct cudaMemcpy3DParms *p, struct work *work) {
    size_t to = p->dstArray != NULL ? element_of(runtime, call, p->dstArray) : 0;
    size_t from = p->srcArray != NULL ? element_of(runtime, call, p->srcArray) : 0;
    if ((p->dstArray != NULL && to == 0) || (p->srcArray != NULL && from == 0)) {
        return cudaErrorInvalidResourceHandle;
    }
    if (to != 0 && from != 0 && to != from) {
        runtime_explain(runtime, "%s: elements of %zu bytes to elements of %zu", call, from, to);
        return cudaErrorInvalidValue;
    }
    struct box box = {.width = p->extent.width * (to != 0 ? to : from),
                      .height = p->extent.height,
                      .depth = p->extent.depth};
    return make(runtime, call, side_3d(p->dstArray, to, &p->dstPtr, &p->dstPos),
                side_3d(p->srcArray, from, &p->srcPtr, &p->srcPos), box, p->kind, work);
}
