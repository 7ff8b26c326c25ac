/**
 * @file attention_backward_v5_tensor.cu
 * @brief Attention in bf16: all products on tensor cores, through mma.sync.
 *
 * Changes since v4, for bf16 only: the kernel is attention_backward_tile.cuh's. p and ds never
 * leave registers, where they are rounded to bf16 between the products; sums stay fp32. Tiles of
 * the other operands are copied by cp.async, in two stages.
 *
 * Why: relieves the FMA units. Heads of 64: for 128 own rows and 64 others a warp does 256 mmas in
 * the kernel for dk and dv, 192 in the one for dq, and reads 96 and 80 times 512 bytes of
 * fragments, so that tensor cores and shared memory are about equally busy.
 *
 * Launch: 128 threads for each sequence, head and 128 own rows, or 64 where taller tiles would
 * leave multiprocessors idle, and for heads above 64 channels. Shared memory: 73 KiB for heads of
 * 64 with 128 rows, two blocks a multiprocessor. Where the shared memory limits the blocks more
 * than the registers do (8.0 to 8.9), tiles of 32 other rows: see launch_tile(). Bytes: as v4, of
 * bf16. FLOPs: as v4.
 *
 * v4 serves fp32, and GPUs without these instructions or with less shared memory.
 */
#include "solutions/11_training/steps/attention_backward_tile.cuh"

template <typename TILE, bool KEYS_OWN>
static enum status launch_kernel(const struct attention_backward_problem *p, void *scratch,
                                 device_stream stream, struct error *error) {
    static const cudaError_t allowed =
        cudaFuncSetAttribute(tensor_backward<TILE, KEYS_OWN>,
                             cudaFuncAttributeMaxDynamicSharedMemorySize, (int)TILE::BYTES);
    unsigned blocks = 0;
    if (allowed != cudaSuccess) {
        return error_set(error, STATUS_DEVICE, "attention_backward: %s",
                         cudaGetErrorString(allowed));
    }
    TRY(count_tiles(p, KEYS_OWN, TILE::OWN, &blocks, error));
    tensor_backward<TILE, KEYS_OWN>
        <<<blocks, TILE::THREADS, TILE::BYTES, stream>>>(*p, query_stats_in(*p, scratch));
    return device_launched("tensor_backward", error);
}

/* Whether the code that this GPU runs was compiled for 8.0 or later: older code has no mma. */
static bool code_has_mma() {
    struct cudaFuncAttributes attributes;
    const void *kernel = (const void *)tensor_backward<backward_tile<64, 1, 32, 3>, true>;
    return cudaFuncGetAttributes(&attributes, kernel) == cudaSuccess && attributes.ptxVersion >= 80;
}

/* Whether there are enough tiles for every multiprocessor to hold as many blocks as it can. */
template <typename TILE>
static bool fills_gpu(const struct attention_backward_problem *p, bool keys_own,
                      const struct gpu_limits &gpu) {
    size_t heads = keys_own ? p->KVH : p->NH;
    return p->rows / TILE::OWN * heads >= (size_t)(gpu.multiprocessors * TILE::BLOCKS);
}

/* Whether the shared memory has room for all blocks of a multiprocessor. A block may ask for all of
   it but 1 KiB. */
template <typename TILE> static bool all_resident(const struct gpu_limits &gpu) {
    return TILE::BLOCKS * TILE::BYTES <= gpu.shared_bytes;
}

/* Launches the tallest tile that fills the GPU. A multiprocessor of an RTX 3090 or 4090 has 100 KiB
   of shared memory, room for one block of `tall` or `low`: four warps, which mostly wait. It holds
   two blocks of `shallow`, whose tiles of other rows are half as deep; an A100 three instead of two
   of `low`. */
template <typename TALL, typename LOW, typename SHALLOW, bool KEYS_OWN>
static enum status launch_tile(const struct attention_backward_problem *p, void *scratch,
                               const struct gpu_limits &gpu, device_stream stream,
                               struct error *error) {
    if (all_resident<TALL>(gpu) && fills_gpu<TALL>(p, KEYS_OWN, gpu)) {
        return launch_kernel<TALL, KEYS_OWN>(p, scratch, stream, error);
    }
    return all_resident<LOW>(gpu) ? launch_kernel<LOW, KEYS_OWN>(p, scratch, stream, error)
                                  : launch_kernel<SHALLOW, KEYS_OWN>(p, scratch, stream, error);
}

/* Heads of up to 32, 64 and 128 channels. */
typedef backward_tile<32, 2, 32, 2> narrow;
typedef backward_tile<32, 1, 32, 3> narrow_low;
typedef backward_tile<64, 2, 32, 2> tall;
typedef backward_tile<64, 1, 32, 3> low;
typedef backward_tile<64, 1, 32, 3, 32> shallow;
typedef backward_tile<128, 1, 32, 2> wide;
typedef backward_tile<128, 1, 32, 2, 32> wide_shallow;

/* Whether there are tensor cores for the problem, and shared memory for its tiles. */
static bool is_possible(const struct attention_backward_problem *p, const struct gpu_limits &gpu) {
    static const bool has_mma = code_has_mma();
    size_t least = p->HS <= 32   ? narrow_low::BYTES
                   : p->HS <= 64 ? shallow::BYTES
                                 : wide_shallow::BYTES;
    return p->dtype == NN_BF16 && has_mma && least <= gpu.shared_bytes && p->rows > 0;
}

/* The kernel for dk and dv, or the one for dq. */
template <bool KEYS_OWN>
static enum status launch(const struct attention_backward_problem *p, void *scratch,
                          const struct gpu_limits &gpu, device_stream stream, struct error *error) {
    if (p->HS <= 32) {
        return launch_tile<narrow, narrow_low, narrow_low, KEYS_OWN>(p, scratch, gpu, stream,
                                                                     error);
    }
    return p->HS <= 64
               ? launch_tile<tall, low, shallow, KEYS_OWN>(p, scratch, gpu, stream, error)
               : launch_tile<wide, wide, wide_shallow, KEYS_OWN>(p, scratch, gpu, stream, error);
}

enum status attention_backward_v5_tensor(const struct attention_backward_problem *p, void *scratch,
                                         device_stream stream, struct error *error) {
    struct gpu_limits gpu = gpu_limits();
    TRY(attention_backward_check(p, error));
    if (!is_possible(p, gpu)) {
        return attention_backward_v4_flash(p, scratch, stream, error);
    }
    TRY(attention_query_stats(p, scratch, stream, error));
    TRY(launch<true>(p, scratch, gpu, stream, error));
    return launch<false>(p, scratch, gpu, stream, error);
}

enum status attention_backward_middle(const struct attention_backward_problem *p, void *scratch,
                                      device_stream stream, struct error *error) {
    struct gpu_limits gpu = gpu_limits();
    TRY(attention_backward_check(p, error));
    if (!is_possible(p, gpu)) {
        return attention_backward_v4_flash(p, scratch, stream, error);
    }
    TRY(attention_query_stats(p, scratch, stream, error));
    TRY(launch<true>(p, scratch, gpu, stream, error));
    return attention_backward_queries(p, scratch, stream, error);
}
