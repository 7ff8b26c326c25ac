/**
 * @file stages.h
 * @brief The engines of the course that lab 10's programs run on.
 */
#ifndef WARPBOOK_LABS_10_LLAMA2_DECODER_GIVEN_STAGES_H_
#define WARPBOOK_LABS_10_LLAMA2_DECODER_GIVEN_STAGES_H_

#include "common/programs/decoder/decoder_stages.h"

#ifdef __cplusplus
extern "C" {
#endif

/** @return every stage that this build has, in the order of the course; lives forever. */
const struct decoder_stages *decoder_stages_of_the_course(void);

#ifdef __cplusplus
}
#endif

#endif
