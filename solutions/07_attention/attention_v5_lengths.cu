/**
 * @file attention_v5_lengths.cu
 * @brief Sequences of different lengths: no block without queries, no tile without keys.
 *
 * Changes since v3 and v4, whose kernels these are: for packed sequences the
 * host counts the tiles of queries that exist and launches just these, longest
 * sequence first; a block finds its sequence by adding up tiles, 32 sequences at
 * a time. With a mask, tiles of keys that it hides altogether are passed over. For
 * few queries (decoding) v1: it has a block a query, where tiles would be empty.
 *
 * Why: attention's work grows with the square of the length. A batch padded to
 * its longest sequence pays for the longest each time, in v3 and v4 with the mask
 * too.
 */
#include "solutions/07_attention/float_tile.cuh"
#include "solutions/07_attention/tensor_tile.cuh"

/* Up to so many queries a block for each is better than a tile that is mostly empty. */
enum { FEW_QUERIES = 4 };

enum status attention_v5_lengths(const struct attention_problem *p, device_stream stream,
                                 struct error *error) {
    enum status status = attention_check(p, error);
    if (status != STATUS_OK) {
        return status;
    }
    if (p->T <= FEW_QUERIES) {
        return attention_v1_plain(p, stream, error);
    }
    switch (p->dtype) {
    case NN_F16:
        return run_tensor<__half, true>(p, stream, error);
    case NN_BF16:
        return run_tensor<__nv_bfloat16, true>(p, stream, error);
    default:
        return run_float<true>(p, stream, error);
    }
}
