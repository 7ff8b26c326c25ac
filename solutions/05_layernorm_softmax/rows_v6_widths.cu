/**
 * @file rows_v6_widths.cu
 * @brief As many threads for a row as it needs: eight lanes, a warp, a block, several blocks.
 *
 * Changes since v5: who shares a row depends on its length, and where it waits:
 *
 *     vectors of 16 bytes   who                  where
 *     up to 32              8 lanes, 4 rows a warp   registers
 *     up to 256             a warp               registers; no barrier at all
 *     up to 4096            a block              registers, two barriers
 *     up to some 14,000     a block              shared memory, the next row on its way
 *     more, or few rows     several blocks       read twice, the second time from L2
 *
 * Rows that begin anywhere: their whole vectors are still read 16 bytes at a
 * time, only the first and the last one element by element. Of a short row these
 * two are most, and v3 does it; simt models 1024 rows of 33 at 0.0045 ms by v3,
 * 0.0057 ms by vectors.
 *
 * Why: relieves idle threads in short rows and barriers in middling ones; long
 * rows get in flight what a multiprocessor needs. Several blocks a row cost a
 * second launch of some 2 us and a second read. By estimate a block moves 0.1 TB/s,
 * so the split pays from about 128 KB a row on, and only if rows are too few to
 * give each multiprocessor one: 1 x 1,000,000, not 1 x 2560.
 *
 * Launch: see above. Bytes: each element read once, written once; split: read
 * twice.
 */
#include "solutions/05_layernorm_softmax/ladder.h"
#include "solutions/05_layernorm_softmax/v6_plan.h"
#include "solutions/05_layernorm_softmax/vectors.cuh"

enum { WARP = 32, LANES_THREADS = 256, LONG_THREADS = 512, MOST_SPLITS = 1024 };
/* Vectors a row, up to which each way goes. */
enum { FOR_EIGHTH = 32, FOR_WARP = 256, FOR_BLOCK_OF_4 = 2048, FOR_BLOCK = 4096 };
/* Threads of a block with four vectors each, at most. */
enum { MOST_OF_4 = 512 };
/* Each block of a split row should have as much as makes its launch worth while. */
enum { SPLIT_SHARE = 1024 };
/* Elements of a row without alignment, up to which v3 does it. */
enum { FOR_V3 = 256 };

/* What the choice depends on. */
struct limits {
    int multiprocessors, shared_a_block, shared_each, threads_each;
};

static int attribute(enum cudaDeviceAttr which) {
    int value = 0, device = 0;
    if (cudaGetDevice(&device) != cudaSuccess ||
        cudaDeviceGetAttribute(&value, which, device) != cudaSuccess) {
        return 0;
    }
    return value;
}

/* Asked once: a program has one GPU (device_open()). */
static const struct limits &limits() {
    static const struct limits found = {attribute(cudaDevAttrMultiProcessorCount),
                                        attribute(cudaDevAttrMaxSharedMemoryPerBlockOptin),
                                        attribute(cudaDevAttrMaxSharedMemoryPerMultiprocessor),
                                        attribute(cudaDevAttrMaxThreadsPerMultiProcessor)};
    return found;
}

/* Each block also has a KiB of the system's and the parts that warps exchange. */
enum { SHARED_BESIDE = 2048 };

size_t rows_v6_blocks_at_once(int shared_bytes, int threads) {
    const struct limits &l = limits();
    int by_shared = l.shared_each / (shared_bytes + SHARED_BESIDE);
    int by_threads = l.threads_each / threads;
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
    return {ROWS_WAY_SPLIT, 0, LONG_THREADS, (int)splits};
}

struct rows_plan rows_v6_choose(const struct rows_problem *problem) {
    size_t n = vectors_of(*problem), rows = problem->rows;
    bool few = rows * 2 <= (size_t)limits().multiprocessors;
    if (n <= FOR_EIGHTH) {
        return {ROWS_WAY_EIGHTH, n <= 8 ? 1 : 4, LANES_THREADS, 1};
    }
    if (n <= FOR_WARP) {
        return {ROWS_WAY_WARP, n <= 4 * WARP ? 4 : 8, LANES_THREADS, 1};
    }
    if (n <= FOR_BLOCK_OF_4) {
        /* Rows that are on the GPU all at once: their latency counts, and more threads share it. */
        bool at_once = rows <= 2 * (size_t)limits().multiprocessors;
        size_t threads = at_once && n < MOST_OF_4 ? n : at_once ? MOST_OF_4 : (n + 3) / 4;
        return {ROWS_WAY_BLOCK, 4, round_to_warps(threads), 1};
    }
    if (n <= FOR_BLOCK || (few && n <= 2 * FOR_BLOCK)) {
        return {ROWS_WAY_BLOCK, 8, round_to_warps((n + 7) / 8), 1};
    }
    if (!few && fits_shared(n)) {
        return {ROWS_WAY_SHARED, 0, 1024, 1};
    }
    return split_plan(rows, n);
}

bool rows_v6_possible(const struct rows_problem *problem, struct rows_plan plan) {
    size_t n = vectors_of(*problem), held = 0;
    if (plan.threads < WARP || plan.threads > 1024 || plan.threads % WARP != 0) {
        return false;
    }
    switch (plan.way) {
    case ROWS_WAY_EIGHTH:
        held = 8 * (size_t)plan.vectors;
        return n <= held && (plan.vectors == 1 || plan.vectors == 4);
    case ROWS_WAY_WARP:
        held = WARP * (size_t)plan.vectors;
        return n <= held && (plan.vectors == 4 || plan.vectors == 8);
    case ROWS_WAY_BLOCK:
        held = (size_t)plan.threads * (size_t)plan.vectors;
        return n <= held && problem->rows <= INT32_MAX &&
               ((plan.vectors == 4 && plan.threads <= 512) || plan.vectors == 8);
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
                         "layernorm_softmax: %d threads with %d vectors cannot hold a row of %zu",
                         plan.threads, plan.vectors, problem->C);
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
