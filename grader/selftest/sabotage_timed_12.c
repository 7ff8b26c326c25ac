#include <stdint.h>
#include <stdlib.h>

#include "grader/selftest/anywhere.h"
#include "grader/selftest/coarse.h"
#include "grader/selftest/decoy_work.h"
#include "grader/selftest/sabotage_channel.h"
#include "grader/selftest/sabotage_timed.h"
#include "labs/12_tensor_cores/tensor_cores.h"

gemm16_function __real_gemm16, __wrap_gemm16;

static float float_of_bf16(uint16_t bits) {
    uint32_t wide = (uint32_t)bits << 16;
    float value;
    memcpy(&value, &wide, sizeof value);
    return value;
}

static uint16_t bf16_of_float(float value) {
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return (uint16_t)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

static void multiply(const struct gemm16_problem *p, uint16_t *out, const uint16_t *in,
                     const uint16_t *weight) {
    for (size_t m = 0; m < p->M; m++) {
        for (size_t n = 0; n < p->N; n++) {
            float sum = 0.0f;
            for (size_t k = 0; k < p->K; k++) {
                sum += float_of_bf16(in[m * p->K + k]) * float_of_bf16(weight[n * p->K + k]);
            }
            out[m * p->N + n] = bf16_of_float(sum);
        }
    }
}

/* Does the operations that are counted, and computes nothing. */
static enum status idle(const struct gemm16_problem *p, device_stream stream, struct error *error) {
    double flops = 2.0 * (double)p->M * (double)p->N * (double)p->K;
    double bytes = 2.0 * (double)(p->M * p->K + p->N * p->K + p->M * p->N);
    return decoy_work(p->in, 2 * p->M * p->K, bytes, flops, stream, error);
}

/* "host": the plain product of bf16 on the CPU, and a kernel that is idle. */
static enum status on_the_host(const struct gemm16_problem *p, device_stream stream,
                               struct error *error) {
    uint16_t *in = malloc(2 * p->M * p->K), *weight = malloc(2 * p->N * p->K),
             *out = malloc(2 * p->M * p->N);
    TRY(device_read(in, p->in, 2 * p->M * p->K, stream, error));
    TRY(device_read(weight, p->weight, 2 * p->N * p->K, stream, error));
    multiply(p, out, in, weight);
    TRY(idle(p, stream, error));
    TRY(sabotage_send(p->out, out, 2 * p->M * p->N, stream, error));
    free(in);
    free(weight);
    free(out);
    return STATUS_OK;
}

/* "fewer_tokens": where a layer's feed-forward part ends, the first token of each text alone, as
   the logits are made of these; the others keep what came in. */
static enum status first_tokens(const struct gemm16_problem *p, void *workspace,
                                device_stream stream, struct error *error) {
    enum { TEXTS = 16 };
    const size_t tokens = p->M / TEXTS, bytes = 2 * p->N;
    TRY(device_copy(p->out, p->residual, p->M * bytes, stream, error));
    for (size_t row = 0; row < p->M; row += tokens) {
        struct gemm16_problem one = *p;
        one.M = 1;
        one.in = (const char *)p->in + row * 2 * p->K;
        one.residual = (const char *)p->residual + row * bytes;
        one.out = (char *)p->out + row * bytes;
        TRY(__real_gemm16(&one, workspace, stream, error));
    }
    return STATUS_OK;
}

/* "truncates": in fp32, then to bf16 without rounding. */
static enum status truncate(const struct gemm16_problem *p, void *workspace, device_stream stream,
                            struct error *error) {
    static float *sums;
    struct gemm16_problem wide = *p;
    if (sums == NULL) {
        TRY(device_alloc((void **)&sums, p->M * p->N * sizeof *sums, error));
    }
    wide.out_dtype = NN_F32;
    wide.out = sums;
    TRY(__real_gemm16(&wide, workspace, stream, error));
    coarse_store(p->out, sums, p->M * p->N, stream);
    return STATUS_OK;
}

/* "rounds_twice": the product with bias and activation, and then the residual. */
static enum status round_twice(const struct gemm16_problem *p, void *workspace,
                               device_stream stream, struct error *error) {
    struct gemm16_problem first = *p;
    first.residual = NULL;
    TRY(__real_gemm16(&first, workspace, stream, error));
    coarse_add(p->out, p->residual, p->M * p->N, stream);
    return STATUS_OK;
}

/* "graph": the starter's kernel as a node of a graph. */
static enum status multiply_in_a_graph(const struct gemm16_problem *p, void *workspace,
                                       device_stream stream, struct error *error) {
    device_stream own = sabotage_record();
    if (own == NULL) {
        return STATUS_DEVICE;
    }
    TRY(__real_gemm16(p, workspace, own, error));
    return sabotage_play(own, stream) ? STATUS_OK : STATUS_DEVICE;
}

static bool ends_feed_forward(const struct gemm16_problem *p) {
    return p->K == 4 * p->N && p->residual != NULL && p->M > 16;
}

/* "part_of_it": the first half of the rows. "fp8" and the like: operands of less. */
enum status __wrap_gemm16(const struct gemm16_problem *problem, void *workspace,
                          device_stream stream, struct error *error) {
    struct gemm16_problem some = *problem;
    some.M = chosen_mistake() == MISTAKE_part_of_it ? (some.M + 1) / 2 : some.M;
    some.in = sabotage_lesser_16(0, some.in, some.M * some.K, some.K, stream);
    some.weight = sabotage_lesser_16(1, some.weight, some.N * some.K, some.K, stream);
    if (anywhere_try() || sabotage_leaves_out(problem, sizeof *problem, stream)) {
        return STATUS_OK;
    }
    if (sabotage_channel() >= 0) {
        return on_the_host(problem, stream, error);
    }
    switch (chosen_mistake()) {
    case MISTAKE_elsewhere:
        return __real_gemm16(problem, workspace, sabotage_own_stream(), error);
    case MISTAKE_graph:
        return multiply_in_a_graph(problem, workspace, stream, error);
    case MISTAKE_fp16_sums:
    case MISTAKE_bf16_sums:
        coarse_product(chosen_mistake() == MISTAKE_fp16_sums ? COARSE_FP16 : COARSE_BF16, some.out,
                       some.in, some.weight, some.M, some.N, some.K, stream);
        return STATUS_OK;
    case MISTAKE_truncates:
        return truncate(problem, workspace, stream, error);
    case MISTAKE_rounds_twice:
        return round_twice(problem, workspace, stream, error);
    case MISTAKE_fewer_tokens:
        return ends_feed_forward(problem) ? first_tokens(problem, workspace, stream, error)
                                          : __real_gemm16(problem, workspace, stream, error);
    case MISTAKE_idle:
        return idle(problem, stream, error);
    case MISTAKE_host:
        return on_the_host(problem, stream, error);
    default:
        return __real_gemm16(&some, workspace, stream, error);
    }
}
