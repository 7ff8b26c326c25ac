/**
 * @file reference_stages.h
 * @brief Stages of the CPU reference for tests of programs: one that practically never ends, one
 *        that is slow, one whose engine runs the whole decoder and samples tokens itself, and, as
 *        the default, the reference.
 */
#ifndef WARPBOOK_COMMON_PROGRAMS_DECODER_REFERENCE_STAGES_H_
#define WARPBOOK_COMMON_PROGRAMS_DECODER_REFERENCE_STAGES_H_

#include "common/programs/decoder/decoder_stages.h"

/** @return 01_stuck, 02_slow, 03_drawing, 04_reference; static memory. */
const struct decoder_stages *reference_stages(void);

/**
 * @brief The engine of 03_drawing: takes weights as they are stored, in every dtype, rounds them to
 *        the requested dtype and computes in fp32. It does not support heads of 2 channels.
 */
MUST_CHECK enum status engine_drawing_create(struct engine *engine);

#endif
