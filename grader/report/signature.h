/**
 * @file signature.h
 * @brief Signs what the report remembers, so that nobody but its user can have written it.
 *
 * The key lies in the user's own folder, which no submission reads: the sandbox keeps it from both
 * the learner's code and its compiler. HMAC (RFC 2104) over SHA-1, which nobody forges for want of
 * the key, though SHA-1 alone no longer resists collisions.
 */
#ifndef WARPBOOK_GRADER_REPORT_SIGNATURE_H_
#define WARPBOOK_GRADER_REPORT_SIGNATURE_H_

#include <stdbool.h>
#include <stddef.h>

#include "grader/report/sha1.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { SIGNATURE_KEY = 32 /**< bytes */ };

struct signature_key {
    unsigned char bytes[SIGNATURE_KEY];
    char path[1200]; /**< its file */
};

/**
 * @brief Reads this user's key, which is made the first time:
 *        $XDG_STATE_HOME/warpbook/report.key, else ~/.local/state/warpbook/report.key.
 * @return STATUS_OK; STATUS_NOT_FOUND without a home; STATUS_IO, STATUS_BAD_FORMAT with a line
 */
MUST_CHECK enum status signature_key_open(struct signature_key *key, struct error *error);

/** Writes the signature of a text by this key. */
void signature_of(const struct signature_key *key, const char *text, size_t size,
                  char signature[SHA1_TEXT]);

/** HMAC-SHA-1 with any key of at most 64 bytes. */
void signature_hmac(const void *key, size_t key_size, const void *text, size_t size,
                    char signature[SHA1_TEXT]);

/** @return whether both are the same, in a time that does not tell where they differ. */
bool signature_equal(const char *a, const char *b);

#ifdef __cplusplus
}
#endif

#endif
