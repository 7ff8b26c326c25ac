/**
 * @file attention_v5_lengths.cu
 * @brief Sequences of different lengths: no block without queries, no tile without keys.
 *
 * Changes since v3 and v4, whose kernels these are: for packed sequences the
 * host lists the tiles of queries that exist, longest sequence first, and launches
 * just these; the list is a kernel parameter (tile_list.cuh). With a mask, tiles of keys that are
 * masked altogether are skipped. For few queries (decoding) v1: it has a block a query, where
 * tiles would be empty.
 *
 * Why: attention's work grows with the square of the length. A batch padded to
 * its longest sequence pays for the longest each time, in v3 and v4 with the mask
 * too.
 *
 * Measured, H200, 2026-11-21, 16 texts that fill 35% of 16 times 512, 12 heads of 64:
 * fp32 0.1217 ms packed, 0.3549 padded; bf16 0.0253 and 0.0566.
 */
#include "solutions/07_attention/steps/ladder.h"

/* Up to this number of queries, a block for each is better than a tile that is mostly empty. */
enum { FEW_QUERIES = 4 };

enum status attention_v5_lengths(const struct attention_problem *p, device_stream stream,
                                 struct error *error) {
    TRY(attention_check(p, error));
    if (p->T <= FEW_QUERIES) {
        return attention_v1_plain(p, stream, error);
    }
    return p->dtype == NN_F32 ? attention_float(p, NULL, true, stream, error)
                              : attention_half(p, NULL, true, stream, error);
}
