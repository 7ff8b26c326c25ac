/**
 * @file rows_v6_widths.cu
 * @brief As many threads for a row as it needs: eight lanes, a warp, a block, several blocks.
 *
 * Changes since v5: the threads of a row, and the memory that keeps it, depend on
 * its length:
 *
 *     vectors of 16 bytes   threads                  kept in
 *     up to 32              8 lanes, 4 rows a warp   registers
 *     up to 128             a warp                   registers; no barrier at all
 *     up to 4096            a block                  registers, two barriers
 *     up to some 14,000     a block                  shared memory, the next row in flight
 *     more, or few rows     several blocks           read twice, the second time from L2
 *
 * In 16-bit types blocks have registers for 2048 vectors. A thread has four
 * vectors, or fewer where all rows are on the GPU at once and only their latency
 * counts. Rows that are not aligned are copied through shared memory, as whole
 * vectors and a few elements at the ends; v3 serves very short ones.
 *
 * Why: relieves idle threads in short rows, barriers in middling ones, and
 * registers: with 32 to 40 a thread, a multiprocessor has 24 to 32 KB of loads in
 * flight while other blocks calculate and store. Several blocks a row cost a second
 * launch of some 2 us and a second read. By estimate a block moves 0.1 TB/s, so the
 * split pays from about 128 KB a row on, and only if rows are too few to give each
 * multiprocessor one: 1 x 1,000,000, not 1 x 2560.
 *
 * Launch: see above. Bytes: each element read once, written once; split: read
 * twice. Measured, failures included: README.md.
 */
#include "common/cuda/gpu_limits.cuh"
#include "solutions/05_layernorm_softmax/steps/ladder.h"
#include "solutions/05_layernorm_softmax/steps/v6_plan.h"
#include "solutions/05_layernorm_softmax/steps/vectors.cuh"

enum { WARP = 32, VECTORS = 4, LONG_THREADS = 512, MOST_SPLITS = 1024 };
/* Vectors a row, up to which lanes of a warp do it. */
enum { FOR_EIGHTH = 8 * VECTORS, FOR_WARP = WARP * VECTORS };
/* Up to this many times the rows that are on the GPU at once are few rows. */
enum { FEW_WAVES = 2 };
/* From this many vectors on, a row goes to several blocks if rows are few. */
enum { FOR_SPLIT = 8192 };
/* Vectors of each block of a split row: enough to pay for its launch. */
enum { SPLIT_SHARE = 1024 };
/* Elements of a row without alignment, up to which v3 does it. */
enum { FOR_V3 = 256 };

/* The limits that a plan depends on. */
struct limits {
    int multiprocessors, shared_a_block, shared_each;
};

/* Asked once: a program has one GPU (device_open()). */
static const struct limits &limits() {
    static const struct limits found = {gpu_attribute(cudaDevAttrMultiProcessorCount),
                                        gpu_attribute(cudaDevAttrMaxSharedMemoryPerBlockOptin),
                                        gpu_attribute(cudaDevAttrMaxSharedMemoryPerMultiprocessor)};
    return found;
}

/* Each block also has a KiB of the system's, and the statistics that warps exchange. */
enum { SHARED_BESIDE = 2048 };

size_t rows_v6_blocks_at_once(int shared_bytes, int threads) {
    const struct limits &l = limits();
    int by_shared = l.shared_each / (shared_bytes + SHARED_BESIDE);
    int by_threads = ROWS_SHARED_THREADS_EACH / threads;
    int each = by_shared < by_threads ? by_shared : by_threads;
    return (size_t)(each > 0 ? each : 1) * (size_t)l.multiprocessors;
}

static bool fits_shared(size_t vectors) {
    return vectors * 16 + SHARED_BESIDE <= (size_t)limits().shared_a_block;
}

static int round_to_warps(size_t threads) {
    return (int)((threads + WARP - 1) / WARP * WARP);
}

static struct rows_plan split_plan(size_t rows, size_t vectors) {
    size_t splits = (vectors + SPLIT_SHARE - 1) / SPLIT_SHARE;
    size_t enough = (4 * (size_t)limits().multiprocessors + rows - 1) / rows;
    splits = splits < enough ? splits : enough;
    splits = splits < MOST_SPLITS ? splits : MOST_SPLITS;
    return {ROWS_WAY_SPLIT, LONG_THREADS, (int)splits};
}

/* A block's threads, at most, and those that a multiprocessor holds. */
static int most_threads(enum nn_dtype type) {
    return type == NN_F32 ? ROWS_MOST_THREADS_32 : ROWS_MOST_THREADS_16;
}
static size_t threads_each(enum nn_dtype type) {
    return type == NN_F32 ? ROWS_THREADS_EACH_32 : ROWS_THREADS_EACH_16;
}

/* As many as keep all rows on the GPU at once, at most one for each vector. */
static int threads_at_once(const struct rows_problem &p, size_t vectors) {
    size_t each =
        (p.rows + (size_t)limits().multiprocessors - 1) / (size_t)limits().multiprocessors;
    size_t threads = threads_each(p.type) / each / WARP * WARP;
    int needed = round_to_warps(vectors), most = most_threads(p.type);
    most = needed < most ? needed : most;
    return threads < (size_t)most ? (int)threads : most;
}

/*
 * Four vectors a thread, or fewer where only latency counts: all rows at once. Norms of few rows
 * have two: a thread waits for the weights of one vector after another, longest in the first
 * blocks.
 */
static int block_threads(const struct rows_problem &p, size_t vectors) {
    int least = round_to_warps((vectors + VECTORS - 1) / VECTORS);
    int half = round_to_warps((vectors + 1) / 2), at_once = threads_at_once(p, vectors);
    size_t wave = threads_each(p.type) / (size_t)least * (size_t)limits().multiprocessors;
    if (at_once >= least) {
        return at_once;
    }
    bool latency = p.op != ROWS_SOFTMAX && p.type == NN_F32 && p.rows <= FEW_WAVES * wave;
    return latency && half <= most_threads(p.type) ? half : least;
}

/* Two blocks a multiprocessor, where their rows fit: one calculates while the other waits. */
static int shared_threads(size_t vectors) {
    size_t threads = (vectors + VECTORS - 1) / VECTORS;
    bool two = 2 * (vectors * 16 + SHARED_BESIDE) <= (size_t)limits().shared_each;
    size_t most = two ? ROWS_SHARED_THREADS_EACH / 2 : ROWS_SHARED_THREADS_EACH;
    return round_to_warps(threads < most ? threads : most);
}

struct rows_plan rows_v6_choose(const struct rows_problem *problem) {
    size_t n = vectors_of(*problem), rows = problem->rows;
    bool few = rows * 2 <= (size_t)limits().multiprocessors, aligned = is_aligned(*problem);
    if (aligned && n <= FOR_EIGHTH) {
        return {ROWS_WAY_EIGHTH, ROWS_LANES_BLOCK, 1};
    }
    if (aligned && n <= FOR_WARP) {
        return {ROWS_WAY_WARP, ROWS_LANES_BLOCK, 1};
    }
    if (aligned && n <= VECTORS * (size_t)most_threads(problem->type) && rows <= INT32_MAX) {
        return {ROWS_WAY_BLOCK, block_threads(*problem, n), 1};
    }
    if ((!few || n <= FOR_SPLIT) && fits_shared(n)) {
        return {ROWS_WAY_SHARED, shared_threads(n), 1};
    }
    return split_plan(rows, n);
}

bool rows_v6_possible(const struct rows_problem *problem, struct rows_plan plan) {
    size_t n = vectors_of(*problem), threads = (size_t)plan.threads;
    bool held = is_aligned(*problem) && n <= VECTORS * threads; /* in registers of a block */
    if (plan.threads < WARP || plan.threads > 1024 || plan.threads % WARP != 0) {
        return false;
    }
    switch (plan.way) {
    case ROWS_WAY_EIGHTH:
        return is_aligned(*problem) && n <= FOR_EIGHTH && plan.threads == ROWS_LANES_BLOCK;
    case ROWS_WAY_WARP:
        return is_aligned(*problem) && n <= FOR_WARP && plan.threads == ROWS_LANES_BLOCK;
    case ROWS_WAY_BLOCK:
        return held && problem->rows <= INT32_MAX && plan.threads <= most_threads(problem->type);
    case ROWS_WAY_SHARED:
        return fits_shared(n);
    default:
        return plan.threads <= LONG_THREADS && plan.splits >= 1 && plan.splits <= MOST_SPLITS;
    }
}

enum status rows_v6_with_plan(const struct rows_problem *problem, struct rows_plan plan,
                              void *workspace, device_stream stream, struct error *error) {
    bool empty;
    enum status status = rows_check(problem, &empty, error);
    if (status != STATUS_OK || empty) {
        return status;
    }
    if (!rows_v6_possible(problem, plan)) {
        return error_set(error, STATUS_INVALID_ARGUMENT,
                         "layernorm_softmax: %d threads cannot do a row of %zu this way",
                         plan.threads, problem->C);
    }
    if (problem->type == NN_F32) {
        rows_v6_fp32(*problem, plan, workspace, stream);
    } else if (problem->type == NN_F16) {
        rows_v6_fp16(*problem, plan, workspace, stream);
    } else {
        rows_v6_bf16(*problem, plan, workspace, stream);
    }
    return device_launched("rows_v6_widths", error);
}

enum status rows_v6_widths(const struct rows_problem *problem, void *workspace,
                           device_stream stream, struct error *error) {
    bool empty;
    enum status status = rows_check(problem, &empty, error);
    if (status != STATUS_OK || empty) {
        return status;
    }
    if (problem->C <= FOR_V3 && !is_aligned(*problem)) {
        return rows_v3_warp_two_pass(problem, workspace, stream, error);
    }
    return rows_v6_with_plan(problem, rows_v6_choose(problem), workspace, stream, error);
}
