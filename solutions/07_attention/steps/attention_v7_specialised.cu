/**
 * @file attention_v7_specialised.cu
 * @brief fp16 and bf16 on Hopper: a producer warp, consumer warpgroups in ping-pong.
 *
 * Changes since v6, for heads of 64 and of 128 channels without a mask: specialised_tile.cuh. K and
 * V come by TMA, started by a warp that does nothing else; two or three warpgroups share them. The
 * scores of the next tile are begun under this tile's softmax, and the warpgroups take turns at the
 * tensor cores. Tiles have 128 keys (v6: 64), so that the first product, which reads both operands
 * from shared memory, needs 96 instead of 128 bytes a cycle, all that shared memory has. Blocks are
 * persistent; items with the most keys come first.
 *
 * Why: v6's tensor cores wait for the softmax of their own warps, and its first product for
 * shared memory.
 *
 * Measured, H100, 2026-11-27, bf16, ms beside v6 and cuDNN in the same run: 4 texts of 4096, 12
 * heads of 64, 0.380 (v6 0.499, cuDNN 0.429), 542 TFLOP/s; 4 of 8192, causal, 16 heads of
 * 128, 1.646 (2.521, 1.736), 668 TFLOP/s; 16 of 512, 12 heads of 64, 0.0435 (0.0495, 0.0401). Short
 * texts stay v6's: 16 of 128, 0.0144 (0.0114, 0.0125). The page has what else was tried.
 *
 * v6 does the rest: other heads, masks, short texts, and too few items for all multiprocessors.
 */
#include "labs/07_attention/given/attention_lse.h"
#include "solutions/07_attention/steps/specialised_tile.cuh"

template <typename E>
static enum status run(const struct attention_problem *p, float *lse, unsigned most_blocks,
                       device_stream stream, struct error *error) {
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
