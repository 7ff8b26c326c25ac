/**
 * @file output.h
 * @brief The first and the last bytes of a stream of any length.
 */
#ifndef WARPBOOK_GRADER_SANDBOX_OUTPUT_H_
#define WARPBOOK_GRADER_SANDBOX_OUTPUT_H_

#include <stddef.h>

#include "grader/sandbox/sandbox.h"

/** Adds what was read. The output begins as zeros; until output_end() its text is not in order. */
void output_add(struct sandbox_output *output, const char *bytes, size_t count);

/** Puts the text in order: beginning, a line that says how much is left out, end, NUL. */
void output_end(struct sandbox_output *output);

#endif
