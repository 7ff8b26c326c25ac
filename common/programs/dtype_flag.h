/**
 * @file dtype_flag.h
 * @brief Parses the value of --dtype.
 */
#ifndef WARPBOOK_COMMON_PROGRAMS_DTYPE_FLAG_H_
#define WARPBOOK_COMMON_PROGRAMS_DTYPE_FLAG_H_

#include "common/base/status.h"
#include "common/nn/dtype.h"

/** @param name "fp32", "fp16" or "bf16" @return STATUS_OK or STATUS_INVALID_ARGUMENT */
MUST_CHECK enum status dtype_flag_parse(const char *name, enum nn_dtype *dtype,
                                        struct error *error);

#endif
