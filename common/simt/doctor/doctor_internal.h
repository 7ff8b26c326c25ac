/**
 * @file doctor_internal.h
 * @brief The doctor's parts.
 */
#ifndef WARPBOOK_COMMON_SIMT_DOCTOR_DOCTOR_INTERNAL_H_
#define WARPBOOK_COMMON_SIMT_DOCTOR_DOCTOR_INTERNAL_H_

#include "common/simt/doctor/doctor.h"
#include "common/simt/runtime/program/contents.h"

/** Looks at the file as such. @return STATUS_BAD_FORMAT, STATUS_TRUNCATED: it is no whole program;
 *  *foreign receives whether it is for another machine, of which nothing else is known */
MUST_CHECK enum status doctor_look_at_file(struct doctor *doctor, const struct elf_file *file,
                                           bool *foreign, struct error *error);

/** Looks at the fat binaries: for which GPUs they are, and what their kernels use. */
MUST_CHECK enum status doctor_look_at_kernels(struct doctor *doctor,
                                              const struct program_contents *contents,
                                              struct error *error);

#endif
