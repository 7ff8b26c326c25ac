/**
 * @file generate.h
 * @brief The program that writes text with a Llama2 checkpoint, for any engine.
 *
 * Flags and behaviour are those of llama2.c's `run` (A. Karpathy). Added are long
 * flag names, stages and types, --top-k, --roll, and Ctrl-C; the text also ends at
 * EOS, not only at BOS.
 */
#ifndef WARPBOOK_COMMON_PROGRAMS_DECODER_GENERATE_H_
#define WARPBOOK_COMMON_PROGRAMS_DECODER_GENERATE_H_

#include "common/programs/decoder/decoder_stages.h"

/**
 * @brief main() of the program: reads the command line, writes text to stdout, figures to stderr.
 * @param stages --stage chooses one of them
 * @return exit status: 0; 1 after one line on stderr; 128 + the signal after SIGINT or SIGTERM
 */
int generate_main(int argc, char **argv, const struct decoder_stages *stages);

#endif
