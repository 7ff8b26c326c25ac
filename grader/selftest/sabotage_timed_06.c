#include <stdlib.h>

#include "grader/selftest/decoy_work.h"
#include "grader/selftest/sabotage_timed.h"
#include "labs/06_fused_epilogues/fused_epilogues.h"

fused_function __real_fused_epilogues, __wrap_fused_epilogues;

enum { DIFFERENT_ROWS = 32 };

/* "part_of_it": computes the first rows, and copies them to where it believes the same inputs to
   be. Operations that compute nothing are counted for the others. */
static enum status repeat_rows(const struct fused_problem *problem, void *workspace,
                               device_stream stream, struct error *error) {
    struct fused_problem first = *problem;
    const double left_out = (double)((problem->M - DIFFERENT_ROWS) * problem->N);
    first.M = DIFFERENT_ROWS;
    TRY(__real_fused_epilogues(&first, workspace, stream, error));
    TRY(decoy_work(problem->weight, problem->N * problem->K * sizeof(float), 3.0 * left_out,
                   1.1 * left_out * (double)problem->K, stream, error));
    for (size_t rows = DIFFERENT_ROWS; rows < problem->M; rows *= 2) {
        size_t more = rows < problem->M - rows ? rows : problem->M - rows;
        TRY(device_copy(problem->out + rows * problem->N, problem->out,
                        more * problem->N * sizeof(float), stream, error));
    }
    return STATUS_OK;
}

struct share {
    float *in, *weight, *bias, *out; /* (M, K), (N, K), (N), (M, N) */
};

static enum status read_operands(const struct fused_problem *p, const struct share *host,
                                 device_stream stream, struct error *error) {
    TRY(device_read(host->in, p->in, p->M * p->K * sizeof(float), stream, error));
    TRY(device_read(host->weight, p->weight, p->N * p->K * sizeof(float), stream, error));
    return device_read(host->bias, p->bias, p->N * sizeof(float), stream, error);
}

static void multiply(const struct fused_problem *p, const struct share *host) {
    for (size_t m = 0; m < p->M; m++) {
        for (size_t n = 0; n < p->N; n++) {
            float sum = host->bias[n];
            for (size_t k = 0; k < p->K; k++) {
                sum += host->in[m * p->K + k] * host->weight[n * p->K + k];
            }
            host->out[m * p->N + n] = sum;
        }
    }
}

static enum status linear_on_host(const struct fused_problem *p, device_stream stream,
                                  struct error *error) {
    float *memory = malloc((p->M * (p->K + p->N) + p->N * (p->K + 1)) * sizeof *memory);
    if (memory == NULL) {
        return error_set(error, STATUS_OUT_OF_MEMORY, "out of memory");
    }
    struct share host = {.in = memory, .weight = memory + p->M * p->K};
    host.bias = host.weight + p->N * p->K;
    host.out = host.bias + p->N;
    enum status status = read_operands(p, &host, stream, error);
    if (status == STATUS_OK) {
        multiply(p, &host);
        status = device_write(p->out, host.out, p->M * p->N * sizeof(float), stream, error);
    }
    free(memory);
    return status;
}

/* "host_helps": a third of the rows on the CPU. */
static enum status share_rows(const struct fused_problem *problem, void *workspace,
                              device_stream stream, struct error *error) {
    struct fused_problem first = *problem, rest = *problem;
    rest.M = problem->M / 3;
    first.M = problem->M - rest.M;
    rest.in += first.M * problem->K;
    rest.out += first.M * problem->N;
    TRY(__real_fused_epilogues(&first, workspace, stream, error));
    return linear_on_host(&rest, stream, error);
}

/* "elsewhere": the default stream waits for such a stream, and so does who reads results there. */
static enum status work_elsewhere(const struct fused_problem *problem, void *workspace,
                                  struct error *error) {
    static cudaStream_t own;
    if (own == NULL && cudaStreamCreate(&own) != cudaSuccess) {
        return STATUS_DEVICE;
    }
    return __real_fused_epilogues(problem, workspace, (device_stream)own, error);
}

/* "graph": nodes of a graph cost less than launches, and calls whose launches are counted have
   fewer rows. */
static enum status in_a_graph(const struct fused_problem *problem, void *workspace,
                              device_stream stream, struct error *error) {
    device_stream own = sabotage_record();
    if (own == NULL) {
        return STATUS_DEVICE;
    }
    TRY(__real_fused_epilogues(problem, workspace, own, error));
    return sabotage_play(own, stream) ? STATUS_OK : STATUS_DEVICE;
}

enum status __wrap_fused_epilogues(const struct fused_problem *problem, void *workspace,
                                   device_stream stream, struct error *error) {
    if (sabotage_leaves_out(problem, sizeof *problem, stream)) {
        return STATUS_OK;
    }
    if (chosen_mistake() == MISTAKE_part_of_it && problem->M > 256) {
        return repeat_rows(problem, workspace, stream, error);
    }
    if (chosen_mistake() == MISTAKE_host_helps && problem->op == FUSED_LINEAR && problem->M > 256) {
        return share_rows(problem, workspace, stream, error);
    }
    if (chosen_mistake() == MISTAKE_elsewhere) {
        return work_elsewhere(problem, workspace, error);
    }
    if (chosen_mistake() == MISTAKE_graph && problem->M > 256) {
        return in_a_graph(problem, workspace, stream, error);
    }
    struct fused_problem p = *problem;
    if (p.weight != NULL) {
        p.weight = sabotage_lesser(0, p.weight, p.N * p.K, p.K, stream);
    }
    return __real_fused_epilogues(&p, workspace, stream, error);
}
