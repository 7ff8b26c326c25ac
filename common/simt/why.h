/**
 * @file why.h
 * @brief Why a kernel is not faster: its profile in one line, and one sentence what to try.
 */
#ifndef WARPBOOK_COMMON_SIMT_WHY_H_
#define WARPBOOK_COMMON_SIMT_WHY_H_

#include <stddef.h>

#include "common/simt/profile.h"

#ifdef __cplusplus
extern "C" {
#endif

/** Enough for either line. */
enum { WHY_BYTES = 512 };

/**
 * @brief Writes "modelled NVIDIA H200, tile: 64 blocks of 256 threads on 64 of 132 multiprocessors,
 *        96 registers a thread, 8 of 64 warps resident (no more blocks), issue busy 61%".
 *
 * Any profile will do, also one whose numbers make no sense. Its texts must end with NUL.
 *
 * @return @p text
 */
const char *why_line(const struct simt_profile *profile, char *text, size_t size);

/**
 * @brief Writes what to try first: a sentence without capital and full stop.
 * @return @p text; "" when nothing is known of the launch but its shape, and that is no reason
 */
const char *why_advice(const struct simt_profile *profile, char *text, size_t size);

/** @return "L1 and shared memory", "fp32 units"; "unknown" for what is no enum simt_unit. */
const char *why_unit_name(uint32_t unit);

#ifdef __cplusplus
}
#endif

#endif
