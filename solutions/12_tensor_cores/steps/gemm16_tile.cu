/**
 * @file gemm16_tile.cu
 * @brief The kernel for every GPU since Ampere: mma.sync on tiles that cp.async brings.
 *
 * A block computes a tile of BM x BN (mma_tile.cuh) and goes through K in steps of 64, with a
 * multistage pipeline: STAGES - 1 steps are in flight from device memory while one is multiplied.
 * Where rows are whole 16-byte pieces, a thread's copies of all steps differ by a constant, so that
 * a copy costs an addition and a comparison.
 *
 * Split-K, for few tiles and a long K: several blocks share a tile, each with a range of K. Their
 * partial sums lie in the workspace, and a second kernel adds them (gemm16_split_k.cu).
 */
#include <cuda_runtime.h>
#include <limits.h>
#include <stdint.h>

#include "common/cuda/async_copy.cuh"
#include "solutions/12_tensor_cores/steps/direct_epilogue.cuh"
#include "solutions/12_tensor_cores/steps/gemm16_internal.h"
#include "solutions/12_tensor_cores/steps/mma_tile.cuh"

namespace {

constexpr size_t MAX_SPLITS = 16; /* of split-K, where a factor is transposed */
constexpr int BAND = 8;           /* tiles of M whose blocks run side by side and share weights */

/* What a launch works on. */
struct operands {
    const void *in, *weight;
    size_t K;
    size_t tiles_m, tiles_n;
    size_t split_k; /* elements of K a block; a multiple of BK */
    bool vector;    /* rows of both are whole 16-byte pieces, aligned */
    bool plain;     /* results are the sums, rounded */
    float *partial; /* (splits, M, N): partial sums; NULL: no split-K, the epilogue stores */
};

/* Starts a copy of 16 bytes by words, for rows that are not whole 16-byte pieces; zeros fill it up
   after the first `bytes`. */
__device__ __forceinline__ void copy_words(void *to, const void *from, int bytes) {
#pragma unroll
    for (int at = 0; at < 16; at += 4) {
        int count = at < bytes ? 4 : 0;
        cp_async_zero_fill<4>(shared_address(to) + at, (const char *)from + (count > 0 ? at : 0),
                              count);
    }
}

/* Up to eight elements, whatever their alignment, and zeros behind them. */
template <typename E> __device__ __forceinline__ void copy_some(E *to, const E *from, int count) {
    struct eight pieces = {};
    unsigned short *x = (unsigned short *)&pieces;
#pragma unroll
    for (int i = 0; i < 8; i++) {
        x[i] = i < count ? ((const unsigned short *)from)[i] : 0;
    }
    *(struct eight *)to = pieces;
}

/* Starts copying ROWS rows of `from` (rows, K), columns k to k + 64; what is outside becomes 0.
   WORDS: by words where rows are whole ones. */
template <int ROWS, int THREADS, bool WORDS, typename E>
__device__ __forceinline__ void load_rows(E *stage, const E *from, size_t rows, size_t K, size_t k,
                                          bool vector, bool words) {
#pragma unroll
    for (int i = 0; i < (ROWS * PIECES + THREADS - 1) / THREADS; i++) {
        int at = i * THREADS + (int)threadIdx.x;
        int row = at / PIECES, piece = at % PIECES;
        if (ROWS * PIECES % THREADS != 0 && row >= ROWS) {
            break;
        }
        size_t column = k + (size_t)piece * 8;
        bool inside = (size_t)row < rows && column < K;
        int count = !inside ? 0 : K - column < 8 ? (int)(K - column) : 8;
        const E *source = inside ? from + row * K + column : from;
        if (vector) {
            cp_async_zero_fill<16>(piece_at(stage, row, piece), source, count * (int)sizeof(E));
        } else if (WORDS && words) {
            copy_words(piece_at(stage, row, piece), source, count * (int)sizeof(E));
        } else {
            copy_some(piece_at(stage, row, piece), source, count);
        }
    }
}

/* Starts copying what a stage has of a factor, `size` rows or, TRANSPOSED, columns: those from
   `first` on, and elements k to k + 64 of K. `from` is row `first` or, TRANSPOSED, the whole
   factor. */
template <bool TRANSPOSED, int SIZE, int THREADS, bool WORDS, typename E>
__device__ __forceinline__ void load_factor(E *stage, const E *from, size_t size, size_t first,
                                            size_t K, size_t k, bool vector, bool words) {
    if constexpr (TRANSPOSED) {
#pragma unroll
        for (int group = 0; group < SIZE / BK; group++) {
            load_rows<BK, THREADS, true>(stage + group * BK * BK, from + k * size, K - k, size,
                                         first + group * BK, vector, words);
        }
    } else {
        load_rows<SIZE, THREADS, WORDS>(stage, from, size - first, K, k, vector, words);
    }
}

/* A thread's copies of a factor where rows are whole 16-byte pieces: always the same piece, of
   every THREADS / 8th line of a stage; a line is a row of the factor or, TRANSPOSED, of K, of which
   a group of 64 columns lies in a stage after the other. */
template <bool TRANSPOSED, int SIZE, int THREADS> struct copies {
    static constexpr int LINES = TRANSPOSED ? BK : SIZE, GROUPS = TRANSPOSED ? SIZE / BK : 1;
    static constexpr int APART = THREADS / PIECES, COUNT = LINES / APART;
    static_assert(LINES % APART == 0 && APART % 8 == 0, "each line once, all in one piece");
    const char *from;       /* the thread's first piece of the next step */
    size_t stride, advance; /* bytes to the next of its lines, and to the next step */
    unsigned to;            /* offset in a stage */
    int lines[GROUPS];      /* of a group: its lines from the thread's first one on, inside */
    int left;               /* elements of K from the thread's first piece on */
};

/* @param first row or column that the stage begins with, of `size`; k: the first step */
template <bool TRANSPOSED, int SIZE, int THREADS>
__device__ __forceinline__ void begin_copies(struct copies<TRANSPOSED, SIZE, THREADS> &c,
                                             const void *factor, size_t first, size_t size,
                                             size_t K, size_t k, size_t k_end) {
    typedef struct copies<TRANSPOSED, SIZE, THREADS> C;
    size_t line = threadIdx.x / PIECES, piece = threadIdx.x % PIECES;
    size_t row = TRANSPOSED ? k + line : first + line, columns = TRANSPOSED ? size : K;
    size_t column = (TRANSPOSED ? first : k) + piece * 8, along_k = TRANSPOSED ? line : piece * 8;
    c.from = (const char *)factor + (row * columns + column) * 2;
    c.stride = C::APART * columns * 2;
    c.advance = TRANSPOSED ? BK * size * 2 : BK * 2;
    c.to = (unsigned)(line * 128 + (piece ^ line % 8) * 16);
    c.left = (int)k_end - (int)(k + along_k);
#pragma unroll
    for (int i = 0; i < C::GROUPS; i++) {
        c.lines[i] = TRANSPOSED ? (column + i * BK < size ? BK : 0) : (int)size - (int)row;
    }
}

/* Starts a part of the copies of the next step into `stage`: part 0, 1, ... of PARTS. All that a
   copy asks is whether its line is one of those inside: one comparison, beside its address. */
template <int PARTS, bool TRANSPOSED, int SIZE, int THREADS>
__device__ __forceinline__ void start_copies(struct copies<TRANSPOSED, SIZE, THREADS> &c,
                                             unsigned stage, int part) {
    typedef struct copies<TRANSPOSED, SIZE, THREADS> C;
    stage += c.to;
#pragma unroll
    for (int i = 0; i < C::GROUPS * C::COUNT; i++) {
        int group = i / C::COUNT, line = i % C::COUNT;
        int inside = TRANSPOSED ? min(c.lines[group], c.left) : c.left > 0 ? c.lines[0] : 0;
        if (i * PARTS / (C::GROUPS * C::COUNT) == part) {
            cp_async_zero_fill<16>(stage + (group * BK + line * C::APART) * 128,
                                   c.from + group * BK * 2 + line * c.stride,
                                   inside > line * C::APART ? 16 : 0);
        }
    }
    if (part == PARTS - 1) {
        c.from += c.advance;
        c.left -= BK;
    }
}

/* Origin of the block's tile, and its range of K. Blocks go down BAND tiles of M before the next of
   N. */
struct work_tile {
    unsigned m, n, k, k_end; /* at most GEMM16_MAX_SIZE and a tile */
};

template <typename T>
__device__ __forceinline__ struct work_tile tile_origin(const struct operands &o) {
    size_t tiles = o.tiles_m * o.tiles_n, tile = blockIdx.x % tiles, split = blockIdx.x / tiles;
    size_t band = tile / (BAND * o.tiles_n), inside = tile % (BAND * o.tiles_n);
    size_t height = min((size_t)BAND, o.tiles_m - band * BAND);
    struct work_tile p;
    p.m = (unsigned)((band * BAND + inside % height) * T::BM);
    p.n = (unsigned)(inside / height * T::BN);
    p.k = (unsigned)(split * o.split_k);
    p.k_end = (unsigned)min(o.K, (split + 1) * o.split_k);
    return p;
}

/* One split's partial sums into the workspace. */
__device__ __forceinline__ void store_partial(float *partial, const float *x, size_t m, size_t n,
                                              size_t M, size_t N) {
    float *to = partial + m * N + n;
    if (N % 8 == 0 && m < M && n < N) {
        ((float4 *)to)[0] = make_float4(x[0], x[1], x[2], x[3]);
        ((float4 *)to)[1] = make_float4(x[4], x[5], x[6], x[7]);
        return;
    }
    for (int i = 0; i < 8 && m < M && n + i < N; i++) {
        to[i] = x[i];
    }
}

/* Results that are the sums, rounded, straight from registers. Two lanes exchange pairs, so that
   each stores four neighbours of a row, 8 bytes: those of even lanes lie in the first eight of 16
   columns, those of odd ones in the second. */
template <typename T>
__device__ __forceinline__ void store_plain(const struct gemm16_epilogue &f,
                                            const float (*sums)[T::NS][4], unsigned m0,
                                            unsigned n0) {
    typedef typename T::E E;
    int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    bool odd = lane % 2;
    size_t row = m0 + warp / T::WARPS_N * T::WM + lane / 4;
    size_t column = n0 + warp % T::WARPS_N * T::WN + lane % 2 * 8 + lane % 4 / 2 * 4;
#pragma unroll
    for (int i = 0; i < 2 * T::MS; i++) {
        size_t m = row + i * 8;
#pragma unroll
        for (int n = 0; n < T::NS; n += 2) {
            const float *left = sums[i / 2][n] + i % 2 * 2, *right = sums[i / 2][n + 1] + i % 2 * 2;
            unsigned first = pack(left[0], left[1], E()), second = pack(right[0], right[1], E());
            unsigned other = __shfl_xor_sync(~0u, odd ? first : second, 1);
            size_t to = column + n * 8;
            if (m < f.M && to < f.N) {
                *(uint2 *)((E *)f.out + m * f.N + to) =
                    odd ? make_uint2(other, second) : make_uint2(first, other);
            }
        }
    }
}

/* Whether rows of both factors are whole 4-byte words, aligned. */
template <typename T>
__device__ __forceinline__ bool words_of(const struct operands &o,
                                         const struct gemm16_epilogue &f) {
    size_t rows = (T::IN_TRANSPOSED ? f.M : o.K) | (T::WEIGHT_TRANSPOSED ? f.N : o.K);
    return ((uintptr_t)o.in | (uintptr_t)o.weight | (rows * 2)) % 4 == 0;
}

template <typename T>
__global__ void __launch_bounds__(T::THREADS)
    gemm16_mma(const struct operands o, const struct gemm16_epilogue f) {
    typedef typename T::E E;
    extern __shared__ __align__(16) unsigned char shared_bytes[];
    E *stages = (E *)shared_bytes;
    unsigned first = shared_address(shared_bytes);
    constexpr unsigned STAGE_BYTES = T::STAGE * sizeof(E);
    const struct work_tile p = tile_origin<T>(o);
    const E *in = (const E *)o.in + (T::IN_TRANSPOSED ? 0 : (size_t)p.m * o.K);
    const E *weight = (const E *)o.weight + (T::WEIGHT_TRANSPOSED ? 0 : (size_t)p.n * o.K);
    unsigned steps = p.k < p.k_end ? (p.k_end - p.k + BK - 1) / BK : 0;
    struct copies<T::IN_TRANSPOSED, T::BM, T::THREADS> of_in;
    struct copies<T::WEIGHT_TRANSPOSED, T::BN, T::THREADS> of_weight;
    begin_copies(of_in, o.in, p.m, f.M, o.K, p.k, p.k_end);
    begin_copies(of_weight, o.weight, p.n, f.N, o.K, p.k, p.k_end);
    /* A part of a step's copies; those that are no whole pieces all at once. */
    constexpr int PARTS = BK / 16 - 1;
    auto load = [&](unsigned step, int to, int part) {
        E *stage = stages + to * T::STAGE;
        size_t k = p.k + (size_t)step * BK;
        if (step < steps && (T::WHOLE_PIECES || o.vector)) {
            start_copies<PARTS>(of_in, first + to * STAGE_BYTES, part);
            start_copies<PARTS>(of_weight, first + to * STAGE_BYTES + T::BM * BK * 2, part);
        } else if (!T::WHOLE_PIECES && step < steps && part == 0) {
            load_factor<T::IN_TRANSPOSED, T::BM, T::THREADS, T::TRANSPOSED>(
                stage, in, f.M, p.m, o.K, k, false, words_of<T>(o, f));
            load_factor<T::WEIGHT_TRANSPOSED, T::BN, T::THREADS, T::TRANSPOSED>(
                stage + T::BM * BK, weight, f.N, p.n, o.K, k, false, words_of<T>(o, f));
        }
    };
    auto next_has_arrived = [&]() { /* and all have read the stage that is filled next */
                                    cp_async_commit();
                                    cp_async_wait<T::STAGES - 2>();
                                    __syncthreads();
    };
    for (int step = 0; step < T::STAGES - 1; step++) {
        for (int part = 0; part < PARTS; part++) {
            load(step, step, part);
        }
        if (step + 1 < T::STAGES - 1) {
            cp_async_commit();
        }
    }
    next_has_arrived();
    struct fragments<T> fragments[2];
    float sums[T::MS][T::NS][4] = {};
    if (steps > 0) {
        load_fragments<T>(fragments[0], first, 0);
    }
    int at = 0, fill = T::STAGES - 1; /* stages to multiply and to fill */
    for (unsigned step = 0; step < steps; step++) {
        int next = at + 1 == T::STAGES ? 0 : at + 1;
        multiply_stage<T>(sums, fragments, first + at * STAGE_BYTES, first + next * STAGE_BYTES,
                          step + 1 < steps, next_has_arrived, [&](int depth) {
                              if (depth < PARTS) {
                                  load(step + T::STAGES - 1, fill, depth);
                              }
                          });
        at = next;
        fill = fill + 1 == T::STAGES ? 0 : fill + 1;
    }
    cp_async_wait<0>();
    if (T::WHOLE_PIECES && o.plain) {
        store_plain<T>(f, sums, p.m, p.n);
        return;
    }
    __syncthreads();
    for_each_eight<T>(shared_bytes, sums, p.m, p.n, [&](float *x, size_t m, size_t n) {
        if (o.partial == NULL) {
            epilogue_eight<E>(f, x, m, n);
        } else {
            store_partial(o.partial + p.k / o.split_k * f.M * f.N, x, m, n, f.M, f.N);
        }
    });
}

size_t ceil_div(size_t a, size_t b) {
    return (a + b - 1) / b;
}

size_t least(size_t a, size_t b) {
    return a < b ? a : b;
}

/* Number of splits of K, none with less than 4 steps: until there is a wave of blocks; where the
   partial sums are few bytes beside the weights, until there are four waves. */
size_t splits_of_plain(const struct gemm16_problem *p, const struct gemm16_gpu *gpu, size_t tiles) {
    size_t sums = p->M * p->N * sizeof(float), wave = (size_t)gpu->multiprocessors;
    size_t splits = wave / tiles, more = least(4 * wave / tiles, p->K / (16 * p->M));
    splits = splits < more ? more : splits;
    splits = least(splits, ceil_div(p->K, BK) / 4);
    splits = least(splits, GEMM16_WORKSPACE_BYTES / sums);
    return splits < 2 ? 1 : splits;
}

/* The same where a factor is transposed: a backward pass has few tiles and a K of thousands of
   rows. The number with the least time, counted in steps of a block, of which the GPU runs `slots`
   at once: a block's prologue and epilogue cost about 4 steps, writing and reading its partial sums
   4 more. (An estimate from the rates of an H200; not measured.) */
size_t splits_of_transposed(const struct gemm16_problem *p, size_t slots, size_t tiles) {
    size_t sums = p->M * p->N * sizeof(float), steps = ceil_div(p->K, BK);
    size_t most = least(least(MAX_SPLITS, steps / 4), GEMM16_WORKSPACE_BYTES / sums);
    size_t best = 1, best_cost = ceil_div(tiles, slots) * (steps + 4);
    for (size_t splits = 2; splits <= most; splits++) {
        size_t cost = ceil_div(tiles * splits, slots) * (ceil_div(steps, splits) + 8);
        if (cost < best_cost) {
            best = splits;
            best_cost = cost;
        }
    }
    return best;
}

template <typename T>
size_t splits_of(const struct gemm16_problem *p, const struct gemm16_gpu *gpu, size_t tiles) {
    constexpr size_t RESIDENT = T::THREADS > 128 ? 1 : 4; /* blocks that the registers allow */
    return T::TRANSPOSED ? splits_of_transposed(p, RESIDENT * (size_t)gpu->multiprocessors, tiles)
                         : splits_of_plain(p, gpu, tiles);
}

template <typename T>
enum status launch(const struct gemm16_problem *p, const struct gemm16_gpu *gpu, void *workspace,
                   device_stream stream, struct error *error) {
    static const cudaError_t allowed = cudaFuncSetAttribute(
        gemm16_mma<T>, cudaFuncAttributeMaxDynamicSharedMemorySize, (int)T::BYTES);
    if (allowed != cudaSuccess) {
        return error_set(error, STATUS_DEVICE, "gemm16: %s", cudaGetErrorString(allowed));
    }
    struct operands o;
    o.in = p->in;
    o.weight = p->weight;
    o.K = p->K;
    o.tiles_m = ceil_div(p->M, T::BM);
    o.tiles_n = ceil_div(p->N, T::BN);
    o.vector = gemm16_has_whole_pieces(p);
    size_t tiles = o.tiles_m * o.tiles_n;
    o.split_k = ceil_div(ceil_div(p->K, BK), splits_of<T>(p, gpu, tiles)) * BK;
    size_t splits = p->K > 0 ? ceil_div(p->K, o.split_k) : 1;
    o.partial = splits > 1 ? (float *)workspace : NULL;
    if (tiles > INT_MAX / splits) {
        return error_set(error, STATUS_INVALID_ARGUMENT,
                         "gemm16: %zu x %zu results are more than one launch has blocks for", p->M,
                         p->N);
    }
    const struct gemm16_epilogue f = gemm16_epilogue_of(p);
    o.plain = o.partial == NULL && is_plain(f);
    gemm16_mma<T><<<(unsigned)(tiles * splits), T::THREADS, T::BYTES, stream>>>(o, f);
    enum status status = device_launched("gemm16_mma", error);
    if (status == STATUS_OK && splits > 1) {
        status = gemm16_split_k_reduce(p, o.partial, splits, p->M, stream, error);
    }
    return status;
}

/* The largest tile of which every multiprocessor gets one; the smallest where rows are no whole
   pieces. Where shared memory has room for two blocks of 128 x 128, a warp each of a scheduler,
   they are as fast as the largest tile at 4096 cubed (H100: 291 us) and faster at fewer tiles. */
template <typename E>
enum status choose_plain(const struct gemm16_problem *p, const struct gemm16_gpu *gpu,
                         void *workspace, device_stream stream, struct error *error) {
    typedef tile<E, 128, 256, 2, 4, 3, false, false, true> largest;
    typedef tile<E, 128, 128, 2, 4, 3, false, false, true> large;
    typedef tile<E, 128, 128, 2, 2, 3, false, false, true> paired; /* two a multiprocessor */
    typedef tile<E, 64, 64, 2, 2, 3> small;
    typedef tile<E, 16, 64, 1, 4, 4> flat;
    size_t wave = (size_t)gpu->multiprocessors;
    if (p->M <= 16) {
        return launch<flat>(p, gpu, workspace, stream, error);
    }
    if (!gemm16_has_whole_pieces(p)) {
        return launch<small>(p, gpu, workspace, stream, error);
    }
    bool many = ceil_div(p->M, 128) * ceil_div(p->N, 128) >= wave;
    if (2 * paired::BYTES <= gpu->shared_bytes && many) {
        return launch<paired>(p, gpu, workspace, stream, error);
    }
    if (largest::BYTES <= gpu->shared_bytes && p->M / 128 * (p->N / 256) >= 2 * wave) {
        return launch<largest>(p, gpu, workspace, stream, error);
    }
    if (large::BYTES <= gpu->shared_bytes && many) {
        return launch<large>(p, gpu, workspace, stream, error);
    }
    return launch<small>(p, gpu, workspace, stream, error);
}

/* Large tiles, if they give every multiprocessor a block with split-K, and out is not narrower. */
template <typename E, bool IN_TRANSPOSED, bool WEIGHT_TRANSPOSED>
enum status choose_transposed(const struct gemm16_problem *p, const struct gemm16_gpu *gpu,
                              void *workspace, device_stream stream, struct error *error) {
    typedef tile<E, 128, 128, 2, 4, 3, IN_TRANSPOSED, WEIGHT_TRANSPOSED> large;
    typedef tile<E, 64, 64, 2, 2, 3, IN_TRANSPOSED, WEIGHT_TRANSPOSED> small;
    size_t steps = ceil_div(p->K, BK), tiles = ceil_div(p->M, 128) * ceil_div(p->N, 128);
    bool enough = tiles * (steps < 8 ? 1 : steps / 4) >= (size_t)gpu->multiprocessors;
    if (large::BYTES <= gpu->shared_bytes && p->M > 64 && p->N > 64 && enough) {
        return launch<large>(p, gpu, workspace, stream, error);
    }
    return launch<small>(p, gpu, workspace, stream, error);
}

template <typename E>
enum status choose(const struct gemm16_problem *p, const struct gemm16_gpu *gpu, void *workspace,
                   device_stream stream, struct error *error) {
    if (p->in_is_transposed) {
        return p->weight_is_transposed
                   ? choose_transposed<E, true, true>(p, gpu, workspace, stream, error)
                   : choose_transposed<E, true, false>(p, gpu, workspace, stream, error);
    }
    return p->weight_is_transposed
               ? choose_transposed<E, false, true>(p, gpu, workspace, stream, error)
               : choose_plain<E>(p, gpu, workspace, stream, error);
}

} // namespace

enum status gemm16_tile(const struct gemm16_problem *p, const struct gemm16_gpu *gpu,
                        void *workspace, device_stream stream, struct error *error) {
    return p->dtype == NN_F16 ? choose<__half>(p, gpu, workspace, stream, error)
                              : choose<__nv_bfloat16>(p, gpu, workspace, stream, error);
}
