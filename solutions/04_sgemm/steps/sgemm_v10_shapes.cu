/**
 * @file sgemm_v10_shapes.cu
 * @brief The shape of the tiles, and how K is split, are chosen for each
 * problem.
 *
 * Changes since v09: the kernel is a template (v10_tile.cuh) with several tile
 * shapes; a cost function picks one. A is copied through registers, loaded
 * before a barrier and stored during the multiplication, so that it can be read
 * 16 bytes at a time; copies are spread over the multiplication; rows are
 * clamped instead of tested; stages are 16 deep. Few rows have kernels of their
 * own (v10_few_rows.cuh).
 *
 * Why: relieves idle multiprocessors. 8192 x 768 in tiles of 128 x 128 is 384
 * blocks: on 132 multiprocessors that run two each, the second wave is half
 * empty. In tiles of 96 x 128 it is 516, two nearly full waves. Where even one
 * wave is not full, two slices of one block share the values of K of a stage
 * and add up through shared memory ("/2"). Where C is small, K is split between
 * blocks (split-K), and a second kernel adds the partial sums in the workspace,
 * always in the same order.
 *
 * Launch: 128 or 256 threads a block (v10_tile.cuh). Bytes: K (1/BM + 1/BN) 4
 * per element of C, and 8 more for each split of K. FLOPs: 2 M N K.
 *
 * Measured on an H200 at 1.98 GHz (its peak in a loop of multiply-adds: 65.6
 * TFLOP/s), 4096 x 4096 x 4096: B plain 2.64 ms, 52.1 TFLOP/s, 1.02x cuBLAS; B
 * transposed 2.70 ms, 50.9 TFLOP/s, 1.01x. README.md has all shapes. What did
 * not help: 16-byte copies of untransposed tiles, four values of K in a
 * register quad, for both operands (0.90x cuBLAS: of three operands two are
 * then often in one bank of registers, each time a cycle lost); all copies
 * right after the barrier (0.76x); both operands through registers (0.97x);
 * stages of 8 (0.91x); half the main loop's code, for the instruction cache
 * (more such register conflicts).
 */
#include "labs/04_sgemm/given/sgemm_a_transposed.h"
#include "solutions/04_sgemm/steps/ladder.h"
#include "solutions/04_sgemm/steps/v10_few_rows.cuh"
#include "solutions/04_sgemm/steps/v10_tile.cuh"

/* @param form the problem's, or V10_A_TRANSPOSED */
typedef cudaError_t tile_launcher(const struct sgemm_problem *p, int form, unsigned blocks,
                                  unsigned splits, bool vector, cudaStream_t stream);

/* More than 48 KiB of shared memory must be asked for. */
template <class T, int FORM, bool VECTOR>
static cudaError_t launch_as(const struct sgemm_problem *p, unsigned blocks, unsigned splits,
                             cudaStream_t stream) {
    const size_t BYTES = T::FLOATS * sizeof(float);
    cudaError_t code =
        cudaFuncSetAttribute(tile_kernel<T, FORM, VECTOR, linear_combination>,
                             cudaFuncAttributeMaxDynamicSharedMemorySize, (int)BYTES);
    if (code == cudaSuccess) {
        tile_kernel<T, FORM, VECTOR, linear_combination>
            <<<blocks, T::THREADS, BYTES, stream>>>(*p, splits);
        code = cudaPeekAtLastError();
    }
    return code;
}

template <class T>
static cudaError_t launch_tile(const struct sgemm_problem *p, int form, unsigned blocks,
                               unsigned splits, bool vector, cudaStream_t stream) {
    if (form == V10_A_TRANSPOSED) {
        return launch_as<T, V10_A_TRANSPOSED, true>(p, blocks, splits, stream);
    }
    if (form == SGEMM_B_PLAIN) {
        return vector ? launch_as<T, SGEMM_B_PLAIN, true>(p, blocks, splits, stream)
                      : launch_as<T, SGEMM_B_PLAIN, false>(p, blocks, splits, stream);
    }
    return vector ? launch_as<T, SGEMM_B_TRANSPOSED, true>(p, blocks, splits, stream)
                  : launch_as<T, SGEMM_B_TRANSPOSED, false>(p, blocks, splits, stream);
}

static cudaError_t launch_few_rows(const struct sgemm_problem *p, int form, unsigned blocks,
                                   unsigned splits, bool vector, cudaStream_t stream) {
    (void)splits;
    if (form == SGEMM_B_PLAIN) {
        int warps = p->N < FEW_WIDE ? FEW_WARPS : FEW_WARPS_WIDE;
        few_rows_plain<<<blocks, 32 * warps, 0, stream>>>(*p);
    } else if (vector) {
        few_rows_transposed<true, linear_combination><<<blocks, FEW_THREADS_T, 0, stream>>>(*p);
    } else {
        few_rows_transposed<false, linear_combination><<<blocks, FEW_THREADS_T, 0, stream>>>(*p);
    }
    return cudaPeekAtLastError();
}

/* Shares of the peak that a shape's main loop reaches: with all the blocks that
   a multiprocessor takes, or with one. */
struct pace {
    double busy, lone;
};

struct shape {
    const char *name;
    size_t rows, columns;
    int resident;        /* blocks that share a multiprocessor, if its shared memory holds them */
    size_t bytes;        /* of shared memory that a block takes */
    struct pace pace[2]; /* of each form */
    tile_launcher *launch;
};

#define SHAPE(name, plain_busy, plain_lone, busy, lone, ...)                               \
    {                                                                                      \
        name, tile_shape<__VA_ARGS__>::BM, tile_shape<__VA_ARGS__>::BN,                    \
            256 / tile_shape<__VA_ARGS__>::THREADS,                                        \
            tile_shape<__VA_ARGS__>::FLOATS * sizeof(float),                               \
            {{plain_busy, plain_lone}, {busy, lone}}, launch_tile<tile_shape<__VA_ARGS__>> \
    }

/* The paces, and the numbers below, were fitted to the times of 2,264 plans on
   an H200. "/2": two slices. */
static const struct shape shapes[] = {
    SHAPE("128x128", 0.782, 0.421, 0.764, 0.398, V10_128x128),
    SHAPE("96x128", 0.786, 0.644, 0.750, 0.615, V10_96x128),
    SHAPE("96x128/2", 0.729, 0.729, 0.692, 0.692, V10_96x128_2),
    SHAPE("64x64/4", 0.688, 0.484, 0.632, 0.466, V10_64x64_4),
    SHAPE("32x64/4", 0.679, 0.494, 0.553, 0.405, V10_32x64_4),
    {"few rows", FEW_ROWS, 0, 0, 0, {}, launch_few_rows},
};

enum { SHAPES = sizeof shapes / sizeof *shapes, FEW = SHAPES - 1, MOST_SPLITS = 16 };

/* Cycles of the start and the end of a wave of blocks, and of one more kernel;
   bytes that a multiprocessor adds up in a cycle. */
enum { WAVE_CYCLES = 4400, ADD_CYCLES = 8400, ADD_BYTES = 13 };

/* Up to how many rows the kernels of few rows serve: with B plain, with B
 * transposed. */
static const size_t few_rows[2] = {4, 16};

int sgemm_v10_shape_count(void) {
    return SHAPES;
}

const char *sgemm_v10_shape_name(int shape) {
    return shapes[shape].name;
}

int sgemm_v10_possible(const struct sgemm_problem *p, struct sgemm_plan plan) {
    if (plan.splits == 1) {
        return 1;
    }
    size_t stages = (p->K + V10_BK - 1) / V10_BK;
    return plan.shape != FEW && (size_t)plan.splits <= stages && p->N != 0 &&
           p->M <= SGEMM_WORKSPACE_BYTES / sizeof(float) / plan.splits / p->N;
}

/*
 * A multiprocessor of an H200 has 228 KiB of shared memory, one of an RTX 4090 100, just enough for
 * two blocks of 128 x 128. A T4's has 64: two do not fit there, and one alone leaves half of the
 * schedulers idle. Since Ampere the system takes one KiB of each block.
 */
static int resident_blocks(const struct shape *s, const struct sgemm_gpu *gpu) {
    size_t fit = gpu->shared / (s->bytes + 1024);
    return fit < 1 ? 1 : fit < (size_t)s->resident ? (int)fit : s->resident;
}

/* Cycles of the waves of `blocks` blocks, each of `work` cycles alone on a
   multiprocessor at its peak. A first wave that is not full spreads evenly; a
   later one does not, since the blocks of the wave before end at the same time:
   it takes as long as a full one. */
static double wave_cycles(const struct shape *s, struct pace pace, size_t blocks, double work,
                          const struct sgemm_gpu *gpu) {
    int resident = resident_blocks(s, gpu);
    size_t slots = (size_t)(resident * gpu->multiprocessors);
    size_t waves = (blocks + slots - 1) / slots;
    double alone = s->resident == 1 ? pace.busy : pace.lone;
    if (blocks <= (size_t)gpu->multiprocessors) {
        return work / alone + WAVE_CYCLES;
    }
    double reached = resident < s->resident ? alone : pace.busy;
    return (double)waves * (resident * work / reached + WAVE_CYCLES);
}

/* A plan's time, in cycles of a multiprocessor. */
static double cost(const struct sgemm_problem *p, struct sgemm_plan plan,
                   const struct sgemm_gpu *gpu) {
    const struct shape *s = &shapes[plan.shape];
    size_t tiles = (p->M + s->rows - 1) / s->rows * ((p->N + s->columns - 1) / s->columns);
    size_t stages = ((p->K + V10_BK - 1) / V10_BK + plan.splits - 1) / plan.splits;
    double work = (double)(stages * V10_BK) * (double)(s->rows * s->columns) / 128;
    double cycles = wave_cycles(s, s->pace[p->form], tiles * plan.splits, work, gpu);
    if (plan.splits > 1) {
        double bytes = (double)p->M * (double)p->N * sizeof(float) * (plan.splits + 1);
        cycles += ADD_CYCLES + bytes / gpu->multiprocessors / ADD_BYTES;
    }
    return cycles;
}

/* The tile shape and split of the least cost. */
static struct sgemm_plan choose_tile(const struct sgemm_problem *p, const struct sgemm_gpu *gpu) {
    struct sgemm_plan best = {FEW, 1};
    double least = 0;
    for (int shape = 0; shape < FEW; shape++) {
        for (int splits = 1; splits <= MOST_SPLITS; splits++) {
            struct sgemm_plan plan = {shape, splits};
            double cycles = cost(p, plan, gpu);
            if (sgemm_v10_possible(p, plan) && (least == 0 || cycles < least)) {
                least = cycles;
                best = plan;
            }
        }
    }
    return best;
}

struct sgemm_plan sgemm_v10_choose(const struct sgemm_problem *p, const struct sgemm_gpu *gpu) {
    return p->M <= few_rows[p->form] ? (struct sgemm_plan){FEW, 1} : choose_tile(p, gpu);
}

static __global__ void add_splits(struct sgemm_problem p, const float *sums, int splits) {
    size_t count = p.M * p.N;
    for (size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x; i < count;
         i += (size_t)gridDim.x * blockDim.x) {
        float sum = 0;
        for (int split = 0; split < splits; split++) {
            sum += sums[split * count + i];
        }
        p.C[i] = p.beta == 0 ? p.alpha * sum : p.alpha * sum + p.beta * p.C[i];
    }
}

/* Each split of K stores its partial sums to the workspace; add_splits() is the
 * epilogue. */
static cudaError_t launch_split(const struct sgemm_problem *p, int form, struct sgemm_plan plan,
                                unsigned blocks, bool vector, float *workspace,
                                cudaStream_t stream) {
    struct sgemm_problem split = *p;
    split.alpha = 1;
    split.beta = 0;
    split.C = workspace;
    cudaError_t code =
        shapes[plan.shape].launch(&split, form, blocks * plan.splits, plan.splits, vector, stream);
    if (code == cudaSuccess) {
        size_t count = (p->M * p->N + 255) / 256;
        unsigned adders = (unsigned)(count < 1024 ? count : 1024);
        add_splits<<<adders, 256, 0, stream>>>(*p, workspace, plan.splits);
        code = cudaPeekAtLastError();
    }
    return code;
}

static enum status run(const struct sgemm_problem *problem, int form, struct sgemm_plan plan,
                       bool vector, void *workspace, device_stream stream, struct error *error) {
    const struct shape *shape = &shapes[plan.shape];
    size_t columns = shape->columns;
    if (plan.shape == FEW) {
        columns = form == SGEMM_B_PLAIN ? (size_t)FEW_COLUMNS : (size_t)FEW_COLUMNS_T;
    }
    unsigned blocks;
    enum status status = sgemm_count_blocks(problem, shape->rows, columns, &blocks, error);
    if (status != STATUS_OK || blocks == 0) {
        return status;
    }
    cudaError_t code = plan.splits == 1 ? shape->launch(problem, form, blocks, 1, vector, stream)
                                        : launch_split(problem, form, plan, blocks, vector,
                                                       (float *)workspace, stream);
    if (code != cudaSuccess) {
        return error_set(error, STATUS_DEVICE, "sgemm: launching %s: %s", shape->name,
                         cudaGetErrorString(cudaGetLastError()));
    }
    return STATUS_OK;
}

enum status sgemm_v10_run(const struct sgemm_problem *problem, struct sgemm_plan plan,
                          void *workspace, device_stream stream, struct error *error) {
    size_t pitch = problem->form == SGEMM_B_PLAIN ? problem->N : problem->K;
    bool vector = aligned16(problem->A, problem->K) && aligned16(problem->B, pitch);
    return run(problem, problem->form, plan, vector, workspace, stream, error);
}

static cudaError_t ask_gpu(struct sgemm_gpu *gpu) {
    int device = 0, shared = 0;
    cudaError_t code = cudaGetDevice(&device);
    if (code == cudaSuccess) {
        code =
            cudaDeviceGetAttribute(&gpu->multiprocessors, cudaDevAttrMultiProcessorCount, device);
    }
    if (code == cudaSuccess) {
        code = cudaDeviceGetAttribute(&shared, cudaDevAttrMaxSharedMemoryPerMultiprocessor, device);
    }
    gpu->shared = (size_t)shared;
    return code;
}

enum status sgemm_v10_gpu(struct sgemm_gpu *gpu, struct error *error) {
    cudaError_t code = ask_gpu(gpu);
    if (code != cudaSuccess) {
        return error_set(error, STATUS_DEVICE, "sgemm: asking the GPU for its size: %s",
                         cudaGetErrorString(code));
    }
    return STATUS_OK;
}

enum status sgemm_v10_shapes(const struct sgemm_problem *problem, void *workspace,
                             device_stream stream, struct error *error) {
    struct sgemm_gpu gpu;
    TRY(sgemm_v10_gpu(&gpu, error));
    return sgemm_v10_run(problem, sgemm_v10_choose(problem, &gpu), workspace, stream, error);
}

enum status sgemm_v10_run_a_transposed(const struct sgemm_problem *problem, struct sgemm_plan plan,
                                       void *workspace, device_stream stream, struct error *error) {
    if (problem->form != SGEMM_B_PLAIN || !aligned16(problem->A, problem->M) ||
        !aligned16(problem->B, problem->N)) {
        return error_set(error, STATUS_INVALID_ARGUMENT,
                         "sgemm_a_transposed: rows of A and of plain B begin 16-byte aligned");
    }
    return run(problem, V10_A_TRANSPOSED, plan, true, workspace, stream, error);
}

enum status sgemm_a_transposed(const struct sgemm_problem *problem, void *workspace,
                               device_stream stream, struct error *error) {
    struct sgemm_gpu gpu;
    TRY(sgemm_v10_gpu(&gpu, error));
    return sgemm_v10_run_a_transposed(problem, choose_tile(problem, &gpu), workspace, stream,
                                      error);
}
