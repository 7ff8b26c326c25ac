/**
 * @file stages.h
 * @brief The engines that lab 14's programs run on.
 */
#ifndef WARPBOOK_LABS_14_ENDLESS_TEXT_GIVEN_STAGES_H_
#define WARPBOOK_LABS_14_ENDLESS_TEXT_GIVEN_STAGES_H_

#include "common/programs/decoder/decoder_stages.h"

#ifdef __cplusplus
extern "C" {
#endif

/** @return the CPU's stage and, with nvcc, this lab's; lives forever. */
const struct decoder_stages *endless_stages(void);

#ifdef __cplusplus
}
#endif

#endif
