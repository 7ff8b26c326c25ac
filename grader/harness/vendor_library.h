/**
 * @file vendor_library.h
 * @brief Finds a loaded library that could do a submission's work.
 */
#ifndef WARPBOOK_GRADER_HARNESS_VENDOR_LIBRARY_H_
#define WARPBOOK_GRADER_HARNESS_VENDOR_LIBRARY_H_

#include <stdbool.h>
#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

/**
 * @brief Looks for vendor and BLAS libraries among the files this process has mapped.
 * @param name receives the first one's file name
 * @return false when there is none
 */
bool grader_vendor_library(char *name, size_t size);

#ifdef __cplusplus
}
#endif

#endif
