/**
 * @file evaluate.h
 * @brief The program that measures a classifier's accuracy, for any engine.
 */
#ifndef WARPBOOK_COMMON_PROGRAMS_CLASSIFIER_EVALUATE_H_
#define WARPBOOK_COMMON_PROGRAMS_CLASSIFIER_EVALUATE_H_

#include "common/programs/classifier/classifier_stages.h"

/**
 * @brief main() of the program: accuracy, F1, confusion matrix and texts a second, to stdout; with
 * --json one object.
 * @return exit status: 0; 1 after one line on stderr; 128 + a signal, after the figures so far
 */
int evaluate_main(int argc, char **argv, const struct classifier_stages *stages);

#endif
