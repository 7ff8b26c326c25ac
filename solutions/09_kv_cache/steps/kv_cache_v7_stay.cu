/**
 * @file kv_cache_v7_stay.cu
 * @brief Step 7: for few, long rows of weights, blocks that stay.
 *
 * Changes since v6: a 4096 x 4096 or 4096 x 11008 matrix is 512 threads a multiprocessor, which go
 * from rows to rows (stay.cuh).
 *
 * Why: such a matrix is one or two rounds of v6's blocks, and those of the next kernel find no room
 * before they end. Here the next kernel's blocks have room from the start.
 */
#include "solutions/09_kv_cache/steps/ladder.h"

enum status kv_linear_v7_stay(const struct kv_linear *linear, device_stream stream,
                              struct error *error) {
    const struct kv_launch how = {.split = true, .stay = true, .chained = true};
    TRY(kv_linear_check(linear, error));
    return kv_product(linear, &how, stream, error);
}

enum status kv_attention_v7_stay(const struct kv_attention *attention, void *workspace,
                                 device_stream stream, struct error *error) {
    const struct kv_launch how = {.split = true, .stay = true, .chained = true};
    return kv_attend(attention, workspace, &how, stream, error);
}
