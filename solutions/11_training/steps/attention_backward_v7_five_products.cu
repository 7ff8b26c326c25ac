/**
 * @file attention_backward_v7_five_products.cu
 * @brief Attention in fp32: one kernel for dq, dk and dv, five products instead of seven.
 *
 * Changes since v4, for heads of up to 64 channels on GPUs with shared memory for two of its
 * blocks: a block that owns keys also computes its part of dq, ds times k, and adds it to dq in
 * memory. The order of these sums is fixed, as in v6: block n begins with its own queries, n, and
 * goes round, so that the blocks of a head are at different tiles at each step, and a semaphore a
 * tile says whose turn it is. The first block of a tile stores, so nothing is cleared. A thread has
 * 8 x 4 of a tile instead of 4 x 4: twelve loads of 16 bytes serve 128 FMAs. cp.async copies the
 * next gradients of outputs under dk's product, the next queries under dq's.
 *
 * Why: relieves the FMA units, of two products of seven, and shared memory, of a third of its
 * loads.
 *
 * Launch: 128 threads; an item is 64 keys of a key head of a sequence, in tiles of 64 queries; 103
 * KiB of shared memory, two blocks a multiprocessor, as many as run together (cooperative). They
 * take items from a counter, in order: items before are running or done, so all that a block waits
 * for comes. FLOPs: 10 HS for each pair of a query and a key that it sees. Bytes: inputs and
 * gradients, and dq, rows x NH x HS floats, for each tile of keys read and written in L2.
 *
 * v6 serves bf16, other heads and GPUs, and sequences of more tiles than blocks run together.
 */
#include "solutions/11_training/steps/flash_tile.cuh"
#include "solutions/11_training/steps/semaphore.cuh"

enum { TILE_ROWS = 64, BLOCKS = 2 };

typedef flash_tile<64, TILE_ROWS, TILE_ROWS, 128, 8> fused_tile;

/* Behind the statistics in the scratch memory. */
struct dq_turns {
    unsigned *taken; /* items */
    unsigned *added; /* blocks that have added to each tile of queries of each head */
    size_t tiles;    /* of a head, all sequences */
};

static __host__ __device__ __forceinline__ struct dq_turns
dq_turns_in(const struct attention_backward_problem &p, void *scratch) {
    unsigned *from = (unsigned *)(query_stats_in(p, scratch).delta + p.NH * p.rows);
    return {from, from + 1, p.rows / TILE_ROWS + p.B};
}

/* A step of a block: a tile of queries of a query head. */
struct query_step {
    unsigned head;
    int number; /* of this head */
};

/* The first query of a step: from the block's own tile on, and round. */
static __device__ __forceinline__ int first_query(const struct tile_coordinates &s, int number) {
    int tile = s.first / TILE_ROWS + number;
    return (tile < s.tile_end ? tile : tile - s.tile_end) * TILE_ROWS;
}

/* Starts copies of rows first .. of a head; rows and channels beyond the end become 0. */
static __device__ __forceinline__ void start_rows(float (*to)[fused_tile::PITCH], const float *from,
                                                  size_t stride, int first, int T, int channels) {
    constexpr int VECTORS = fused_tile::HS / 4, STEP = fused_tile::THREADS / VECTORS;
    int channel = (int)threadIdx.x % VECTORS * 4, row = (int)threadIdx.x / VECTORS;
#pragma unroll
    for (int i = 0; i < TILE_ROWS; i += STEP) {
        bool inside = first + row + i < T && channel < channels;
        cp_async<16>(&to[row + i][channel],
                     inside ? from + (size_t)(first + row + i) * stride + channel : from, inside);
    }
}

/* What a block of the kernel needs everywhere. */
struct fused_block {
    const struct attention_backward_problem &p;
    const struct query_stats &stats;
    const struct tile_coordinates &s;
    fused_tile::shared &tile;

    __device__ __forceinline__ void start_queries(const struct query_step &step) const {
        const struct operands<float> q = query_operands<float>(p, s.start, step.head);
        start_rows(tile.other_x, q.x, q.x_stride, first_query(s, step.number), s.T, (int)p.HS);
    }

    /* The gradients of a step's outputs, and lse and delta. */
    __device__ __forceinline__ void start_gradients(const struct query_step &step) const {
        const struct operands<float> q = query_operands<float>(p, s.start, step.head);
        int first = first_query(s, step.number), row = (int)threadIdx.x % TILE_ROWS;
        start_rows(tile.other_y, q.y, q.y_stride, first, s.T, (int)p.HS);
        bool is_lse = threadIdx.x < TILE_ROWS, inside = first + row < s.T;
        const float *from = is_lse ? stats.lse : stats.delta;
        size_t at = inside ? step.head * p.rows + s.start + (size_t)(first + row) : 0;
        cp_async<4>(is_lse ? &tile.lse[row] : &tile.delta[row], from + at, inside);
    }

    /* Moves to the next step; false: there is none. */
    __device__ __forceinline__ bool advance(struct query_step *step, int steps) const {
        if (++step->number == steps) {
            step->number = 0;
            step->head++;
        }
        return step->head < s.other_end;
    }
};

/* sums[j][c] = ds of query group + GROUPS j, times column 4 lane + c of the keys */
static __device__ __forceinline__ void multiply_keys(float (&sums)[fused_tile::OTHERS][4],
                                                     const fused_tile::shared &tile) {
    int lane = fused_tile::lane(), group = fused_tile::group();
#pragma unroll
    for (int i = 0; i < 4 * fused_tile::OTHERS; i++) {
        sums[i / 4][i % 4] = 0.0f;
    }
#pragma unroll 4
    for (int key = 0; key < TILE_ROWS; key += 4) {
        float k[4][4];
#pragma unroll
        for (int i = 0; i < 4; i++) {
            load_floats(k[i], &tile.own_x[key + i][4 * lane]);
        }
#pragma unroll
        for (int j = 0; j < fused_tile::OTHERS; j++) {
            float ds[4];
            load_floats(ds, &tile.ds[group + fused_tile::GROUPS * j][key]);
#pragma unroll
            for (int i = 0; i < 16; i++) {
                sums[j][i % 4] += ds[i / 4] * k[i / 4][i % 4];
            }
        }
    }
}

/* Adds a step's part to dq, past L1; the first block of a tile stores it. */
static __device__ __forceinline__ void add_to_dq(const struct fused_block &b,
                                                 const struct query_step &step,
                                                 const float (&sums)[fused_tile::OTHERS][4]) {
    int channel = 4 * fused_tile::lane(), row = first_query(b.s, step.number) + fused_tile::group();
    size_t column = step.head * b.p.HS + (size_t)channel;
    float *to = (float *)b.p.dq + (b.s.start + (size_t)row) * b.p.q_stride + column;
    size_t jump = fused_tile::GROUPS * b.p.q_stride;
    float4 before[fused_tile::OTHERS];
#pragma unroll
    for (int j = 0; j < fused_tile::OTHERS; j++) {
        bool inside = row + fused_tile::GROUPS * j < b.s.T && channel < (int)b.p.HS;
        before[j] = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
        if (inside && step.number > 0) {
            before[j] = __ldcg((const float4 *)(to + (size_t)j * jump));
        }
    }
#pragma unroll
    for (int j = 0; j < fused_tile::OTHERS; j++) {
        if (row + fused_tile::GROUPS * j < b.s.T && channel < (int)b.p.HS) {
            float4 x = before[j];
            x.x += sums[j][0] * b.p.scale;
            x.y += sums[j][1] * b.p.scale;
            x.z += sums[j][2] * b.p.scale;
            x.w += sums[j][3] * b.p.scale;
            __stcg((float4 *)(to + (size_t)j * jump), x);
        }
    }
}

/* The number of the block's next item: all of them are taken in order. */
static __device__ __forceinline__ unsigned take_item(unsigned *taken) {
    __shared__ unsigned number;
    __syncthreads(); /* the last one has been read */
    if (threadIdx.x == 0) {
        number = atomicAdd(taken, 1u);
    }
    __syncthreads();
    return number;
}

/* dk and dv of a tile of keys, and its part of dq. */
static __device__ __forceinline__ void work_on_keys(const struct fused_block &b,
                                                    const struct dq_turns &turns) {
    const struct attention_backward_problem &p = b.p;
    const struct tile_coordinates &s = b.s;
    fused_tile::shared &tile = b.tile;
    const struct operands<float> own = key_operands<float>(p, s.start, s.head);
    int steps = s.tile_end - s.tile;
    size_t tiles_before = s.start / TILE_ROWS + s.sequence;
    struct query_step step = {s.other, 0};
    start_rows(tile.own_x, own.x, own.x_stride, s.first, s.T, (int)p.HS);
    start_rows(tile.own_y, own.y, own.y_stride, s.first, s.T, (int)p.HS);
    b.start_gradients(step);
    b.start_queries(step);
    float dk[fused_tile::SUM_ROWS][4] = {}, dv[fused_tile::SUM_ROWS][4] = {};
    unsigned *turn = NULL;
    for (bool more = true; more;) {
        int first = first_query(s, step.number);
        struct query_step next = step;
        more = b.advance(&next, steps);
        cp_async_wait_all();
        __syncthreads(); /* the tile is there; the last one's part of dq is stored */
        if (threadIdx.x == 0 && turn != NULL) {
            semaphore_release(turn);
        }
        compute_p_ds<fused_tile, true>(tile, p, s, first);
        __syncthreads();
        add_products<fused_tile>(dv, tile.p, tile.other_y);
        __syncthreads();
        if (more) {
            b.start_gradients(next);
        }
        add_products<fused_tile>(dk, tile.ds, tile.other_x);
        __syncthreads();
        if (more) {
            b.start_queries(next);
        }
        float dq[fused_tile::OTHERS][4];
        multiply_keys(dq, tile);
        turn = turns.added + step.head * turns.tiles + tiles_before + first / TILE_ROWS;
        if (threadIdx.x == 0) {
            semaphore_wait(turn, (unsigned)step.number);
        }
        __syncthreads();
        add_to_dq(b, step, dq);
        step = next;
    }
    __syncthreads();
    if (threadIdx.x == 0) {
        semaphore_release(turn);
    }
    size_t column = s.head * p.HS;
    store_sums<fused_tile>((float *)p.dk + column, p.kv_stride, dk, p.scale, s, (int)p.HS);
    store_sums<fused_tile>((float *)p.dv + column, p.kv_stride, dv, 1.0f, s, (int)p.HS);
}

static __global__ void __launch_bounds__(fused_tile::THREADS, BLOCKS)
    fused_backward(const __grid_constant__ struct attention_backward_problem p,
                   const struct query_stats stats, const struct dq_turns turns, unsigned items) {
    extern __shared__ __align__(16) unsigned char shared_bytes[];
    fused_tile::shared &tile = *(fused_tile::shared *)shared_bytes;
    for (unsigned item = take_item(turns.taken); item < items; item = take_item(turns.taken)) {
        const struct tile_coordinates s = locate_tile<true, TILE_ROWS, TILE_ROWS>(p, item);
        const struct fused_block b = {p, stats, s, tile};
        if (s.first < s.T) {
            work_on_keys(b, turns);
        }
    }
}

/* Whether the kernel takes the problem: all blocks of a head must run at the same time. */
static bool is_possible(const struct attention_backward_problem *p, const struct gpu_limits &gpu) {
    return p->dtype == NN_F32 && p->HS <= 64 && p->rows > 0 &&
           BLOCKS * sizeof(fused_tile::shared) <= gpu.shared_bytes &&
           p->longest <= (size_t)gpu.multiprocessors * BLOCKS * TILE_ROWS;
}

static enum status launch(const struct attention_backward_problem *p, void *scratch,
                          const struct gpu_limits &gpu, device_stream stream, struct error *error) {
    constexpr size_t BYTES = sizeof(fused_tile::shared);
    static const cudaError_t allowed = cudaFuncSetAttribute(
        fused_backward, cudaFuncAttributeMaxDynamicSharedMemorySize, (int)BYTES);
    unsigned items = 0, resident = (unsigned)gpu.multiprocessors * BLOCKS;
    if (allowed != cudaSuccess) {
        return error_set(error, STATUS_DEVICE, "attention_backward: %s",
                         cudaGetErrorString(allowed));
    }
    const struct dq_turns turns = dq_turns_in(*p, scratch);
    TRY(count_tiles(p, true, TILE_ROWS, &items, error));
    TRY(attention_query_stats(p, scratch, stream, error));
    TRY(device_set(turns.taken, 0, (1 + p->NH * turns.tiles) * sizeof(unsigned), stream, error));
    cudaLaunchAttribute cooperative = {};
    cooperative.id = cudaLaunchAttributeCooperative;
    cooperative.val.cooperative = 1;
    cudaLaunchConfig_t config = {};
    config.gridDim = items < resident ? items : resident;
    config.blockDim = fused_tile::THREADS;
    config.dynamicSmemBytes = BYTES;
    config.stream = stream;
    config.attrs = &cooperative;
    config.numAttrs = 1;
    (void)cudaLaunchKernelEx(&config, fused_backward, *p, query_stats_in(*p, scratch), turns,
                             items); /* device_launched() reports */
    return device_launched("fused_backward", error);
}

enum status attention_backward_v7_five_products(const struct attention_backward_problem *p,
                                                void *scratch, device_stream stream,
                                                struct error *error) {
    TRY(attention_backward_check(p, error));
    const struct gpu_limits gpu = gpu_limits();
    return is_possible(p, gpu) ? launch(p, scratch, gpu, stream, error)
                               : attention_backward_v6_hopper(p, scratch, stream, error);
}
