/**
 * @file attention_backward_v7_five_products.cu
 * @brief Attention in fp32: one kernel for dq, dk and dv, five products instead of seven.
 *
 * Changes since v4, for heads of up to 64 channels on GPUs with shared memory for two of its
 * blocks: a block that owns keys also computes its part of dq, ds times k, and adds it to dq in
 * memory. The order of these sums is fixed, as in v6: block n begins with its own queries, n, and
 * goes round, so that the blocks of a head are at different tiles at each step, and a semaphore a
 * tile says whose turn it is. The first block of a tile stores, so nothing is cleared. A thread has
 * 8 x 4 of a tile instead of 4 x 4: twelve loads of 16 bytes serve 128 FMAs. Keys and values also
 * lie with a row a channel, so that scores and dp are outer products, too; p makes room for ds, so
 * that two blocks still fit. (With scores as in v4, which multiply the same channel of two vectors,
 * 58% of these FMAs found two operands in one bank of the register file: 0.962 ms instead of 0.902
 * for 16 texts of 512, 12 heads, on an H100.) cp.async copies the next gradients of outputs under
 * dk's product, the next queries under dq's.
 *
 * Why: relieves the FMA units, of two products of seven and of waiting for registers, and shared
 * memory, of a third of its loads.
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

/* A thread has OWNS keys by OTHERS queries of scores, rows of 4 channels of gradients. */
struct fused_tile : flash_tile<64, TILE_ROWS, TILE_ROWS, 128, 8> {
    struct shared {
        float keys_t[HS][P_PITCH], values_t[HS][P_PITCH]; /* a row a channel */
        float keys[OWN][PITCH];
        float queries[OTHER][PITCH], dout[OTHER][PITCH];
        float weights[OTHER][P_PITCH]; /* p, then ds: a row a query */
        float lse[OTHER], delta[OTHER];
    };
};

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

/* Loads the block's own rows of a head, a row a channel; rows and channels beyond the end: 0. */
static __device__ __forceinline__ void load_transposed(float (*to)[fused_tile::P_PITCH],
                                                       const float *from, size_t stride, int first,
                                                       int T, int channels) {
    constexpr int STEP = 4 * fused_tile::THREADS / TILE_ROWS;
    int row = (int)threadIdx.x % TILE_ROWS;
    const float *at = from + (size_t)(first + row) * stride;
#pragma unroll
    for (int i = 0; i < fused_tile::HS; i += STEP) {
        int channel = i + (int)threadIdx.x / TILE_ROWS * 4;
        float4 x = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
        if (first + row < T && channel < channels) {
            x = *(const float4 *)(at + channel);
        }
        to[channel][row] = x.x;
        to[channel + 1][row] = x.y;
        to[channel + 2][row] = x.z;
        to[channel + 3][row] = x.w;
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
        start_rows(tile.queries, q.x, q.x_stride, first_query(s, step.number), s.T, (int)p.HS);
    }

    /* The gradients of a step's outputs, and lse and delta. */
    __device__ __forceinline__ void start_gradients(const struct query_step &step) const {
        const struct operands<float> q = query_operands<float>(p, s.start, step.head);
        int first = first_query(s, step.number), row = (int)threadIdx.x % TILE_ROWS;
        start_rows(tile.dout, q.y, q.y_stride, first, s.T, (int)p.HS);
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

typedef float pairs[fused_tile::OTHERS][fused_tile::OWNS];

/* sums[j][i] = row group + GROUPS j of `rows`, times own row 4 lane + i: an outer product for each
   channel, so that of an FMA's operands one stays from the FMA before, and two are in two banks of
   the register file. */
static __device__ __forceinline__ void multiply_own(pairs &sums,
                                                    const float (*rows)[fused_tile::PITCH],
                                                    const float (*own)[fused_tile::P_PITCH]) {
    int lane = fused_tile::lane(), group = fused_tile::group();
#pragma unroll
    for (int i = 0; i < fused_tile::OTHERS * fused_tile::OWNS; i++) {
        sums[i / fused_tile::OWNS][i % fused_tile::OWNS] = 0.0f;
    }
#pragma unroll 2
    for (int c = 0; c < fused_tile::HS; c += 4) {
        float b[fused_tile::OTHERS][4];
#pragma unroll
        for (int j = 0; j < fused_tile::OTHERS; j++) {
            load_floats(b[j], &rows[group + fused_tile::GROUPS * j][c]);
        }
#pragma unroll
        for (int q = 0; q < 4; q++) {
            float a[fused_tile::OWNS];
            load_floats(a, &own[c + q][4 * lane]);
#pragma unroll
            for (int j = 0; j < fused_tile::OTHERS; j++) {
#pragma unroll
                for (int n = 0; n < fused_tile::OWNS; n++) {
                    int i = j % 2 == 0 ? n : fused_tile::OWNS - 1 - n;
                    sums[j][i] += b[j][q] * a[i];
                }
            }
        }
    }
}

/* p and ds of a tile, from scores and dp; other: its first row. */
static __device__ __forceinline__ void soften(const struct fused_block &b, int other, pairs &scores,
                                              pairs &dp) {
#pragma unroll
    for (int j = 0; j < fused_tile::OTHERS; j++) {
        int t = fused_tile::group() + fused_tile::GROUPS * j;
        float lse = b.tile.lse[t], delta = b.tile.delta[t];
#pragma unroll
        for (int i = 0; i < fused_tile::OWNS; i++) {
            int own = b.s.first + 4 * fused_tile::lane() + i;
            float weight = exp2_approx(scores[j][i] * (b.p.scale * LOG2_E) - lse);
            weight = is_visible<true>(own, other + t, b.s.T, b.p.causal) ? weight : 0.0f;
            scores[j][i] = weight;
            dp[j][i] = weight * (dp[j][i] - delta);
        }
    }
}

static __device__ __forceinline__ void store_weights(fused_tile::shared &tile,
                                                     const pairs &weights) {
#pragma unroll
    for (int j = 0; j < fused_tile::OTHERS; j++) {
        float *to =
            &tile.weights[fused_tile::group() + fused_tile::GROUPS * j][4 * fused_tile::lane()];
        *(float4 *)to = make_float4(weights[j][0], weights[j][1], weights[j][2], weights[j][3]);
    }
}

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
            load_floats(k[i], &tile.keys[key + i][4 * lane]);
        }
#pragma unroll
        for (int j = 0; j < fused_tile::OTHERS; j++) {
            float ds[4];
            load_floats(ds, &tile.weights[group + fused_tile::GROUPS * j][key]);
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
    start_rows(tile.keys, own.x, own.x_stride, s.first, s.T, (int)p.HS);
    b.start_gradients(step);
    b.start_queries(step);
    load_transposed(tile.keys_t, own.x, own.x_stride, s.first, s.T, (int)p.HS);
    load_transposed(tile.values_t, own.y, own.y_stride, s.first, s.T, (int)p.HS);
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
        pairs weights, ds; /* scores, dp first */
        multiply_own(weights, tile.queries, tile.keys_t);
        multiply_own(ds, tile.dout, tile.values_t);
        soften(b, first, weights, ds);
        store_weights(tile, weights);
        __syncthreads();
        add_products<fused_tile>(dv, tile.weights, tile.dout);
        __syncthreads();
        store_weights(tile, ds);
        if (more) {
            b.start_gradients(next);
        }
        __syncthreads();
        add_products<fused_tile>(dk, tile.weights, tile.queries);
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
