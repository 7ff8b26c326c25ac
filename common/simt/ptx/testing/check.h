/**
 * @file check.h
 * @brief Checks that a parsed module holds together, for tests: every index is inside its table.
 */
#ifndef WARPBOOK_COMMON_SIMT_PTX_TESTING_CHECK_H_
#define WARPBOOK_COMMON_SIMT_PTX_TESTING_CHECK_H_

#include "common/simt/ptx/ptx.h"

/** @return NULL, or a description of the module's error. */
const char *ptx_check(const struct ptx_module *module);

#endif
