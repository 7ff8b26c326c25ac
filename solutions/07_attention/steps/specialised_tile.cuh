/**
 * @file specialised_tile.cuh
 * @brief The fp16 and bf16 kernel of step v7: a producer warp brings K and V by TMA, consumer
 * warpgroups take turns at the tensor cores.
 *
 * Each consumer warpgroup has 64 queries, and all of them use the same tiles of K and V. In a turn
 * a warpgroup begins the scores of its next tile and P.V of this one, and passes the turn on. Its
 * softmax then runs under the other ones' products (ping-pong), and under its own P.V.
 *
 * The block is persistent: one a multiprocessor, which takes item after item (a head's queries, 64
 * a warpgroup). The producer copies the next item's queries and first keys while this one ends.
 *
 * A copy of whole tiles also brings rows behind a sequence's end: other sequences' rows, which may
 * be NaN. Scores of these keys are masked; their rows of V the producer warp sets to zero before
 * the consumers see them, as 0 * NaN would be NaN.
 *
 * Heads have 64 or 128 channels and begin 16-byte aligned. Compiled for anything but sm_90a the
 * kernel is empty: see hopper_code().
 */
#ifndef WARPBOOK_SOLUTIONS_07_ATTENTION_STEPS_SPECIALISED_TILE_CUH_
#define WARPBOOK_SOLUTIONS_07_ATTENTION_STEPS_SPECIALISED_TILE_CUH_

#include "common/cuda/dependent_launch.cuh"
#include "common/device/tensor_map.h"
#include "solutions/07_attention/steps/specialised_consumer.cuh"
#include "solutions/07_attention/steps/specialised_producer.cuh"

template <typename TILE, typename LIST>
static __global__ void __launch_bounds__(TILE::THREADS, 1)
    specialised_attention(const __grid_constant__ struct attention_maps maps,
                          const __grid_constant__ struct attention_problem problem,
                          const __grid_constant__ LIST list, const struct work_order order,
                          bool aligned, float *lse) {
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
    launch_dependent_grids();
    typedef typename TILE::E E;
    extern __shared__ unsigned char tile_bytes[];
    __shared__ struct attention_barriers<TILE> barriers;
    E *q = (E *)(tile_bytes + (1024 - shared_address(tile_bytes) % 1024) % 1024);
    E *k = q + TILE::GROUPS * TILE::Q_STAGES * TILE::Q;
    const struct attention_tiles<TILE> tiles = { q, k, k + TILE::STAGES *TILE::TILE };
    const struct attention_block<TILE, LIST> block = { problem, list, order, tiles, barriers };
    if (threadIdx.x == 0) {
        init_barriers<TILE>(barriers);
    }
    __syncthreads();
    wait_on_dependent_grids();
    if (threadIdx.x < TILE::GROUPS * TILE::GROUP) {
        warpgroup_reg_alloc<TILE::CONSUMER_REGISTERS>();
        consume<TILE>(block, aligned, lse);
    } else {
        warpgroup_reg_dealloc<TILE::PRODUCER_REGISTERS>();
        if (threadIdx.x < TILE::GROUPS * TILE::GROUP + 32) {
            produce<TILE>(maps, block);
        }
    }
#endif
}

/* ---- Host ---- */

/* q, k or v as a matrix (tokens, stride) in boxes of `rows` tokens and 64 channels. Its rows are as
   long as the stride, beyond the heads: no box is there. */
static inline enum status describe_tokens(CUtensorMap *map, const struct attention_problem *p,
                                          const void *data, size_t tokens, size_t stride, int rows,
                                          struct error *error) {
    const struct tensor_map_matrix matrix = {p->dtype,       data, tokens, stride,
                                             (unsigned)rows, 64,   128};
    return tensor_map_create(map, &matrix, error);
}

template <typename TILE>
static enum status describe_problem(struct attention_maps *maps, const struct attention_problem *p,
                                    struct error *error) {
    size_t q_tokens = p->starts != NULL ? (size_t)p->host_starts[p->B] : p->B * p->T;
    size_t kv_tokens = p->starts != NULL ? q_tokens : p->B * p->S;
    TRY(describe_tokens(&maps->q, p, p->q, q_tokens, p->q_stride, TILE::GROUP_QUERIES, error));
    TRY(describe_tokens(&maps->k, p, p->k, kv_tokens, p->kv_stride, TILE::KEYS, error));
    return describe_tokens(&maps->v, p, p->v, kv_tokens, p->kv_stride, TILE::KEYS, error);
}

template <typename TILE, typename LIST>
static enum status launch_items(const struct attention_problem *p, float *lse,
                                const struct attention_maps &maps, const LIST &list,
                                const struct work_order &order, unsigned most_blocks,
                                device_stream stream, struct error *error) {
    static const cudaError_t allowed =
        cudaFuncSetAttribute(specialised_attention<TILE, LIST>,
                             cudaFuncAttributeMaxDynamicSharedMemorySize, (int)TILE::BYTES);
    if (allowed != cudaSuccess) {
        return error_set(error, STATUS_DEVICE, "attention: %s", cudaGetErrorString(allowed));
    }
    unsigned blocks = order.items < most_blocks ? order.items : most_blocks;
    launch_dependent<specialised_attention<TILE, LIST>>(blocks, TILE::THREADS, TILE::BYTES, stream,
                                                        maps, *p, list, order, out_aligned(p), lse);
    return device_launched("specialised_attention", error);
}

/* @param most_blocks of the launch: those that run at once */
template <typename TILE>
static enum status launch_specialised(const struct attention_problem *p, float *lse,
                                      unsigned most_blocks, device_stream stream,
                                      struct error *error) {
    struct attention_maps maps;
    TRY(describe_problem<TILE>(&maps, p, error));
    if (p->starts != NULL) {
        auto launch = [&](const struct tile_list &list) {
            const struct work_order order = {list.count * (unsigned)p->NH, 0, 0};
            return launch_items<TILE>(p, lse, maps, list, order, most_blocks, stream, error);
        };
        return launch_lists(p, TILE::QUERIES, launch, error);
    }
    struct work_order order = {0, (unsigned)((p->T + TILE::QUERIES - 1) / TILE::QUERIES), 1};
    TRY(count_blocks(p, TILE::QUERIES, &order.items, error));
    if (p->causal) {
        order.heads_together = (unsigned)causal_plan_of<TILE>(p, most_blocks).heads_together;
    }
    return launch_items<TILE>(p, lse, maps, no_list(), order, most_blocks, stream, error);
}

#endif
