/**
 * @file train_program.h
 * @brief The program `train`.
 */
#ifndef WARPBOOK_COMMON_TRAIN_PROGRAM_TRAIN_PROGRAM_H_
#define WARPBOOK_COMMON_TRAIN_PROGRAM_TRAIN_PROGRAM_H_

#include "common/train/program/train_places.h"

/** The program's main(). @return its exit status */
int train_main(int argc, char **argv, const struct train_places *places);

#endif
