/**
 * @file quantize.h
 * @brief The program that rounds the matrices of a Llama2's layers to 8 or 4 bits.
 */
#ifndef WARPBOOK_COMMON_PROGRAMS_DECODER_QUANTIZE_H_
#define WARPBOOK_COMMON_PROGRAMS_DECODER_QUANTIZE_H_

/**
 * @brief main() of the program.
 * @return exit status: 0; 1 after one line on stderr; 128 + the signal after SIGINT or SIGTERM
 */
int quantize_main(int argc, char **argv);

#endif
