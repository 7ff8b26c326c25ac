/**
 * @file step_decoder.h
 * @brief A step of several texts as one persistent kernel: its memory and its launch.
 */
#ifndef WARPBOOK_SOLUTIONS_13_LOW_BIT_ROWS_STEP_DECODER_H_
#define WARPBOOK_SOLUTIONS_13_LOW_BIT_ROWS_STEP_DECODER_H_

#include "solutions/13_low_bit/rows/rows_kernels.h"

struct step_decoder;

/*
 * @brief Makes one that works on the decoder's model, texts, io and cache.
 * @param d outlives it; its cache is allocated
 * @return STATUS_OK, with *out NULL where the GPU does not support the kernel: compute capability
 *         9.0 and some 220 KiB of shared memory; what device_alloc() says
 */
MUST_CHECK enum status step_decoder_create(struct step_decoder **out, const struct rows_decoder *d,
                                           struct error *error);

/* Launches a step. */
MUST_CHECK enum status step_decoder_feed(const struct step_decoder *s, struct error *error);

/* NULL is allowed. */
void step_decoder_free(struct step_decoder *s);

#endif
