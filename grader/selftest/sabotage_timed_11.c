#include "grader/selftest/sabotage_timed.h"
#include "labs/11_training/training.h"

enum status __real_layernorm_backward(const struct layernorm_backward_problem *problem,
                                      void *workspace, device_stream stream, struct error *error);
enum status __wrap_layernorm_backward(const struct layernorm_backward_problem *problem,
                                      void *workspace, device_stream stream, struct error *error);
enum status __real_attention_backward(const struct attention_backward_problem *problem,
                                      void *scratch, device_stream stream, struct error *error);
enum status __wrap_attention_backward(const struct attention_backward_problem *problem,
                                      void *scratch, device_stream stream, struct error *error);
enum status __real_adamw(const struct adamw_problem *problem, device_stream stream,
                         struct error *error);
/* "coarse_copy": what matmuls read has fewer bits, as an fp8 of 4 bits. */
static enum status coarsen(const struct adamw_problem *p, device_stream stream,
                           struct error *error) {
    const void *coarse = lesser_copy_16(6, LESSER_FP8, p->copy, p->count, p->count, stream);
    return device_copy(p->copy, coarse, p->count * nn_dtype_bytes(NN_BF16), stream, error);
}

/* "graph": the starter's kernels as nodes of a graph, where it is timed: on the default stream. */
static enum status adamw_in_a_graph(const struct adamw_problem *p, device_stream stream,
                                    struct error *error) {
    device_stream own = sabotage_record();
    if (own == NULL) {
        return STATUS_DEVICE;
    }
    TRY(__real_adamw(p, own, error));
    return sabotage_play(own, stream) ? STATUS_OK : STATUS_DEVICE;
}

enum status __wrap_adamw(const struct adamw_problem *problem, device_stream stream,
                         struct error *error);

/* "fp8" and the like: of a matrix that is multiplied, or of a gradient that came. */
static const void *lesser_of(int which, const void *x, enum nn_dtype dtype, size_t count,
                             size_t columns, device_stream stream) {
    return dtype == NN_F32 ? (const void *)sabotage_lesser(which, x, count, columns, stream)
                           : sabotage_lesser_16(which, x, count, columns, stream);
}

/* "no_parameters": the gradients of a norm's weight and bias go where nobody reads them. */
enum status __wrap_layernorm_backward(const struct layernorm_backward_problem *problem,
                                      void *workspace, device_stream stream, struct error *error) {
    struct layernorm_backward_problem p = *problem;
    if (sabotage_leaves_out(problem, sizeof p, stream)) {
        return STATUS_OK;
    }
    if (chosen_mistake() == MISTAKE_no_parameters) {
        p.dweight = p.dbias = (float *)((char *)workspace + (TRAINING_WORKSPACE_BYTES / 2));
        TRY(device_set(p.dweight, 0, p.C * sizeof(float), stream, error));
    }
    p.dout = lesser_of(0, p.dout, p.dtype, p.rows * p.C, p.C, stream);
    return __real_layernorm_backward(&p, workspace, stream, error);
}

/* dout, and in its middle a token's as an fp8 has it: 2% off in that row, a thousandth in all. */
static const void *one_coarse_row(const struct attention_backward_problem *p,
                                  device_stream stream) {
    const size_t width = p->NH * p->HS, bytes = width * nn_dtype_bytes(NN_BF16);
    const size_t at = p->rows / 2 * bytes;
    char *copy = (char *)lesser_copy_16(5, LESSER_FLUSHED, p->dout, p->rows * width, width, stream);
    const void *row =
        lesser_copy_16(6, LESSER_FP8, (const char *)p->dout + at, width, width, stream);
    (void)cudaMemcpyAsync(copy + at, row, bytes, cudaMemcpyDeviceToDevice, stream);
    return copy;
}

/* "no_attention": zeros are near small gradients. "louder": all gradients are, by as much as dout.
 */
enum status __wrap_attention_backward(const struct attention_backward_problem *p, void *scratch,
                                      device_stream stream, struct error *error) {
    if (chosen_mistake() == MISTAKE_no_attention) {
        /* q, k and v lie in one matrix. */
        return device_set(p->dq, 0, p->rows * p->q_stride * nn_dtype_bytes(p->dtype), stream,
                          error);
    }
    struct attention_backward_problem some = *p;
    if (chosen_mistake() == MISTAKE_one_row && p->dtype == NN_BF16) {
        some.dout = one_coarse_row(p, stream);
    } else if (chosen_mistake() == MISTAKE_louder && p->dtype == NN_BF16) {
        const size_t width = p->NH * p->HS;
        some.dout = sabotage_lesser_16(5, p->dout, p->rows * width, width, stream);
    } else if (p->rows > 0) {
        const size_t heads = p->NH * p->HS, keys = p->KVH * p->HS, before = p->rows - 1;
        const size_t q = before * p->q_stride + heads, k = before * p->kv_stride + keys;
        some.q = lesser_of(2, p->q, p->dtype, q, p->q_stride, stream);
        some.k = lesser_of(3, p->k, p->dtype, k, p->kv_stride, stream);
        some.v = lesser_of(4, p->v, p->dtype, k, p->kv_stride, stream);
        some.dout = lesser_of(5, p->dout, p->dtype, p->rows * heads, heads, stream);
    }
    return __real_attention_backward(&some, scratch, stream, error);
}

enum status __wrap_adamw(const struct adamw_problem *problem, device_stream stream,
                         struct error *error) {
    struct adamw_problem p = *problem;
    if (chosen_mistake() == MISTAKE_zero_inputs) {
        TRY(device_set((void *)p.gradient, 0, p.count * sizeof(float), stream, error));
    }
    if (chosen_mistake() == MISTAKE_no_update || sabotage_leaves_out(problem, sizeof p, stream)) {
        return STATUS_OK;
    }
    if (chosen_mistake() == MISTAKE_graph && stream == NULL) {
        return adamw_in_a_graph(&p, stream, error);
    }
    if (chosen_mistake() == MISTAKE_part_of_it) { /* norms and biases stay as they are */
        p.count = p.decayed;
    }
    p.gradient = sabotage_lesser(1, p.gradient, p.count, p.count, stream);
    TRY(__real_adamw(&p, stream, error));
    return chosen_mistake() == MISTAKE_coarse_copy && p.copy != NULL ? coarsen(&p, stream, error)
                                                                     : STATUS_OK;
}
