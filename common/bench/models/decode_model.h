/**
 * @file decode_model.h
 * @brief The Llama2 that a bench decodes with: a file, or random weights of a known shape.
 */
#ifndef WARPBOOK_COMMON_BENCH_MODELS_DECODE_MODEL_H_
#define WARPBOOK_COMMON_BENCH_MODELS_DECODE_MODEL_H_

#include <stddef.h>
#include <stdint.h>

#include "common/base/status.h"
#include "common/checkpoints/llama2/llama2c.h"
#include "common/models/llama2_random.h"
#include "common/nn/dtype.h"

#ifdef __cplusplus
extern "C" {
#endif

struct decode_model {
    const struct llama2_config *config;
    const struct llama2_weights *weights;
    char name[256]; /**< "110M shape, random weights", "stories260K.bin" */
    struct llama2c_checkpoint checkpoint;
    struct llama2_random random;
};

/** Parses "15m", "110m", "1.1b". @return STATUS_INVALID_ARGUMENT for anything else */
MUST_CHECK enum status decode_shape_parse(const char *text, enum llama2_shape *shape,
                                          struct error *error);

/** @return bytes of host memory that random weights of the shape take, norms not counted. */
double decode_shape_bytes(enum llama2_shape shape);

/** @return numbers in the matrices of all layers. */
double decode_layer_numbers(const struct llama2_config *config);

/** @return bytes of weights that the matmuls of one token read. */
double decode_token_bytes(const struct llama2_config *config, enum nn_dtype dtype);

/** @return the i-th token of every text here. */
int32_t decode_text_token(size_t i, size_t V);

/** Opens a llama2.c checkpoint; if @p path is NULL, makes random weights of @p shape. */
MUST_CHECK enum status decode_model_open(struct decode_model *model, const char *path,
                                         enum llama2_shape shape, struct error *error);

/** Frees; a zero-initialised one is allowed. */
void decode_model_close(struct decode_model *model);

/** @return STATUS_OK if the file is a llama2.c checkpoint, otherwise the status of opening it. */
MUST_CHECK enum status decode_checkpoint_check(const char *path, struct error *error);

/** What the flags of a bench that compares stages say. */
struct decode_options {
    const char *shape_text; /**< --shape, or NULL */
    const char *checkpoint; /**< --checkpoint, or NULL: random weights of a shape */
    enum llama2_shape shape;
    int steps;   /**< --steps: tokens to decode; 0: the bench's default */
    int threads; /**< --threads: of the CPU */
};

/**
 * @brief Checks threads and steps, parses shape_text unless it is NULL, checks the checkpoint's
 *        file, so that a file that cannot be read is reported before anything is printed.
 */
MUST_CHECK enum status decode_options_check(struct decode_options *options, struct error *error);

#ifdef __cplusplus
}
#endif

#endif
