/**
 * @file many_gpus.cu
 * @brief Solution of lab 15: the cuts, the last steps, and the ladder.
 */
#include "labs/15_many_gpus/many_gpus.h"

#include "solutions/15_many_gpus/steps/ladder.h"

enum status many_all_reduce(struct comm *comm, const struct many_all_reduce *reduce,
                            device_stream stream, struct error *error) {
    return many_v6_two_shot(comm, reduce, stream, error);
}

enum status many_linear(struct comm *comm, const struct many_linear *linear, device_stream stream,
                        struct error *error) {
    return many_v7_linear(comm, linear, stream, error);
}

/* Heads and hidden channels are cut. They are rows of the matrices that make them, and columns of
   out and down, which take them. */
void many_cut(enum many_matrix matrix, const struct many_shape *shape, int rank, int ranks,
              struct many_part *part) {
    bool keys = matrix == MANY_K || matrix == MANY_V;
    bool heads = keys || matrix == MANY_Q || matrix == MANY_OUT;
    size_t all = heads ? shape->HS * (keys ? shape->KVH : shape->NH) : shape->hidden;
    size_t count = all / (size_t)ranks, first = (size_t)rank * count;
    if (matrix == MANY_OUT || matrix == MANY_DOWN) {
        *part = {0, shape->C, first, count, 0, rank == 0 ? shape->C : 0};
    } else {
        *part = {first, count, 0, shape->C, first, count};
    }
}

const struct many_step *many_ladder(size_t *count) {
    static const struct many_step steps[] = {
        {"v1_host", {many_v1_host, many_v1_linear, NULL}, false},
        {"v2_peer_copies", {many_v2_peer_copies, many_v2_linear, NULL}, false},
        {"v3_ring", {many_v3_ring, many_v3_linear, NULL}, true},
        {"v5_one_shot", {many_v5_one_shot, many_v5_linear, NULL}, true},
        {"v6_two_shot", {many_v6_two_shot, many_v5_linear, NULL}, true},
        {"v7_fused", {many_v6_two_shot, many_v7_linear, NULL}, true},
        {"v8_one_kernel", {many_v6_two_shot, many_v7_linear, many_v8_token}, true},
    };
    *count = sizeof steps / sizeof *steps;
    return steps;
}
