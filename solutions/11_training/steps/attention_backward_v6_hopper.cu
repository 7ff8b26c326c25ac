/**
 * @file attention_backward_v6_hopper.cu
 * @brief Attention in bf16 on Hopper: one kernel for dq, dk and dv, by TMA and wgmma.
 *
 * Changes since v5, for heads of 64 and of 128 channels on GPUs of compute capability 9.0: five
 * products instead of seven. A block owns 128 keys, 64 for each of two consumer warpgroups, and
 * passes over tiles of 128 queries (heads of 128: 64). A producer warp copies by TMA. p and ds are
 * left operands in registers for dv and dk; ds also goes to shared memory, from where both
 * warpgroups compute their part of dq. The scores of the next tile are begun with dk's product, so
 * that the tensor cores have both to do while dq's sums go to shared memory.
 *
 * dq is summed in fp32 in the scratch memory, by bulk copies that add, which a warp of its own
 * starts. The order is fixed: a counter a tile says whose turn it is, and hopper_backward_block.cuh
 * chooses orders in which blocks that run together hardly wait. The first block of a tile stores
 * instead of adding, so nothing is cleared. ds is computed from p rounded to bf16: with p in fp32
 * beside it the registers do not suffice for the next scores.
 *
 * Why: relieves the tensor cores, of two products and of mma.sync's rate.
 *
 * Launch: three kernels. padded_stats: lse and delta, with sequences aligned to tiles.
 * hopper_backward_kernel: cooperative, 384 threads, 196 KiB of shared memory, a block a
 * multiprocessor, which takes a tile of keys in each round. round_dq: dq in bf16. FLOPs: 10 HS for
 * each pair that is visible. Bytes: inputs and gradients, and dq's sums, rows x NH x HS floats, for
 * each tile of keys once to L2.
 *
 * v5 serves other heads and GPUs, sequences of more than 128 keys for each multiprocessor, and
 * texts so short that the scratch memory has no room for them padded.
 */
#include "common/device/tensor_map.h"
#include "solutions/11_training/steps/hopper_backward_copies.cuh"
#include "solutions/11_training/steps/hopper_backward_edges.cuh"
#include "solutions/11_training/steps/hopper_backward_products.cuh"

template <typename TILE>
static __global__ void __launch_bounds__(TILE::THREADS, 1)
    hopper_backward_kernel(const __grid_constant__ struct backward_maps maps,
                           const __grid_constant__ struct attention_backward_problem problem,
                           const struct backward_rounds rounds,
                           const __grid_constant__ struct padded_scratch scratch) {
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
    extern __shared__ unsigned char tile_bytes[];
    __shared__ struct backward_barriers<TILE> barriers;
    const struct backward_tiles<TILE> tiles = partition<TILE>(tile_bytes);
    const struct backward_block<TILE> block = { problem, rounds, scratch, tiles, barriers };
    if (threadIdx.x == 0) {
        init_barriers<TILE>(barriers);
    }
    __syncthreads();
    if (threadIdx.x < TILE::CONSUMERS) {
        warpgroup_reg_alloc<TILE::CONSUMER_REGISTERS>();
        consume<TILE>(block);
    } else {
        warpgroup_reg_dealloc<TILE::OTHER_REGISTERS>();
        if (threadIdx.x < TILE::CONSUMERS + 32) {
            produce<TILE>(maps, block);
        } else if (threadIdx.x == TILE::CONSUMERS + 32) {
            add_to_dq<TILE>(block);
        }
    }
#endif
}

/* Whether the code at hand was compiled for sm_90a: only then this kernel, which is never launched,
   has shared memory. */
static __global__ void hopper_code(int *to) {
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
    __shared__ int there[4];
    there[threadIdx.x % 4] = *to;
    __syncthreads();
    *to = there[(threadIdx.x + 1) % 4];
#endif
}

static bool has_hopper_code() {
    struct cudaFuncAttributes attributes;
    return cudaFuncGetAttributes(&attributes, hopper_code) == cudaSuccess &&
           attributes.sharedSizeBytes > 0;
}

/* rows (rows, heads * HS), `stride` elements apart, in boxes of `box` rows and 64 channels. */
static enum status describe_rows(CUtensorMap *map, const void *data, size_t rows, size_t stride,
                                 int box, struct error *error) {
    const struct tensor_map_matrix matrix = {NN_BF16, data, rows, stride, (unsigned)box, 64, 128};
    return tensor_map_create(map, &matrix, error);
}

/* A cooperative launch: blocks wait for each other. */
template <typename TILE>
static void launch_together(const struct backward_maps &maps,
                            const struct attention_backward_problem &p,
                            const struct backward_rounds &rounds,
                            const struct padded_scratch &scratch, device_stream stream) {
    cudaLaunchAttribute cooperative = {};
    cooperative.id = cudaLaunchAttributeCooperative;
    cooperative.val.cooperative = 1;
    cudaLaunchConfig_t config = {};
    config.gridDim = rounds.heads * rounds.tiles;
    config.blockDim = TILE::THREADS;
    config.dynamicSmemBytes = TILE::BYTES;
    config.stream = stream;
    config.attrs = &cooperative;
    config.numAttrs = 1;
    (void)cudaLaunchKernelEx(&config, hopper_backward_kernel<TILE>, maps, p, rounds,
                             scratch); /* device_launched() reports */
}

template <typename TILE>
static enum status launch(const struct attention_backward_problem *p, void *scratch,
                          unsigned multiprocessors, device_stream stream, struct error *error) {
    static const cudaError_t allowed =
        cudaFuncSetAttribute(hopper_backward_kernel<TILE>,
                             cudaFuncAttributeMaxDynamicSharedMemorySize, (int)TILE::BYTES);
    if (allowed != cudaSuccess) {
        return error_set(error, STATUS_DEVICE, "attention_backward: %s",
                         cudaGetErrorString(allowed));
    }
    struct backward_maps maps;
    TRY(describe_rows(&maps.q, p->q, p->rows, p->q_stride, TILE::QUERIES, error));
    TRY(describe_rows(&maps.dout, p->dout, p->rows, p->NH * p->HS, TILE::QUERIES, error));
    TRY(describe_rows(&maps.k, p->k, p->rows, p->kv_stride, TILE::KEYS, error));
    TRY(describe_rows(&maps.v, p->v, p->rows, p->kv_stride, TILE::KEYS, error));
    struct backward_rounds rounds;
    rounds.tiles = (unsigned)((p->longest + TILE::KEYS - 1) / TILE::KEYS);
    rounds.all_heads = (unsigned)(p->B * p->KVH);
    rounds.heads = multiprocessors / rounds.tiles;
    rounds.heads = rounds.heads < rounds.all_heads ? rounds.heads : rounds.all_heads;
    rounds.rounds = (rounds.all_heads + rounds.heads - 1) / rounds.heads;
    const struct padded_scratch padded = padded_scratch_in(*p, scratch);
    constexpr int STATS_ROWS = EDGE_ROWS * EDGE_THREADS / (TILE::HS / 8);
    unsigned padded_rows = (unsigned)((p->longest + PADDING - 1) / PADDING * PADDING);
    const dim3 stats((padded_rows + STATS_ROWS - 1) / STATS_ROWS, (unsigned)p->NH, (unsigned)p->B);
    const dim3 tiles(padded_rows / TILE::QUERIES, (unsigned)p->NH, (unsigned)p->B);
    padded_stats<TILE::HS><<<stats, EDGE_THREADS, 0, stream>>>(*p, padded);
    TRY(device_launched("padded_stats", error));
    launch_together<TILE>(maps, *p, rounds, padded, stream);
    TRY(device_launched("hopper_backward_kernel", error));
    launch_dependent<round_dq<TILE>>(tiles, EDGE_THREADS, 0, stream, *p, padded);
    return device_launched("round_dq", error);
}

/* Whether the kernel takes the problem: all blocks of a head must run at the same time. */
static bool is_possible(const struct attention_backward_problem *p, unsigned multiprocessors) {
    static const bool hopper = gpu_limits().major == 9 && has_hopper_code();
    return hopper && p->dtype == NN_BF16 && (p->HS == 64 || p->HS == 128) && p->rows > 0 &&
           p->longest <= (size_t)multiprocessors * 128 && p->B <= 65535 && p->NH <= 65535 &&
           padded_scratch_bytes(p) <= attention_backward_scratch(p) && tensor_map_available();
}

enum status attention_backward_hopper(const struct attention_backward_problem *p, void *scratch,
                                      unsigned most_blocks, device_stream stream,
                                      struct error *error) {
    unsigned multiprocessors =
        most_blocks > 0 ? most_blocks : (unsigned)gpu_limits().multiprocessors;
    TRY(attention_backward_check(p, error));
    if (!is_possible(p, multiprocessors)) {
        return attention_backward_v5_tensor(p, scratch, stream, error);
    }
    return p->HS == 64 ? launch<hopper_backward<64>>(p, scratch, multiprocessors, stream, error)
                       : launch<hopper_backward<128>>(p, scratch, multiprocessors, stream, error);
}

enum status attention_backward_v6_hopper(const struct attention_backward_problem *p, void *scratch,
                                         device_stream stream, struct error *error) {
    return attention_backward_hopper(p, scratch, 0, stream, error);
}
