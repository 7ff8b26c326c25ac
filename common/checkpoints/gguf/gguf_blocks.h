/**
 * @file gguf_blocks.h
 * @brief GGUF's types of tensors, and what their numbers stand for, as fp32.
 *
 * A block, all scales in fp16:
 *
 * | type | weights | bytes | weight |
 * |---|---|---|---|
 * | Q8_0 | 32 | d, 32 int8 | d q |
 * | Q4_0 | 32 | d, 16 bytes: weight i in the low nibble of byte i, i + 16 in the high one | d (q -
 * 8) | | Q4_K | 256 | d, dmin, 12 bytes with a 6-bit scale s and minimum m for each 32 weights, 128
 * bytes of nibbles | d s q - dmin m | | Q6_K | 256 | 128 bytes of low nibbles, 64 of upper 2 bits,
 * 16 int8 scales s, d | d s (q - 32) |
 *
 * d s q has at most 24 significant bits in each type, so that fp32 holds it exactly; only Q4_K's
 * difference is rounded, once.
 */
#ifndef WARPBOOK_COMMON_CHECKPOINTS_GGUF_GGUF_BLOCKS_H_
#define WARPBOOK_COMMON_CHECKPOINTS_GGUF_GGUF_BLOCKS_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/** The types that can be read, by their numbers in files. */
enum gguf_type {
    GGUF_F32 = 0,
    GGUF_F16 = 1,
    GGUF_Q4_0 = 2,
    GGUF_Q8_0 = 8,
    GGUF_Q4_K = 12,
    GGUF_Q6_K = 14,
    GGUF_BF16 = 30
};

/** A type's name, and how many weights a block of how many bytes holds; 0: cannot be read. */
struct gguf_block {
    const char *name;
    size_t weights, bytes;
};

/** @return the type; named "unknown" if this number is no type's. */
struct gguf_block gguf_block(uint32_t type);

/** "F32, F16, ...": the types that can be read. */
extern const char gguf_types_read[];

/**
 * @brief Dequantises.
 * @param type  one that can be read
 * @param data  host, whole blocks; may be unaligned
 * @param out   host, (count)
 * @param count a multiple of the block's weights
 */
void gguf_dequantize(enum gguf_type type, const void *data, float *out, size_t count);

#ifdef __cplusplus
}
#endif

#endif
