/**
 * @file doctor.h
 * @brief Says of a program what it needs and what simt would refuse, without running it.
 */
#ifndef WARPBOOK_COMMON_SIMT_DOCTOR_DOCTOR_H_
#define WARPBOOK_COMMON_SIMT_DOCTOR_DOCTOR_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "common/base/status.h"
#include "common/simt/fatbin/elf.h"
#include "common/simt/runtime/gpu/gpu.h"

/** Where the lines go, and how many of them say that something is refused. */
struct doctor {
    FILE *stream;
    const struct simt_gpu *gpu;
    size_t refused;
};

/**
 * @brief Examines a program.
 * @param file its bytes, which may be anything
 * @return STATUS_OK, whatever is refused; STATUS_BAD_FORMAT: no program; STATUS_TRUNCATED;
 *         STATUS_OUT_OF_MEMORY
 */
MUST_CHECK enum status doctor_examine(struct doctor *doctor, const struct elf_file *file,
                                      struct error *error);

/* The lines: what is well, what is worth knowing, what would be refused. */
void doctor_ok(struct doctor *doctor, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
void doctor_note(struct doctor *doctor, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
void doctor_refuse(struct doctor *doctor, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

#endif
