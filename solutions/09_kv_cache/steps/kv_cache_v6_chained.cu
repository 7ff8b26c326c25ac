/**
 * @file kv_cache_v6_chained.cu
 * @brief Step 6: a kernel's weights are on their way before the kernel in front is done.
 *
 * Changes since v5: programmatic dependent launch (common/cuda/dependent_launch.cuh, compute
 * capability 9.0). A kernel is set up, and loads the first of its weights into registers, while the
 * last blocks of the one in front still run; then it waits for that one's results.
 *
 * Why: when a kernel ends and the next begins, memory has nothing to do: the last sums are put
 * together, the next kernel is set up, its first loads take their time. That is two microseconds or
 * three, of the eight that a 4096 x 4096 matrix in bf16 takes.
 *
 * What is read before the wait: weights, which nobody writes; and in attention the position and the
 * cache's earlier rows. Those were written by kernels in front of this call's product, and that
 * lets attention begin only when it has waited for them. Nothing is written before the wait.
 */
#include "solutions/09_kv_cache/steps/ladder.h"

enum status kv_linear_v6_chained(const struct kv_linear *linear, device_stream stream,
                                 struct error *error) {
    const struct kv_launch how = {.split = true, .stay = false, .chained = true};
    TRY(kv_linear_check(linear, error));
    return kv_product(linear, &how, stream, error);
}

enum status kv_attention_v6_chained(const struct kv_attention *attention, void *workspace,
                                    device_stream stream, struct error *error) {
    const struct kv_launch how = {.split = true, .stay = false, .chained = true};
    return kv_attend(attention, workspace, &how, stream, error);
}
