/**
 * @file quantize_bert.h
 * @brief Writes a BERT's folder with the matrices of its layers in 8 or 4 bits, rounded to nearest.
 */
#ifndef WARPBOOK_COMMON_PROGRAMS_DECODER_QUANTIZE_BERT_H_
#define WARPBOOK_COMMON_PROGRAMS_DECODER_QUANTIZE_BERT_H_

#include <stdbool.h>

#include "common/base/status.h"
#include "common/checkpoints/packed/packed_config.h"

/** @return whether the path is a folder whose config.json says that it is a BERT. */
bool quantize_is_bert(const char *checkpoint);

/**
 * @brief Writes the folder, complete or not at all; every other tensor and the vocabulary are
 * copied.
 * @param layers receives the number of matrices that were rounded
 * @return the statuses of bert_checkpoint_open(), whole_folder.h, safetensors_write() and
 *         low_bit_quantize()
 */
MUST_CHECK enum status quantize_bert(const char *output, const char *checkpoint,
                                     const struct packed_config *config, size_t *matrices,
                                     struct error *error);

#endif
