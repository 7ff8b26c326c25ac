/**
 * @file sha1.h
 * @brief SHA-1 (RFC 3174): tells one build from another.
 *
 * Nothing relies on its resisting collisions: signature.h has a key.
 */
#ifndef WARPBOOK_GRADER_REPORT_SHA1_H_
#define WARPBOOK_GRADER_REPORT_SHA1_H_

#include <stddef.h>
#include <stdint.h>

#include "common/base/status.h"

#ifdef __cplusplus
extern "C" {
#endif

enum {
    SHA1_BYTES = 20, /**< of a digest */
    SHA1_TEXT = 41   /**< the same in hexadecimal, with a NUL */
};

struct sha1 {
    uint32_t state[5];
    uint64_t bytes;
    unsigned char block[64];
};

struct sha1 sha1_begin(void);
void sha1_add(struct sha1 *sha1, const void *data, size_t size);
/** Writes the digest; the struct is used up. */
void sha1_end(struct sha1 *sha1, char text[SHA1_TEXT]);
void sha1_end_bytes(struct sha1 *sha1, unsigned char digest[SHA1_BYTES]);
/** Writes a digest in hexadecimal. */
void sha1_text(const unsigned char digest[SHA1_BYTES], char text[SHA1_TEXT]);

/** Adds a file's length and content. @return STATUS_OK, or what opening it gives */
MUST_CHECK enum status sha1_add_file(struct sha1 *sha1, const char *path, struct error *error);

#ifdef __cplusplus
}
#endif

#endif
