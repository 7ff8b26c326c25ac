/**
 * @file classify.h
 * @brief The program that classifies texts, for any engine.
 */
#ifndef WARPBOOK_COMMON_PROGRAMS_CLASSIFIER_CLASSIFY_H_
#define WARPBOOK_COMMON_PROGRAMS_CLASSIFIER_CLASSIFY_H_

#include "common/programs/classifier/classifier_stages.h"

/**
 * @brief main() of the program: prints one line for each text, "LABEL<tab>NAME 0.1234<tab>NAME
 *        0.8766": the answer, then the probability of each label.
 *
 * With --json the line is an object: {"text": "...", "label": "NAME", "probabilities": {"NAME":
 * 0.1234, ...}, "cut": false}; cut says whether the text had too many tokens.
 *
 * Texts are the arguments, or the lines of --file or of standard input. The program encodes all of
 * them before it answers the first, unless standard input is a pipe or a terminal: then it answers
 * the lines that have arrived, and flushes its output, before it waits for more.
 *
 * @return exit status: 0; 1 after one line on stderr; 128 + a signal, after the answers so far
 */
int classify_main(int argc, char **argv, const struct classifier_stages *stages);

#endif
