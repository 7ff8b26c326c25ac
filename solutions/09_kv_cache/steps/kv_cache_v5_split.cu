/**
 * @file kv_cache_v5_split.cu
 * @brief Step 5: the context is dealt out over the GPU.
 *
 * Changes since v4: a key head's context is as many blocks' as it takes to fill the GPU, but at
 * least 64 keys each. Each leaves sums, largest score and total of its part; the block of a key
 * head that is done last puts them together, which it knows from a counter that the product in
 * front has set to 0.
 *
 * Why: at 4096 tokens a layer of a 7B model has 67 MB of keys and values, two thirds of its
 * largest product; they take as many bytes on their way as weights do.
 *
 * The grid is for `longest` rows; how many parts have any is found on the device, so a graph of the
 * call serves all positions, and up to 128 tokens there is one part and nothing to put together.
 */
#include "solutions/09_kv_cache/steps/ladder.h"

enum status kv_attention_v5_split(const struct kv_attention *attention, void *workspace,
                                  device_stream stream, struct error *error) {
    const struct kv_launch how = {.split = true, .stay = false, .chained = false};
    return kv_attend(attention, workspace, &how, stream, error);
}
