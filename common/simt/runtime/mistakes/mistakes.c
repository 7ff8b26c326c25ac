/*
 * mistakes list | mistakes NAME
 *
 * The table of what simt must find, and must not, of Hopper's instructions: by item of what can go
 * wrong, a kernel and its way, and words of the message, none for a right one. "list" prints it,
 * separated by tabs; a name runs that kernel. The exit status is 0 when it ran and its results are
 * right, 3 when it did not.
 */
#include <stdio.h>
#include <string.h>

#include "common/simt/runtime/mistakes/mistakes.h"

enum {
    PRODUCT = KERNEL_PRODUCT,
    RING = KERNEL_RING,
    STORE = KERNEL_STORE,
    BOX = KERNEL_BOX,
    CLUSTER = KERNEL_CLUSTER,
    REGISTERS = KERNEL_REGISTERS,
    DEPENDENT = KERNEL_DEPENDENT
};

/* SIDES: how many lines of the program a message names: the one that is told, and the other side
 * where there is one. */
#define TABLE(X)                                                                                \
    X(sums, sums_without_fence, PRODUCT, 1, 1, "no wgmma.fence before the first one")           \
    X(sums, sums_stored_early, PRODUCT, 2, 2, "uses a sum of the wgmma at ")                    \
    X(sums, wait_for_older_group, PRODUCT, 3, 2, "uses a sum of the wgmma at ")                 \
    X(sums, no_commit, PRODUCT, 4, 2, "uses a sum of the wgmma at ")                            \
    X(sums, changed_behind_fence, PRODUCT, 5, 2, "with a register that was written at ")        \
    X(sums, read_between, PRODUCT, 6, 2, "uses a sum of the wgmma at ")                         \
    X(sums, scaled_without_fence, PRODUCT, 13, 2, "with a register that was written at ")       \
    X(sums, one_warp_leaves_out, PRODUCT, 14, 1, "the four warps execute each wgmma together")  \
    X(sums, other_descriptor, PRODUCT, 15, 1, "the four warps execute each wgmma together")     \
    X(sums, sums_right, PRODUCT, 0, 0, "")                                                      \
    X(sums, older_group_used, PRODUCT, 21, 0, "")                                               \
    X(sums, scaled_behind_fence, PRODUCT, 22, 0, "")                                            \
    X(sums, several_on_the_same, PRODUCT, 24, 0, "")                                            \
    X(sums, a_in_registers, PRODUCT, 25, 0, "")                                                 \
    X(sums, a_registers_change_later, PRODUCT, 26, 0, "")                                       \
    X(sums, another_warpgroup, PRODUCT, 28, 0, "")                                              \
    X(rewritten, b_by_threads, PRODUCT, 7, 2, "which a wgmma of warp ")                         \
    X(rewritten, a_by_threads, PRODUCT, 8, 2, "which a wgmma of warp ")                         \
    X(rewritten, b_by_a_load, PRODUCT, 9, 2, "which a wgmma of warp ")                          \
    X(rewritten, row_of_a_store, STORE, 2, 2, "which a bulk copy of ")                          \
    X(rewritten, wait_leaves_the_group, STORE, 3, 2, "which a bulk copy of ")                   \
    X(rewritten, store_not_committed, STORE, 4, 2, "which a bulk copy of ")                     \
    X(rewritten, row_by_a_load, STORE, 6, 2, "bulk copy of ")                                   \
    X(rewritten, another_thread_waits, STORE, 7, 2, "which a bulk copy of ")                    \
    X(rewritten, box_of_a_store, BOX, 11, 2, "which a bulk copy of ")                           \
    X(rewritten, behind_the_wait, PRODUCT, 20, 0, "")                                           \
    X(rewritten, loaded_behind_the_wait, PRODUCT, 27, 0, "")                                    \
    X(rewritten, stores_one_by_one, STORE, 0, 0, "")                                            \
    X(rewritten, stores_in_turn, STORE, 20, 0, "")                                              \
    X(rewritten, two_stores_in_a_group, STORE, 23, 0, "")                                       \
    X(rewritten, all_groups_at_the_end, STORE, 24, 0, "")                                       \
    X(rewritten, box_behind_the_wait, BOX, 24, 0, "")                                           \
    X(proxy, operands_of_wgmma, PRODUCT, 10, 2, "by the async proxy, which thread ")            \
    X(proxy, fence_before_the_writes, PRODUCT, 11, 2, "by the async proxy, which thread ")      \
    X(proxy, row_of_store, STORE, 1, 2, "by the async proxy, which thread ")                    \
    X(proxy, fence_before_the_row, STORE, 5, 2, "by the async proxy, which thread ")            \
    X(proxy, row_of_addition, STORE, 8, 2, "by the async proxy, which thread ")                 \
    X(proxy, box, BOX, 10, 2, "by the async proxy, which thread ")                              \
    X(proxy, one_threads_fence, PRODUCT, 23, 0, "")                                             \
    X(proxy, one_threads_fence_for_stores, STORE, 21, 0, "")                                    \
    X(proxy, addition, STORE, 22, 0, "")                                                        \
    X(phase, parity_stays, RING, 1, 2, "bulk copy of ")                                         \
    X(phase, other_parity, RING, 2, 1, "of shared memory")                                      \
    X(phase, not_waited_for, RING, 14, 1, "of shared memory")                                   \
    X(phase, other_barrier, RING, 11, 2, "bulk copy of ")                                       \
    X(phase, box_not_waited_for, BOX, 8, 2, "bulk copy of ")                                    \
    X(phase, wgmma_does_not_wait, BOX, 9, 2, "bulk copy of ")                                   \
    X(phase, ring, RING, 0, 0, "")                                                              \
    X(phase, polled, RING, 23, 0, "")                                                           \
    X(phase, parity_before, RING, 26, 0, "")                                                    \
    X(phase, barrier_invalidated, RING, 28, 0, "")                                              \
    X(bytes, too_few, RING, 3, 1, "bytes more than were announced")                             \
    X(bytes, too_many, RING, 4, 1, "lacks 0 of 1 arrivals and 512 bytes")                       \
    X(bytes, copy_too_short, RING, 12, 1, "lacks 0 of 1 arrivals and 16 bytes")                 \
    X(bytes, never_armed, RING, 5, 1, "lacks 1 of 1 arrivals and received 512 bytes more")      \
    X(bytes, armed_twice, RING, 6, 1, "arrives at an mbarrier more often than it expects")      \
    X(bytes, announced_alone, RING, 7, 1, "lacks 1 of 1 arrivals")                              \
    X(bytes, two_arrivals_wanted, RING, 8, 1, "lacks 1 of 2 arrivals")                          \
    X(bytes, not_initialised, RING, 13, 1, "of shared memory")                                  \
    X(bytes, copy_first, RING, 20, 0, "")                                                       \
    X(bytes, announced_then_arrived, RING, 21, 0, "")                                           \
    X(bytes, two_copies, RING, 22, 0, "")                                                       \
    X(bytes, a_warp_copies, RING, 25, 0, "")                                                    \
    X(bytes, a_warp_arrives, RING, 27, 0, "")                                                   \
    X(slot, filled_again_early, RING, 9, 2, "of shared memory that thread ")                    \
    X(slot, given_back_early, RING, 10, 2, "of shared memory that thread ")                     \
    X(slot, one_gives_nothing_back, RING, 18, 1, "lacks 1 of 1 arrivals")                       \
    X(slot, of_another_block, CLUSTER, 14, 1, "lacks 64 of 64 arrivals")                        \
    X(slot, one_thread_of_a_warp, RING, 24, 0, "")                                              \
    X(slot, one_thread_of_all, RING, 29, 0, "")                                                 \
    X(slot, of_another_block_right, CLUSTER, 27, 0, "")                                         \
    X(exit, peer_reads, CLUSTER, 1, 1, "all of whose threads have returned")                    \
    X(exit, peer_writes, CLUSTER, 2, 1, "all of whose threads have returned")                   \
    X(exit, peer_sends, CLUSTER, 3, 1, "all of whose threads have returned")                    \
    X(exit, peer_multicasts, CLUSTER, 4, 1, "all of whose threads have returned")               \
    X(exit, peer_arrives, CLUSTER, 5, 2, "returns as the last of its block")                    \
    X(exit, peer_read, CLUSTER, 20, 0, "")                                                      \
    X(exit, peer_sent, CLUSTER, 21, 0, "")                                                      \
    X(exit, peer_sent_and_left, CLUSTER, 28, 0, "")                                             \
    X(exit, multicast_to_both, CLUSTER, 22, 0, "")                                              \
    X(exit, arrived, CLUSTER, 23, 0, "")                                                        \
    X(cluster, no_barrier_before, CLUSTER, 6, 2, "of the shared memory of block ")              \
    X(cluster, no_barrier_behind, CLUSTER, 7, 2, "that thread ")                                \
    X(cluster, relaxed_barrier, CLUSTER, 8, 2, "of the shared memory of block ")                \
    X(cluster, arrives_twice, CLUSTER, 9, 1, "again, without having waited")                    \
    X(cluster, waits_alone, CLUSTER, 10, 1, "at which it has not arrived")                      \
    X(cluster, sent_too_many, CLUSTER, 11, 1, "without having waited for them")                 \
    X(cluster, read_before_sent, CLUSTER, 12, 1, "without having waited for them")              \
    X(cluster, no_such_block, CLUSTER, 13, 1, "block 2 of its cluster, which has 2 blocks")     \
    X(cluster, multicast_beyond, CLUSTER, 15, 1, "0x0005 of its cluster (a bit a block)")       \
    X(cluster, exchange, CLUSTER, 0, 0, "")                                                     \
    X(cluster, added_up, CLUSTER, 24, 0, "")                                                    \
    X(cluster, arrive_then_work, CLUSTER, 25, 0, "")                                            \
    X(cluster, relaxed_before_all, CLUSTER, 26, 0, "")                                          \
    X(registers, too_many_registers, REGISTERS, 1, 1, "and they began with 2016 (168 each)")    \
    X(registers, a_warp_leaves_it_out, REGISTERS, 2, 1, "warp 6 of the same warpgroup 0 times") \
    X(registers, another_number, REGISTERS, 3, 1, "the four warps execute the same setmaxnreg") \
    X(registers, inc_to_fewer, REGISTERS, 4, 1, "for 160 registers a thread")                   \
    X(registers, dec_to_more, REGISTERS, 5, 1, "for 176 registers a thread")                    \
    X(registers, pool, REGISTERS, 0, 0, "")                                                     \
    X(registers, as_many, REGISTERS, 20, 0, "")                                                 \
    X(registers, twice, REGISTERS, 21, 0, "")                                                   \
    X(registers, one_warpgroup, REGISTERS, 22, 0, "")                                           \
    X(descriptor, size_of_copy, RING, 15, 1, "must be multiples of 16")                         \
    X(descriptor, place_of_copy, RING, 16, 1, "must be multiples of 16")                        \
    X(descriptor, place_of_box, BOX, 4, 1, "which is no multiple of 128")                       \
    X(descriptor, place_of_map, BOX, 12, 1, "which is no multiple of 64")                       \
    X(descriptor, swizzle_of_another_map, BOX, 6, 2, "has a swizzle of 64 bytes")               \
    X(descriptor, no_swizzle, BOX, 7, 2, "has a swizzle of 128 bytes")                          \
    X(descriptor, beyond_shared_memory, BOX, 14, 1, "out of bounds")                            \
    X(descriptor, product_of_a_box, BOX, 22, 0, "")                                             \
    X(descriptor, narrow_box, BOX, 23, 0, "")                                                   \
    X(descriptor, written_over_by_threads, BOX, 25, 0, "")                                      \
    X(box, fewer_bytes, BOX, 1, 1, "bytes more than were announced")                            \
    X(box, more_bytes, BOX, 2, 1, "lacks 0 of 1 arrivals and 8192 bytes")                       \
    X(box, other_dimensions, BOX, 3, 1, "a box of 3 dimensions, but the tensor map has 2")      \
    X(box, no_map, BOX, 5, 1, "was not made by cuTensorMapEncodeTiled")                         \
    X(box, beyond_shared_memory_box, BOX, 13, 1, "out of bounds")                               \
    X(box, begins_between, BOX, 15, 1, "which is byte 6 of a row")                              \
    X(box, stored_from_before, BOX, 16, 1, "from element -8 of dimension 0 on")                 \
    X(box, row_beyond_input, RING, 17, 1, "out of bounds")                                      \
    X(box, row_beyond_shared, RING, 19, 1, "out of bounds")                                     \
    X(box, store_beyond_output, STORE, 9, 1, "out of bounds")                                   \
    X(box, whole, BOX, 0, 0, "")                                                                \
    X(box, half_outside, BOX, 20, 0, "")                                                        \
    X(box, wholly_outside, BOX, 21, 0, "")                                                      \
    X(dependent, no_wait_at_all, DEPENDENT, 1, 2, "dependent launch")                           \
    X(dependent, waits_late, DEPENDENT, 2, 2, "dependent launch")                               \
    X(dependent, other_warp_waits, DEPENDENT, 3, 2, "dependent launch")                         \
    X(dependent, overwrites_input, DEPENDENT, 4, 1, "dependent launch")                         \
    X(dependent, one_block_waits, DEPENDENT, 5, 2, "dependent launch")                          \
    X(dependent, waits, DEPENDENT, 0, 0, "")                                                    \
    X(dependent, one_thread_waits, DEPENDENT, 20, 0, "")                                        \
    X(dependent, own_input_first, DEPENDENT, 21, 0, "")

static const struct row {
    const char *item, *name;
    enum kernel kernel;
    int way, sides;
    const char *words;
} rows[] = {
#define ROW(ITEM, NAME, KERNEL, WAY, SIDES, WORDS) \
    {#ITEM, #NAME, (enum kernel)KERNEL, WAY, SIDES, WORDS},
    TABLE(ROW)
#undef ROW
};

enum { ROWS = sizeof rows / sizeof *rows };

int main(int argc, char **argv) {
    if (argc == 2 && strcmp(argv[1], "list") == 0) {
        for (int n = 0; n < ROWS; n++) {
            printf("%s\t%s\t%d\t%s\n", rows[n].item, rows[n].name, rows[n].sides, rows[n].words);
        }
        return 0;
    }
    for (int n = 0; n < ROWS && argc == 2; n++) {
        if (strcmp(argv[1], rows[n].name) == 0) {
            const char *wrong = mistakes_run(rows[n].kernel, rows[n].way);
            printf("%s\n", wrong != NULL ? wrong : "right");
            return wrong != NULL ? 3 : 0;
        }
    }
    fprintf(stderr, "usage: mistakes list | NAME of the list\n");
    return 2;
}
