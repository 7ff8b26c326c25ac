/**
 * @file engine.h
 * @brief Stage 13 of the course: every product with weights of 8 or 4 bits.
 */
#ifndef WARPBOOK_LABS_13_LOW_BIT_GIVEN_ENGINE_H_
#define WARPBOOK_LABS_13_LOW_BIT_GIVEN_ENGINE_H_

#include "common/models/engine.h"
#include "labs/13_low_bit/low_bit.h"

#ifdef __cplusplus
extern "C" {
#endif

/** How the stage stores weights. */
struct low_bit_storage {
    enum low_bit_type type;
    size_t group; /**< of INT4: 32 or 128, with zero points and scales in bf16; else 0: by row */
};

/**
 * @brief Makes the engine: stage 07 with another product, int8 by row.
 *
 * The first product with a matrix rounds it to nearest and prepares it; that takes its time, as
 * the values come to the host for it. Rows of `in` are rounded to bf16.
 * @return STATUS_OK, STATUS_OUT_OF_MEMORY, or what device_open() says
 */
MUST_CHECK enum status engine_low_bit_create(struct engine *engine, struct error *error);

/** The same with another storage, and with a step of one's own. @param step must outlive the engine
 */
MUST_CHECK enum status engine_low_bit_create_with(struct engine *engine,
                                                  struct low_bit_storage storage,
                                                  const struct low_bit_step *step,
                                                  struct error *error);

#ifdef __cplusplus
}
#endif

#endif
