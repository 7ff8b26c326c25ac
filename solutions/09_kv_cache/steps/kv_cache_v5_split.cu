/**
 * @file kv_cache_v5_split.cu
 * @brief Step 5: split-KV.
 *
 * Changes since v4: a key head's context is split over as many blocks as fill the GPU, with at
 * least 64 keys each. Each block stores the partial outputs, running max and running sum of its
 * split. The last block of a key head merges them; it knows that it is the last from a counter
 * that the product before has set to 0.
 *
 * Why: at 4096 tokens a layer of a 7B model has 67 MB of keys and values, two thirds of its
 * largest product; they need as many bytes in flight as weights do.
 *
 * The grid is for `longest` rows; the number of splits with rows is computed on the device, so a
 * graph of the call serves all positions. Up to 128 tokens there is one split and no merge.
 */
#include "solutions/09_kv_cache/steps/ladder.h"

enum status kv_attention_v5_split(const struct kv_attention *attention, void *workspace,
                                  device_stream stream, struct error *error) {
    const struct kv_launch how = {.split = true, .persistent = false, .dependent = false};
    return kv_attend(attention, workspace, &how, stream, error);
}
