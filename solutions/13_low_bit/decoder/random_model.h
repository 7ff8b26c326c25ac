/**
 * @file random_model.h
 * @brief A random Llama2 of 8 or 4 bits, on the host for the reference and on the device for the
 *        decoder.
 */
#ifndef WARPBOOK_SOLUTIONS_13_LOW_BIT_DECODER_RANDOM_MODEL_H_
#define WARPBOOK_SOLUTIONS_13_LOW_BIT_DECODER_RANDOM_MODEL_H_

#include "solutions/13_low_bit/decoder/low_bit_decoder.h"
#include "solutions/13_low_bit/decoder/reference.h"

#ifdef __cplusplus
extern "C" {
#endif

/** What a model is like. */
struct random_model_size {
    enum low_bit_type type;
    size_t group;              /**< INT4 */
    enum nn_dtype scale_dtype; /**< INT4 */
    bool has_zeros;            /**< INT4 */
    size_t NH, KVH, HS, hidden, L, V, T;
    enum nn_rope_layout rope;
};

struct random_model {
    struct random_model_size size;
    struct reference_model host;
    struct low_bit_decoder_model device;
    struct decoder_layer *layers;
    struct decoder_io io;
};

/** Creates both; call random_model_free() either way. */
MUST_CHECK enum status random_model_create(struct random_model *m,
                                           const struct random_model_size *size, uint64_t seed,
                                           struct error *error);
void random_model_free(struct random_model *m);

#ifdef __cplusplus
}
#endif

#endif
