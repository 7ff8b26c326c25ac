/**
 * @file kv_cache_v4_fused.cu
 * @brief Step 4: one launch a product, two an attention.
 *
 * Changes since v3: the norm's sum goes along with the product's (product.cuh), so that nothing
 * waits for it; rotary embedding, the cache's new row and attention are one launch (attend.cuh), in
 * which a block has all query heads of a key head.
 *
 * Why: a launch of small work is latency, and what one launch writes the next reads. A key head's
 * rows are read once, not once a query head.
 *
 * What is left: a key head's context is one block's, and 32 blocks do not load a GPU's memory.
 */
#include "solutions/09_kv_cache/steps/ladder.h"

enum status kv_linear_v4_fused(const struct kv_linear *linear, device_stream stream,
                               struct error *error) {
    const struct kv_launch how = {.split = false, .stay = false, .chained = false};
    TRY(kv_linear_check(linear, error));
    return kv_product(linear, &how, stream, error);
}

enum status kv_attention_v4_fused(const struct kv_attention *attention, void *workspace,
                                  device_stream stream, struct error *error) {
    const struct kv_launch how = {.split = false, .stay = false, .chained = false};
    return kv_attend(attention, workspace, &how, stream, error);
}
