/**
 * @file left_out.h
 * @brief Whether simt may do without PTX that a list `simt_code` leaves out.
 */
#ifndef WARPBOOK_COMMON_BAZEL_LEFT_OUT_LEFT_OUT_H_
#define WARPBOOK_COMMON_BAZEL_LEFT_OUT_LEFT_OUT_H_

#include <stddef.h>

#include "common/base/status.h"

/**
 * @brief Compares all PTX of a file with what is left where a list leaves some of it out.
 *
 * A GPU whose PTX is left out runs that for the next older one: both must be the same, word for
 * word, and the file's host code must not ask which one runs.
 *
 * @param capabilities that PTX is kept for: "75 90"
 * @param code         fat binary with the file's PTX for all of simt's GPUs, (size) bytes
 * @return STATUS_OK; STATUS_MISMATCH with a line that says which PTX is missed, or that none is
 * left out
 */
MUST_CHECK enum status left_out_check(const char *capabilities, const void *code, size_t size,
                                      struct error *error);

#endif
