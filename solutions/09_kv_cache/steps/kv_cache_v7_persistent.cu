/**
 * @file kv_cache_v7_persistent.cu
 * @brief Step 7: a persistent kernel for few, long rows of weights.
 *
 * Changes since v6: a 4096 x 4096 or 4096 x 11008 matrix has 512 threads a multiprocessor, which
 * loop over tiles of rows (persistent.cuh).
 *
 * Why: such a matrix is one or two waves of v6's blocks, which leave no registers for the next
 * kernel's blocks until they end. Here the next kernel's blocks are resident from the start.
 */
#include "solutions/09_kv_cache/steps/ladder.h"

enum status kv_linear_v7_persistent(const struct kv_linear *linear, device_stream stream,
                                    struct error *error) {
    const struct kv_launch how = {.split = true, .persistent = true, .dependent = true};
    TRY(kv_linear_check(linear, error));
    return kv_product(linear, &how, stream, error);
}

enum status kv_attention_v7_persistent(const struct kv_attention *attention, void *workspace,
                                       device_stream stream, struct error *error) {
    const struct kv_launch how = {.split = true, .persistent = true, .dependent = true};
    return kv_attend(attention, workspace, &how, stream, error);
}
