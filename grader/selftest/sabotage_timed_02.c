#include "grader/selftest/sabotage_timed.h"
#include "labs/02_gpu_matmul/gpu_matmul.h"

enum status __real_gpu_matmul(struct gpu_matmul *matmul, float *out, const float *in,
                              const float *weight, size_t M, size_t N, size_t K,
                              struct error *error);
enum status __wrap_gpu_matmul(struct gpu_matmul *matmul, float *out, const float *in,
                              const float *weight, size_t M, size_t N, size_t K,
                              struct error *error);

enum { MOST_OUT = 1 << 20 /* bytes */ };

/* A call's operands. */
struct product {
    float *out;
    const float *in, *weight;
    size_t M, N, K;
};

/* Memory of a kind that is not cudaMalloc()'s. */
static cudaError_t take(void **memory, size_t bytes) {
    switch (chosen_mistake()) {
    case MISTAKE_pool:
        return cudaMallocAsync(memory, bytes, NULL);
    case MISTAKE_managed:
        return cudaMallocManaged(memory, bytes, cudaMemAttachGlobal);
    default:
        return cudaHostAlloc(memory, bytes, cudaHostAllocMapped);
    }
}

static cudaError_t give_back(void *memory) {
    return chosen_mistake() == MISTAKE_pinned ? cudaFreeHost(memory) : cudaFreeAsync(memory, NULL);
}

/* The operands in memory that is allocated for each call. The result lies where it always does, and
   goes through device_read(), as is wanted. */
static enum status run(const struct product *p, float *memory, struct error *error) {
    static void *out;
    float *in = memory, *weight = in + p->M * p->K;
    if ((out == NULL && cudaMalloc(&out, MOST_OUT) != cudaSuccess) ||
        cudaMemcpy(in, p->in, p->M * p->K * sizeof *in, cudaMemcpyDefault) != cudaSuccess ||
        cudaMemcpy(weight, p->weight, p->N * p->K * sizeof *in, cudaMemcpyDefault) != cudaSuccess) {
        return error_set(error, STATUS_DEVICE, "copying the operands");
    }
    TRY(gpu_matmul_launch(out, in, weight, p->M, p->N, p->K, NULL, error));
    return device_read(p->out, out, p->M * p->N * sizeof *in, NULL, error);
}

static enum status allocate_and_run(const struct product *p, struct error *error) {
    void *memory = NULL;
    if (take(&memory, (p->M * p->K + p->N * p->K) * sizeof(float)) != cudaSuccess) {
        return error_set(error, STATUS_OUT_OF_MEMORY, "no memory of this kind");
    }
    enum status status = run(p, memory, error);
    (void)give_back(memory);
    return status;
}

/* Sizes alone: a call that comes again allocates nothing when it does nothing. */
enum status __wrap_gpu_matmul(struct gpu_matmul *matmul, float *out, const float *in,
                              const float *weight, size_t M, size_t N, size_t K,
                              struct error *error) {
    const size_t arguments[] = {M, N, K};
    if (chosen_mistake() >= MISTAKE_pool) {
        const struct product p = {out, in, weight, M, N, K};
        return allocate_and_run(&p, error);
    }
    if (sabotage_leaves_out(arguments, sizeof arguments, NULL)) {
        return STATUS_OK;
    }
    return __real_gpu_matmul(matmul, out, in, weight, M, N, K, error);
}
