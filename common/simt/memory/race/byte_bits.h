/**
 * @file byte_bits.h
 * @brief A bit for each byte of a memory, in words of 64. Ranges must lie inside the memory.
 */
#ifndef WARPBOOK_COMMON_SIMT_MEMORY_RACE_BYTE_BITS_H_
#define WARPBOOK_COMMON_SIMT_MEMORY_RACE_BYTE_BITS_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/** Words for a memory of @p bytes bytes. */
static inline size_t byte_bits_words(size_t bytes) {
    return bytes / 64 + 1;
}

/** The bits of the bytes from `offset` on that lie in its word, `*step` of at most `bytes`. */
static inline uint64_t byte_bits_mask(size_t offset, size_t bytes, size_t *step) {
    size_t room = 64 - offset % 64;
    *step = bytes < room ? bytes : room;
    uint64_t ones = *step == 64 ? UINT64_MAX : ((uint64_t)1 << *step) - 1;
    return ones << (offset % 64);
}

static inline void byte_bits_set(uint64_t *bits, size_t offset, size_t bytes) {
    for (size_t end = offset + bytes, step; offset < end; offset += step) {
        uint64_t mask = byte_bits_mask(offset, end - offset, &step);
        bits[offset / 64] |= mask;
    }
}

static inline void byte_bits_clear(uint64_t *bits, size_t offset, size_t bytes) {
    for (size_t end = offset + bytes, step; offset < end; offset += step) {
        uint64_t mask = byte_bits_mask(offset, end - offset, &step);
        bits[offset / 64] &= ~mask;
    }
}

static inline bool byte_bits_all(const uint64_t *bits, size_t offset, size_t bytes) {
    for (size_t end = offset + bytes, step; offset < end; offset += step) {
        uint64_t mask = byte_bits_mask(offset, end - offset, &step);
        if ((bits[offset / 64] & mask) != mask) {
            return false;
        }
    }
    return true;
}

/**
 * @brief The same for 32 words of 4 bytes.
 * @param offset   of the first one, a multiple of 4
 * @param relative (32) bytes from there, multiples of 4
 */
bool byte_bits_all_words(const uint64_t *bits, size_t offset, const int32_t *relative);

/** Sets the bits of such words. */
static inline void byte_bits_set_words(uint64_t *bits, size_t offset, const int32_t *relative) {
    for (int n = 0; n < 32; n++) {
        size_t at = offset + (size_t)(int64_t)relative[n];
        bits[at / 64] |= (uint64_t)0xf << at % 64;
    }
}

static inline bool byte_bits_any(const uint64_t *bits, size_t offset, size_t bytes) {
    for (size_t end = offset + bytes, step; offset < end; offset += step) {
        uint64_t mask = byte_bits_mask(offset, end - offset, &step);
        if ((bits[offset / 64] & mask) != 0) {
            return true;
        }
    }
    return false;
}

#endif
