/**
 * @file train_program.h
 * @brief The program `train`.
 */
#ifndef WARPBOOK_COMMON_TRAIN_PROGRAM_TRAIN_PROGRAM_H_
#define WARPBOOK_COMMON_TRAIN_PROGRAM_TRAIN_PROGRAM_H_

#include "common/train/program/train_places.h"

#ifdef __cplusplus
extern "C" {
#endif

/** The program's main(). @return its exit status */
int train_main(int argc, char **argv, const struct train_places *places);

#ifdef __cplusplus
}
#endif

#endif
