/**
 * @file unsupported.h
 * @brief The answer of functions that the emulator does not have.
 */
#ifndef WARPBOOK_COMMON_SIMT_RUNTIME_UNSUPPORTED_UNSUPPORTED_H_
#define WARPBOOK_COMMON_SIMT_RUNTIME_UNSUPPORTED_UNSUPPORTED_H_

#include <stdbool.h>

/**
 * @brief Says once that the program calls a function that is not there.
 * @param said remembers that it was said
 * @return cudaErrorNotSupported
 */
int unsupported_call(const char *name, bool *said);

#endif
