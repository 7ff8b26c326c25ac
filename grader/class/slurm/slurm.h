/**
 * @file slurm.h
 * @brief The back end "slurm": tasks are job arrays; see CLUSTER.md.
 */
#ifndef WARPBOOK_GRADER_CLASS_SLURM_SLURM_H_
#define WARPBOOK_GRADER_CLASS_SLURM_SLURM_H_

#include "grader/class/backend/backend.h"

extern const struct backend backend_slurm;

#endif
