/**
 * @file generate.h
 * @brief The program that writes text with a Llama2 checkpoint, for any engine.
 *
 * Flags and behaviour are those of llama2.c's `run` (A. Karpathy), with long
 * names beside the letters.
 */
#ifndef WARPBOOK_COMMON_MODEL_GENERATE_H_
#define WARPBOOK_COMMON_MODEL_GENERATE_H_

#include "common/base/status.h"
#include "common/model/engine.h"

#ifdef __cplusplus
extern "C" {
#endif

/** Makes the engine that the program runs on. @param threads at least 1 @param error may say why
 * not */
typedef enum status generate_engine_function(struct engine *engine, int threads,
                                             struct error *error);

/**
 * @brief main() of the program: reads the command line, writes text to stdout, figures to stderr.
 * @return exit status: 0, or 1 after one line on stderr
 */
int generate_main(int argc, char **argv, generate_engine_function *create_engine);

#ifdef __cplusplus
}
#endif

#endif
