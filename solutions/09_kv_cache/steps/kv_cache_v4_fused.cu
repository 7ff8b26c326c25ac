/**
 * @file kv_cache_v4_fused.cu
 * @brief Step 4: one launch a product, two an attention.
 *
 * Changes since v3: the norm's sum is accumulated with the product's (gemv.cuh), so that nothing
 * waits for it; rotary embedding, the cache's new row and attention are one launch
 * (decode_attention.cuh), in which a block has all query heads of a key head.
 *
 * Why: a launch with little work is latency, and the next launch reads its results from memory
 * again. A key head's rows are read once, not once per query head.
 *
 * What is left: one block has a key head's whole context, and 32 blocks do not saturate a GPU's
 * memory.
 */
#include "solutions/09_kv_cache/steps/ladder.h"

enum status kv_linear_v4_fused(const struct kv_linear *linear, device_stream stream,
                               struct error *error) {
    const struct kv_launch how = {.split = false, .persistent = false, .dependent = false};
    TRY(kv_linear_check(linear, error));
    return kv_product(linear, &how, stream, error);
}

enum status kv_attention_v4_fused(const struct kv_attention *attention, void *workspace,
                                  device_stream stream, struct error *error) {
    const struct kv_launch how = {.split = false, .persistent = false, .dependent = false};
    return kv_attend(attention, workspace, &how, stream, error);
}
