/**
 * @file baseline.h
 * @brief The starter's decoder, as it was before anybody edited it.
 */
#ifndef WARPBOOK_GRADER_10_LLAMA2_DECODER_BASELINE_H_
#define WARPBOOK_GRADER_10_LLAMA2_DECODER_BASELINE_H_

#include "labs/10_llama2_decoder/given/engine.h"

#ifdef __cplusplus
extern "C" {
#endif

/** As the functions of decoder.h, of which it shares nothing. */
struct decoder_functions decoder_baseline(void);

#ifdef __cplusplus
}
#endif

#endif
