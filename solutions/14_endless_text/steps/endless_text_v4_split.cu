/**
 * @file endless_text_v4_split.cu
 * @brief Step v4: the places split over blocks (flash decoding).
 *
 * Changes since v3: a model has 8 to 71 key heads and a GPU 132 multiprocessors, so several blocks
 * share a key head's places, 64 at least. The block that is done last merges their results: a
 * counter in the workspace tells which, and is 0 again afterwards.
 */
#include "solutions/14_endless_text/steps/ladder.h"

enum status endless_attention_v4_split(const struct endless_attention *attention, void *workspace,
                                       device_stream stream, struct error *error) {
    return endless_team_attention(attention, workspace, true, stream, error);
}
