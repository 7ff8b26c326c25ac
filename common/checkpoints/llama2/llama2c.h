/**
 * @file llama2c.h
 * @brief Reads (in place) and writes llama2.c's checkpoints with the legacy header ("version 0").
 *
 * The file: seven little-endian int32 (dim, hidden_dim, n_layers, n_heads,
 * n_kv_heads, vocab_size, seq_len; a negative vocab_size says that the
 * classifier is not shared with the embedding), then fp32 tensors:
 * embedding (V,C), attention norms (L,C), wq (L,NH*HS,C), wk, wv
 * (L,KVH*HS,C), wo (L,C,NH*HS), feed-forward norms (L,C), w1 (L,hidden,C),
 * w2 (L,C,hidden), w3 (L,hidden,C), final norm (C), two tables of
 * (seq_len, HS/2) that readers skip, and the classifier (V,C) if unshared.
 * Format: llama2.c by A. Karpathy, export.py and run.c.
 */
#ifndef WARPBOOK_COMMON_CHECKPOINTS_LLAMA2_LLAMA2C_H_
#define WARPBOOK_COMMON_CHECKPOINTS_LLAMA2_LLAMA2C_H_

#include <stdbool.h>

#include "common/base/file.h"
#include "common/base/status.h"
#include "common/checkpoints/llama2/llama2_weights.h"

struct llama2c_checkpoint {
    struct llama2_config config;
    struct llama2_weights weights; /**< point into the file or the caller's bytes */
    bool shared_classifier;
    struct file_view view; /**< the mapped file; empty after llama2c_parse() */
};

/**
 * @brief Maps and checks a checkpoint: every size positive, no overflow, file length exact.
 * @return STATUS_OK, the status of file_view_open(), STATUS_TRUNCATED, STATUS_BAD_FORMAT,
 *         STATUS_OVERFLOW, STATUS_MISMATCH (longer than its header says), STATUS_OUT_OF_MEMORY
 */
MUST_CHECK enum status llama2c_open(struct llama2c_checkpoint *checkpoint, const char *path,
                                    struct error *error);

/** As llama2c_open() on @p size bytes at @p data (4-byte aligned), which must outlive the
 * checkpoint. */
MUST_CHECK enum status llama2c_parse(struct llama2c_checkpoint *checkpoint, const void *data,
                                     size_t size, struct error *error);

/** Unmaps and frees; a zero-initialised one is allowed. */
void llama2c_close(struct llama2c_checkpoint *checkpoint);

/**
 * @brief Serialises a model into memory that the caller frees.
 *
 * The classifier is written if weights->classifier != weights->embedding.
 *
 * @return STATUS_OK; STATUS_INVALID_ARGUMENT for sizes that the format cannot hold or its reader
 *         refuses; STATUS_UNSUPPORTED for a rope_theta, norm_eps or rotary layout that is not
 *         llama2.c's; STATUS_OVERFLOW, STATUS_OUT_OF_MEMORY
 */
MUST_CHECK enum status llama2c_serialize(const struct llama2_config *config,
                                         const struct llama2_weights *weights, unsigned char **data,
                                         size_t *size);

#endif
