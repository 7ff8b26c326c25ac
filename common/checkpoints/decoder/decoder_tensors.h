/**
 * @file decoder_tensors.h
 * @brief The tensors of a decoder's checkpoint, visited one by one: for Llama2 and GPT-NeoX.
 *
 * A family has a table of its tensors: names, shapes, and where pointers to them are in its stored
 * and in its fp32 weights. Loader, converter and writer visit them.
 */
#ifndef WARPBOOK_COMMON_CHECKPOINTS_DECODER_DECODER_TENSORS_H_
#define WARPBOOK_COMMON_CHECKPOINTS_DECODER_DECODER_TENSORS_H_

#include <stdbool.h>
#include <stddef.h>

#include "common/base/status.h"
#include "common/nn/dtype.h"

#ifdef __cplusplus
extern "C" {
#endif

/** A tensor inside a mapped file, host, row-major. */
struct decoder_stored_tensor {
    const void *data; /**< may be unaligned */
    enum nn_dtype dtype;
    size_t rows; /**< 1 for a vector */
    size_t columns;
};

struct decoder_weight {
    const char *name;  /**< "model.layers.3.mlp.up_proj.weight"; valid during the visit only */
    size_t rank;       /**< 1 or 2 */
    size_t shape[2];   /**< products of sizes up to INT32_MAX, and 3 times that: they fit */
    size_t rope_heads; /**< rows of queries or keys, to be rotated: number of heads; else 0 */
    size_t parts; /**< 3 for GPT-NeoX's query_key_value, whose rows are those of q, k and v; else 1
                   */
    struct decoder_stored_tensor *stored; /**< its entry in the stored weights */
    const float **plain[3];               /**< (parts) its pointers in the fp32 weights */
};

/** Called for each tensor, until it returns a status that is not STATUS_OK. */
typedef enum status decoder_weight_visitor(void *context, const struct decoder_weight *tensor);

/** @return the elements of a tensor. */
size_t decoder_weight_count(const struct decoder_weight *tensor);

/** A row of a family's table. What kinds and extents mean is the family's. */
struct decoder_entry {
    const char *name; /**< behind "SCOPE.3." for a layer's */
    int kind;         /**< whether the configuration has it */
    int rows;         /**< extent */
    int columns;      /**< extent; 0: a vector */
    bool rotated;     /**< its rows make queries or keys, which get rotary embedding */
    size_t parts;
    size_t stored_offset, plain_offset[3]; /**< in the layer's struct, or in the weights' */
};

/** Bytes that the struct of a layer or of all weights has at the most. */
enum { DECODER_SCRATCH_BYTES = 1024 };

struct decoder_family {
    const char *scope; /**< "model.layers." */
    const struct decoder_entry *layer;
    size_t layer_count;
    /** The embedding, and behind the layers the final ones, of which the last is the classifier. */
    const struct decoder_entry *embedding, *final;
    size_t final_count;
    /** Where the weights have their pointer to the layers, and how large a layer's struct is. */
    size_t stored_layers, stored_layer_bytes, plain_layers, plain_layer_bytes;
    /** @return whether the configuration has this tensor. */
    bool (*has)(const void *config, int kind);
    size_t (*extent)(const void *config, int extent);
    /** @return heads of the rows of a rotated tensor; NULL if the family has none. */
    size_t (*heads)(const void *config, int rows);
};

/** @return the number of tensors of a layer. */
size_t decoder_layer_tensors(const struct decoder_family *family, const void *config);

/**
 * @brief Visits the embedding, the layers, the final tensors, and the classifier unless it is
 *        shared.
 *
 * @param stored, plain the weights into which a visitor's pointers point. If one is NULL, or its
 *        layers, they point to scratch memory: for a visitor that does not use them.
 * @return STATUS_OK, or the first other status of @p visit
 */
MUST_CHECK enum status decoder_tensors_visit(const struct decoder_family *family,
                                             const void *config, size_t L, bool shared_classifier,
                                             void *stored, void *plain,
                                             decoder_weight_visitor *visit, void *context);

#ifdef __cplusplus
}
#endif

#endif
