/**
 * @file program.h
 * @brief Looks into an ELF file: will the emulator's library be used, and will it find PTX?
 */
#ifndef WARPBOOK_COMMON_SIMT_RUNTIME_PROGRAM_PROGRAM_H_
#define WARPBOOK_COMMON_SIMT_RUNTIME_PROGRAM_PROGRAM_H_

#include "common/base/status.h"

/**
 * @brief Refuses a program that cannot run on the emulator, with a line that says how to build it.
 *
 * What is no ELF file (a script), or holds neither kernels nor a CUDA runtime
 * itself (its libraries may), is taken as it is.
 *
 * @return STATUS_OK; STATUS_NOT_FOUND, STATUS_IO; STATUS_UNSUPPORTED: the runtime is linked
 *         statically, is of another version, or there is no PTX; STATUS_BAD_FORMAT: a damaged file
 */
MUST_CHECK enum status program_check(const char *path, struct error *error);

#endif
