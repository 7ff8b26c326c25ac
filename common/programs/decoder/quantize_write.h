/**
 * @file quantize_write.h
 * @brief Writes a checkpoint with layers of 8 or 4 bits as a Hugging Face folder in
 *        compressed-tensors' layout, which appears complete or not at all.
 */
#ifndef WARPBOOK_COMMON_PROGRAMS_DECODER_QUANTIZE_WRITE_H_
#define WARPBOOK_COMMON_PROGRAMS_DECODER_QUANTIZE_WRITE_H_

#include <stddef.h>

#include "common/base/status.h"
#include "common/checkpoints/packed/packed_config.h"
#include "common/nn/low_bit.h"
#include "common/programs/decoder/decoder_session.h"

struct cJSON;

/** @return the layout of a matrix: a group is at most its columns. */
struct low_bit_layout quantize_layout(const struct packed_config *config, size_t rows,
                                      size_t columns);

/** Reads FOLDER/config.json. @param json out: for cJSON_Delete() */
MUST_CHECK enum status quantize_read_config(const char *folder, struct cJSON **json,
                                            struct error *error);

/**
 * @brief Writes FOLDER/config.json: @p json with "quantization_config" in the place of another.
 * @param json is freed, also after a failure
 */
MUST_CHECK enum status quantize_put_config(struct cJSON *json, const struct packed_config *config,
                                           const char *method, const char *folder,
                                           struct error *error);

/** Copies a file into a folder, under this name. */
MUST_CHECK enum status quantize_copy_file(const char *from, const char *folder, const char *name,
                                          struct error *error);

/** How the weights are rounded. */
struct quantize_rounding {
    struct packed_config config; /**< the group of each matrix is at most its columns */
    const char *method;          /**< for the configuration */
    /**
     * Rounds a matrix whose layout is given, layer by layer.
     * @param weights the model's own, as the engine got it
     */
    enum status (*round)(void *context, size_t layer, const float *weights,
                         struct low_bit_matrix *matrix, struct error *error);
    void *context;
};

/**
 * @brief Writes the folder: config.json, model.safetensors, and the files of the tokenizer.
 * @param session   with fp32 weights
 * @param tokenizer path of the tokenizer of a checkpoint that is a file; NULL: a folder's own
 * @return the statuses of whole_folder.h, safetensors_write() and rounding->round
 */
MUST_CHECK enum status quantize_write(const char *output, const struct decoder_session *session,
                                      const char *checkpoint, const char *tokenizer,
                                      const struct quantize_rounding *rounding,
                                      struct error *error);

#endif
