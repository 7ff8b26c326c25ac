/**
 * @file unpack.h
 * @brief PTX that nvcc compressed becomes text, where the system has libzstd.so.1.
 *
 * The library is looked for when it is needed, so nothing here depends on it.
 */
#ifndef WARPBOOK_COMMON_SIMT_FATBIN_UNPACK_H_
#define WARPBOOK_COMMON_SIMT_FATBIN_UNPACK_H_

#include <stdbool.h>
#include <stddef.h>

#include "common/base/status.h"
#include "common/simt/fatbin/fatbin.h"

#ifdef __cplusplus
extern "C" {
#endif

/** @return true when the system has libzstd, which fatbin_unpack() needs. */
bool fatbin_can_unpack(void);

/**
 * @brief Unpacks PTX.
 * @param text receives memory with *size bytes, zeros at the end cut off; the caller frees it
 * @return STATUS_OK; STATUS_UNSUPPORTED without libzstd; STATUS_BAD_FORMAT for damaged data or a
 *         size that no PTX has; STATUS_OUT_OF_MEMORY
 */
MUST_CHECK enum status fatbin_unpack(const struct fatbin_packed *packed, char **text, size_t *size,
                                     struct error *error);

#ifdef __cplusplus
}
#endif

#endif
