/**
 * @file kv_cache_v6_chained.cu
 * @brief Step 6: a kernel loads its first weights before the previous kernel is done.
 *
 * Changes since v5: programmatic dependent launch (common/cuda/dependent_launch.cuh, compute
 * capability 9.0). A kernel starts, and loads the first of its weights into registers, while the
 * last blocks of the previous one still run; then it waits for that one's results.
 *
 * Why: between two kernels memory is idle: the last sums are reduced, the next kernel starts, its
 * first loads arrive. That is two or three of the eight microseconds that a 4096 x 4096 matrix in
 * bf16 takes.
 *
 * Before the wait a kernel reads only weights, which no kernel writes, and in attention the
 * position and the cache's earlier rows. Those were written by kernels before this call's product,
 * which lets attention start only after it has waited for them. Nothing is written before the wait.
 */
#include "solutions/09_kv_cache/steps/ladder.h"

enum status kv_linear_v6_chained(const struct kv_linear *linear, device_stream stream,
                                 struct error *error) {
    const struct kv_launch how = {.split = true, .persistent = false, .dependent = true};
    TRY(kv_linear_check(linear, error));
    return kv_product(linear, &how, stream, error);
}

enum status kv_attention_v6_chained(const struct kv_attention *attention, void *workspace,
                                    device_stream stream, struct error *error) {
    const struct kv_launch how = {.split = true, .persistent = false, .dependent = true};
    return kv_attend(attention, workspace, &how, stream, error);
}
