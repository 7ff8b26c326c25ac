/**
 * @file kit.h
 * @brief Copies the kit of kit.bzl into an output folder.
 */
#ifndef WARPBOOK_GRADER_CLASS_KIT_H_
#define WARPBOOK_GRADER_CLASS_KIT_H_

#include <stdbool.h>

#include "grader/class/task.h"

/**
 * @brief Copies the parts that the chosen labs need to OUTPUT/kit; does nothing where that is
 * whole.
 * @param manifest lines "PLACE<tab>FILE<tab>LABS"; a FILE that does not begin with / is below @p
 * runfiles
 * @return STATUS_OK; STATUS_NOT_FOUND where the kit lacks a lab
 */
MUST_CHECK enum status kit_copy(const char *manifest, const char *runfiles, const char *output,
                                const bool chosen[LAB_COUNT], struct error *error);

/** @return whether the kit's programs are built for GPUs. */
bool kit_needs_gpu(const char *output);

#endif
