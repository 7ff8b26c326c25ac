/**
 * @file endless_text_v3_vectors.cu
 * @brief Step v3: one launch, 16 bytes a load, a key for all its query heads at once.
 *
 * Changes since v2: a block has up to four query heads of a key head; teams of lanes have several
 * keys in flight, 16 bytes a lane; the query is rotated by the distance to the key, not the key by
 * its place; the new row is written in the same launch. team_attention.cuh has the kernel.
 */
#include "solutions/14_endless_text/steps/ladder.h"

enum status endless_attention_v3_vectors(const struct endless_attention *attention, void *workspace,
                                         device_stream stream, struct error *error) {
    return endless_team_attention(attention, workspace, false, stream, error);
}
