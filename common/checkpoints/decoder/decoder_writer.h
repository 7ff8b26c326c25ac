/**
 * @file decoder_writer.h
 * @brief Collects a decoder's tensors, in a stored type, and serialises them: what the writers of
 *        decoder checkpoints share.
 *
 * All tensors are visited twice: first to measure them, then to store them.
 */
#ifndef WARPBOOK_COMMON_CHECKPOINTS_DECODER_DECODER_WRITER_H_
#define WARPBOOK_COMMON_CHECKPOINTS_DECODER_DECODER_WRITER_H_

#include "common/base/arena.h"
#include "common/checkpoints/decoder/decoder_tensors.h"
#include "common/checkpoints/safetensors/safetensors.h"

struct decoder_writer {
    enum nn_dtype dtype; /**< stored type */
    size_t bytes;        /**< of all values, measured */
    struct arena arena;  /**< the values as stored */
    struct safetensors_tensor *tensors;
    size_t count; /**< measured, then kept */
    struct error *error;
};

/** Counts and measures a tensor. */
MUST_CHECK enum status decoder_writer_measure(struct decoder_writer *writer,
                                              const struct decoder_weight *tensor);

/** Makes memory for what has been measured. */
MUST_CHECK enum status decoder_writer_allocate(struct decoder_writer *writer);

/** Enters a tensor. @param kept receives the memory of its values, which the caller fills */
MUST_CHECK enum status decoder_writer_keep(struct decoder_writer *writer,
                                           const struct decoder_weight *tensor, void **kept);

/** @param data receives a file of @p size bytes, which the caller frees */
MUST_CHECK enum status decoder_writer_serialize(const struct decoder_writer *writer,
                                                unsigned char **data, size_t *size);

/** Frees; also after a failure. */
void decoder_writer_free(struct decoder_writer *writer);

/** A number of a configuration. */
struct decoder_number {
    const char *key;
    double value;
};

/**
 * @brief Adds to a config.json what both families have: "architectures", "model_type",
 *        "hidden_act", "torch_dtype", "tie_word_embeddings", and numbers.
 * @param json a cJSON object
 * @return false without memory
 */
bool decoder_config_add(void *json, const char *architecture, const char *model_type,
                        const char *activation, enum nn_dtype dtype, bool shared_classifier,
                        const struct decoder_number *numbers, size_t count);

#endif
