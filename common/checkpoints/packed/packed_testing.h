/**
 * @file packed_testing.h
 * @brief Makes safetensors with matrices of 8 or 4 bits in memory, for tests of their readers.
 */
#ifndef WARPBOOK_COMMON_CHECKPOINTS_PACKED_PACKED_TESTING_H_
#define WARPBOOK_COMMON_CHECKPOINTS_PACKED_PACKED_TESTING_H_

#include <stddef.h>
#include <stdint.h>

#include "common/base/status.h"
#include "common/checkpoints/decoder/decoder_shards.h"
#include "common/checkpoints/packed/packed_config.h"
#include "common/checkpoints/safetensors/safetensors.h"

enum { PACKED_TESTING_MOST = 64 };

/** Tensors to come; their memory is owned. */
struct packed_testing {
    struct safetensors_tensor tensors[PACKED_TESTING_MOST];
    size_t count;
    uint64_t state; /**< of the numbers in them */
};

/** Adds a tensor of random bytes; floats, all small and positive, if @p dtype is F32. */
void packed_testing_add(struct packed_testing *t, const char *name, const char *suffix,
                        enum safetensors_dtype dtype, size_t rank, size_t rows, size_t columns);

/** Adds the parts of the matrix NAME.weight (rows, columns); with its order, if it is GPTQ's. */
void packed_testing_add_matrix(struct packed_testing *t, const struct packed_config *config,
                               const char *name, size_t rows, size_t columns);

/** Serialises a file, which the caller frees. */
MUST_CHECK enum status packed_testing_serialize(const struct packed_testing *t,
                                                unsigned char **data, size_t *size);

void packed_testing_free(struct packed_testing *t);

#endif
