/**
 * @file classify.h
 * @brief The program that says which class a text belongs to, for any engine.
 */
#ifndef WARPBOOK_COMMON_PROGRAMS_CLASSIFIER_CLASSIFY_H_
#define WARPBOOK_COMMON_PROGRAMS_CLASSIFIER_CLASSIFY_H_

#include "common/programs/classifier/classifier_stages.h"

#ifdef __cplusplus
extern "C" {
#endif

/**
 * @brief main() of the program: a line a text on stdout, "LABEL<tab>NAME 0.1234<tab>NAME 0.8766".
 *
 * Texts are the arguments, or the lines of --file or of standard input. All are checked before the
 * first is answered.
 *
 * @return exit status: 0, or 1 after one line on stderr
 */
int classify_main(int argc, char **argv, const struct classifier_stages *stages);

#ifdef __cplusplus
}
#endif

#endif
