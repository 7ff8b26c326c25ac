/**
 * @file tensor_map.h
 * @brief The 128 bytes of a CUtensorMap, as cuTensorMapEncodeTiled of simt fills them.
 *
 * NVIDIA's own encoding is not documented; programs pass the bytes on as they are.
 */
#ifndef WARPBOOK_COMMON_SIMT_TENSOR_MAP_TENSOR_MAP_H_
#define WARPBOOK_COMMON_SIMT_TENSOR_MAP_TENSOR_MAP_H_

#include <stdbool.h>
#include <stdint.h>

enum { TENSOR_DIMENSIONS = 5 };

/** In the first word of a map that simt has made. */
#define TENSOR_MAP_MAGIC 0x50414d54u

/** How 16-byte chunks of shared memory are swizzled: CUtensorMapSwizzle's values. */
enum tensor_swizzle {
    TENSOR_SWIZZLE_NONE,
    TENSOR_SWIZZLE_32,
    TENSOR_SWIZZLE_64,
    TENSOR_SWIZZLE_128
};

/** A tensor in global memory and the box of it that a copy moves; dimension 0 is the inner one. */
struct tensor_map {
    uint32_t magic;
    uint8_t type;          /**< CUtensorMapDataType */
    uint8_t element_bytes; /**< 1, 2, 4 or 8 */
    uint8_t rank;          /**< 1 to 5 */
    uint8_t swizzle;       /**< enum tensor_swizzle */
    uint64_t address;
    uint32_t last[TENSOR_DIMENSIONS]; /**< the size less one: sizes reach 2^32 */
    uint16_t box[TENSOR_DIMENSIONS];  /**< elements that it spans, 1 to 256 */
    uint8_t steps[TENSOR_DIMENSIONS]; /**< elements from one that is copied to the next, 1 to 8 */
    uint8_t fill_nan;                 /**< outside the tensor: not a number; else zeros */
    uint64_t strides[TENSOR_DIMENSIONS - 1]; /**< bytes, of dimensions 1 and up */
    uint8_t unused[40];
};

_Static_assert(sizeof(struct tensor_map) == 128, "a CUtensorMap has 128 bytes");

/** @return elements of the box along a dimension that a copy moves. */
static inline uint32_t tensor_map_count(const struct tensor_map *map, uint32_t dimension) {
    return (map->box[dimension] + map->steps[dimension] - 1u) / map->steps[dimension];
}

/** @return bytes of the box in shared memory. */
static inline uint32_t tensor_map_bytes(const struct tensor_map *map) {
    uint32_t bytes = map->element_bytes;
    for (uint32_t n = 0; n < map->rank; n++) {
        bytes *= tensor_map_count(map, n);
    }
    return bytes;
}

/** @return a shared address with its 16-byte chunk moved as @p swizzle says. */
static inline uint32_t tensor_swizzled(uint32_t address, enum tensor_swizzle swizzle) {
    uint32_t bits = swizzle == TENSOR_SWIZZLE_NONE ? 0 : (1u << swizzle) - 1;
    return address ^ ((address >> 7 & bits) << 4);
}

#endif
