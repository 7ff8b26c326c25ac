/**
 * @file program_output.h
 * @brief The end of a program's standard output.
 */
#ifndef WARPBOOK_COMMON_PROGRAMS_PROGRAM_OUTPUT_H_
#define WARPBOOK_COMMON_PROGRAMS_PROGRAM_OUTPUT_H_

#include "common/base/status.h"

/** Flushes standard output. @return STATUS_OK; STATUS_IO when any output could not be written */
MUST_CHECK enum status program_output_end(struct error *error);

#endif
