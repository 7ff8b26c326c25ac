/**
 * @file attention_v7_specialised.cu
 * @brief fp16 and bf16 on Hopper: a producer warp, consumer warpgroups in ping-pong.
 *
 * Changes since v6, for heads of 64 and of 128 channels without a mask: specialised_tile.cuh. K and
 * V come by TMA, started by a warp that does nothing else; two to four warpgroups share them. The
 * scores of the next tile are begun under this tile's softmax, and the warpgroups take turns at the
 * tensor cores. Tiles have 128 keys (v6: 64), so that the first product, which reads both operands
 * from shared memory, needs 96 instead of 128 bytes a cycle, all that shared memory has. Blocks are
 * persistent; items with the most keys come first.
 *
 * Heads of 64 have items of 192 queries for three warpgroups, or of 256 for four with tiles of 64
 * keys, whichever leaves fewer multiprocessors idle in the last round.
 *
 * Why: v6's tensor cores wait for the softmax of their own warps, and its first product for
 * shared memory.
 *
 * Measured, H100, 2026-11-27, bf16, ms beside v6 and cuDNN in the same run: 4 texts of 4096, 12
 * heads of 64, 0.380 (v6 0.499, cuDNN 0.429), 542 TFLOP/s; 4 of 8192, causal, 16 heads of
 * 128, 1.646 (2.521, 1.736), 668 TFLOP/s; 16 of 512, 12 heads of 64, 0.0435 (0.0495, 0.0401), and
 * with four warpgroups 0.0394 (cuDNN 0.0424 in that run). Short
 * texts stay v6's: 16 of 128, 0.0144 (0.0114, 0.0125). The page has what else was tried.
 *
 * v6 does the rest: other heads, masks, short texts, and too few items for all multiprocessors.
 */
#include "labs/07_attention/given/attention_lse.h"
#include "solutions/07_attention/steps/specialised_tile.cuh"

/* Whether all sequences have as many queries as the first. */
static bool has_one_length(const struct attention_problem *p) {
    bool one = true;
    for (size_t b = 1; p->starts != NULL && b < p->B && one; b++) {
        one = p->host_starts[b + 1] - p->host_starts[b] == p->host_starts[1] - p->host_starts[0];
    }
    return one;
}

/* Queries that a block takes one after the other, of sequences of one length, in items of `rows`.
 */
static size_t queries_in_turn(const struct attention_problem *p, size_t rows, size_t blocks) {
    size_t T = p->starts != NULL ? (size_t)(p->host_starts[1] - p->host_starts[0]) : p->T;
    size_t items = (T + rows - 1) / rows * p->B * p->NH;
    return (items + blocks - 1) / blocks * rows;
}

/* four_are_faster() of causal texts, whose items are not equally long. Of 17 padded cases on an
   H100 the choice was wrong in one, by 1%; packed ones, by rounds, need a fifth. */
static bool four_are_faster_causal(const struct attention_problem *p, size_t blocks) {
    if (p->starts != NULL) {
        return 5 * queries_in_turn(p, 256, blocks) <= 4 * queries_in_turn(p, 192, blocks);
    }
    typedef specialised_tile<__half, 64> three;
    typedef specialised_tile<__half, 64, 4> four;
    size_t of_three = three::QUERIES * causal_plan_of<three>(p, blocks).longest_share;
    size_t of_four = four::QUERIES * causal_plan_of<four>(p, blocks).longest_share;
    return 102 * of_four < 100 * of_three;
}

/* Whether four warpgroups are faster than three, which need a fourteenth less time for a query:
   where their taller items leave fewer multiprocessors idle at the end. */
static bool four_are_faster(const struct attention_problem *p, size_t blocks) {
    if (p->HS != 64 || !has_one_length(p)) {
        return false;
    }
    return p->causal ? four_are_faster_causal(p, blocks)
                     : 14 * queries_in_turn(p, 256, blocks) < 13 * queries_in_turn(p, 192, blocks);
}

template <typename E>
static enum status run(const struct attention_problem *p, float *lse, unsigned most_blocks,
                       device_stream stream, struct error *error) {
    if (four_are_faster(p, most_blocks)) {
        return launch_specialised<specialised_tile<E, 64, 4>>(p, lse, most_blocks, stream, error);
    }
    return p->HS == 64
               ? launch_specialised<specialised_tile<E, 64>>(p, lse, most_blocks, stream, error)
               : launch_specialised<specialised_tile<E, 128>>(p, lse, most_blocks, stream, error);
}

enum status attention_specialised(const struct attention_problem *p, float *lse, int most_blocks,
                                  device_stream stream, struct error *error) {
    static const int multiprocessors = gpu_limits().multiprocessors;
    unsigned blocks = (unsigned)(most_blocks > 0 ? most_blocks : multiprocessors);
    return p->dtype == NN_F16 ? run<__half>(p, lse, blocks, stream, error)
                              : run<__nv_bfloat16>(p, lse, blocks, stream, error);
}

/* Up to this number of queries v6 is faster: blocks of 64 queries, four a multiprocessor. */
enum { SHORT = 128 };

/* Whether v7's kernel takes the problem, and every multiprocessor has an item. */
static bool specialised_takes(const struct attention_problem *p) {
    static const struct gpu_limits gpu = gpu_limits();
    size_t rows = p->HS == 64 ? specialised_tile<__half, 64>::QUERIES
                              : specialised_tile<__half, 128>::QUERIES;
    return p->T > SHORT && p->S > 0 && (p->HS == 64 || p->HS == 128) && p->mask == NULL &&
           attention_hopper_takes(p) && fills(p, rows, gpu, 1) && tensor_map_available();
}

enum status attention_v7_specialised(const struct attention_problem *p, device_stream stream,
                                     struct error *error) {
    TRY(attention_check(p, error));
    return specialised_takes(p) ? attention_specialised(p, NULL, 0, stream, error)
                                : attention_v6_hopper(p, stream, error);
}

enum status attention_lse(const struct attention_problem *p, float *lse, device_stream stream,
                          struct error *error) {
    TRY(attention_check(p, error));
    if (p->starts == NULL || p->out_stride != p->NH * p->HS) {
        return error_set(error, STATUS_INVALID_ARGUMENT,
                         "attention_lse: sequences are packed, and rows of out contiguous");
    }
    if (p->dtype == NN_F32) {
        return attention_float(p, lse, true, stream, error);
    }
    if (specialised_takes(p)) {
        return attention_specialised(p, lse, 0, stream, error);
    }
    return attention_hopper_takes(p) ? attention_hopper(p, lse, stream, error)
                                     : attention_half(p, lse, true, stream, error);
}
