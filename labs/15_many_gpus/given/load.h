/**
 * @file load.h
 * @brief Given: a rank's part of a Llama2, read from a mapped checkpoint: of the file's matrices
 *        only the rank's rows and columns, as many_cut() says, are touched.
 */
#ifndef WARPBOOK_LABS_15_MANY_GPUS_GIVEN_LOAD_H_
#define WARPBOOK_LABS_15_MANY_GPUS_GIVEN_LOAD_H_

#include "common/models/llama2_decoder.h"
#include "labs/15_many_gpus/given/parts.h"

#ifdef __cplusplus
extern "C" {
#endif

/**
 * @brief Converts a rank's part to the model's type and copies it to its GPU, the calling thread's.
 * @param parts receives it, to free with many_parts_free()
 * @return STATUS_OK; STATUS_INVALID_ARGUMENT with a line for sizes that cannot be cut, or a
 *         many_cut() whose parts lie outside; STATUS_OUT_OF_MEMORY; STATUS_DEVICE
 */
MUST_CHECK enum status many_parts_load(struct many_parts *parts,
                                       const struct llama2_decoder_model *whole, int rank,
                                       int ranks, many_cut_function *cut, struct error *error);

#ifdef __cplusplus
}
#endif

#endif
