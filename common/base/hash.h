/**
 * @file hash.h
 * @brief A hash of bytes, for hash tables.
 */
#ifndef WARPBOOK_COMMON_BASE_HASH_H_
#define WARPBOOK_COMMON_BASE_HASH_H_

#include <stddef.h>
#include <stdint.h>

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

#endif
