/**
 * @file parts.h
 * @brief Given: a rank's part of a Llama2, as many_cut() says, and where it is copied from.
 *
 * A part is a struct decoder_model of lab 10 with fewer heads and hidden channels than the whole
 * model and the same C. The embedding, the norms and the classifier are whole on every rank.
 */
#ifndef WARPBOOK_LABS_15_MANY_GPUS_GIVEN_PARTS_H_
#define WARPBOOK_LABS_15_MANY_GPUS_GIVEN_PARTS_H_

#include "labs/10_llama2_decoder/decoder.h"
#include "labs/15_many_gpus/many_gpus.h"

#ifdef __cplusplus
extern "C" {
#endif

/** The function of the contract, or another one like it. */
typedef void many_cut_function(enum many_matrix matrix, const struct many_shape *shape, int rank,
                               int ranks, struct many_part *part);

/** Sizes of a whole model. */
struct many_shape many_shape_of(const struct decoder_model *whole);

/** A rank's weights in its GPU's memory. */
struct many_parts {
    struct decoder_model model;   /**< NH, KVH and hidden are those of the rank; may be 0 */
    struct decoder_layer *layers; /**< (L): model.layers */
    void *memory;                 /**< device: all weights */
    size_t bytes;                 /**< of it */
};

/**
 * @brief Copies a rank's part to its GPU, the calling thread's.
 * @param whole pointers are memory of the host or of any device, which only these copies read
 * @return STATUS_OK; STATUS_UNSUPPORTED with a line for sizes that cannot be cut;
 *         STATUS_INVALID_ARGUMENT for parts that do not fit together; STATUS_OUT_OF_MEMORY;
 *         STATUS_DEVICE
 */
MUST_CHECK enum status many_parts_create(struct many_parts *parts,
                                         const struct decoder_model *whole, int rank, int ranks,
                                         many_cut_function *cut, struct error *error);

/** Frees; a zeroed struct is allowed. */
void many_parts_free(struct many_parts *parts);

#ifdef __cplusplus
}
#endif

#endif
