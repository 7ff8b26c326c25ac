/**
 * @file kv_cache_v7_ring.cu
 * @brief Step 7: weights stream through shared memory, and the next kernel's lie there before it
 *        may begin.
 *
 * Changes since v6: a product is one block a multiprocessor (ring.cuh). A thread copies its pieces
 * of the next rows into a ring of its own in shared memory, 96 KB a block, and takes them out row
 * by row.
 *
 * Why: a block of v6 has nothing on its way while it puts its sums together and the next one
 * begins. And two rings fit into a multiprocessor: the kernel behind is there from the start, has
 * asked for 12 MB of its weights, and needs 3 microseconds less when it may begin, which is about
 * what the change from one kernel to the next costs.
 */
#include "solutions/09_kv_cache/ladder.h"

enum status kv_linear_v7_ring(const struct kv_linear *linear, device_stream stream,
                              struct error *error) {
    const struct kv_launch how = {.split = true, .ring = true, .chained = true};
    TRY(kv_linear_check(linear, error));
    return kv_product(linear, &how, stream, error);
}

enum status kv_attention_v7_ring(const struct kv_attention *attention, void *workspace,
                                 device_stream stream, struct error *error) {
    const struct kv_launch how = {.split = true, .ring = true, .chained = true};
    return kv_attend(attention, workspace, &how, stream, error);
}
