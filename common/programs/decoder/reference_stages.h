/**
 * @file reference_stages.h
 * @brief Stages on the CPU reference that show what programs do, for tests: one that does not come
 *        to an end, one that is slow, one whose engine runs the decoder and draws tokens itself,
 *        and, as the default, the reference.
 */
#ifndef WARPBOOK_COMMON_PROGRAMS_DECODER_REFERENCE_STAGES_H_
#define WARPBOOK_COMMON_PROGRAMS_DECODER_REFERENCE_STAGES_H_

#include "common/programs/decoder/llama2_stages.h"

/** @return 01_stuck, 02_slow, 03_drawing, 04_reference; lives forever. */
const struct llama2_stages *reference_stages(void);

/**
 * @brief The engine of 03_drawing: it takes weights as they are stored, in every dtype, and works
 *        in fp32 on what remains of them; refuses heads of 2 channels, as an engine may.
 */
MUST_CHECK enum status engine_drawing_create(struct engine *engine);

#endif
