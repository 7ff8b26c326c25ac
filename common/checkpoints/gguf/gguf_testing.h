/**
 * @file gguf_testing.h
 * @brief Writes GGUF files in memory, for tests of their readers.
 */
#ifndef WARPBOOK_COMMON_CHECKPOINTS_GGUF_GGUF_TESTING_H_
#define WARPBOOK_COMMON_CHECKPOINTS_GGUF_GGUF_TESTING_H_

#include <stddef.h>
#include <stdint.h>

#include "common/base/status.h"
#include "common/checkpoints/gguf/gguf.h"
#include "common/checkpoints/llama2/llama2_weights.h"

/** A file that grows: first its head with as many values and tensors as will come. */
struct gguf_file {
    unsigned char *data; /**< (size), of `capacity`; the caller frees it */
    size_t size, capacity;
    uint64_t offset; /**< where the data of the next tensor will begin */
};

void gguf_put(struct gguf_file *file, const void *data, size_t size);
void gguf_put_head(struct gguf_file *file, uint32_t version, uint64_t tensors, uint64_t values);
void gguf_put_string(struct gguf_file *file, const char *text, size_t length);
void gguf_put_text(struct gguf_file *file, const char *key, const char *text);
void gguf_put_u32(struct gguf_file *file, const char *key, uint32_t value);
void gguf_put_f32(struct gguf_file *file, const char *key, float value);
void gguf_put_bool(struct gguf_file *file, const char *key, bool value);

/** Key, type and length of an array; its elements follow. */
void gguf_put_array(struct gguf_file *file, const char *key, enum gguf_value_type type,
                    uint64_t count);

/** The entry of a tensor. @param rows 0: a vector */
void gguf_put_tensor(struct gguf_file *file, const char *name, size_t rows, size_t columns,
                     uint32_t type);

/** Bytes up to a multiple of the alignment, 32. */
void gguf_put_padding(struct gguf_file *file);

/** Byte-level: a token for each byte, "ab" with its merge, and "<|end|>", which is EOS and BOS. */
enum { GGUF_BYTE_LEVEL_TOKENS = 258 };

/**
 * @brief Writes a Llama2 with its vocabulary.
 *
 * @param config    rotary layout NN_ROPE_INTERLEAVED
 * @param type      of matrices; vectors are F32. Blocks of fewer than 16 bits are not made from the
 *                  weights, but are any bytes
 * @param tokenizer bytes of a file of llama2.c; NULL: byte-level BPE
 * @return STATUS_OK or STATUS_OUT_OF_MEMORY
 */
MUST_CHECK enum status gguf_testing_llama2(struct gguf_file *file,
                                           const struct llama2_config *config,
                                           const struct llama2_weights *weights,
                                           enum gguf_type type, const unsigned char *tokenizer,
                                           size_t tokenizer_size);

#endif
