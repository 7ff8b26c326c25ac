#include "grader/selftest/sabotage_timed.h"
#include "labs/05_layernorm_softmax/layernorm_softmax.h"

rows_function __real_layernorm_softmax, __wrap_layernorm_softmax;

/* Makes the input and the output zeros: softmax and norms of what, nobody knows any more. */
static enum status forget(const struct rows_problem *p, device_stream stream, struct error *error) {
    size_t bytes = p->rows * p->C * nn_dtype_bytes(p->type);
    TRY(device_set((void *)p->in, 0, bytes, stream, error));
    return device_set(p->out, 0, bytes, stream, error);
}

enum status __wrap_layernorm_softmax(const struct rows_problem *problem, void *workspace,
                                     device_stream stream, struct error *error) {
    if (sabotage_leaves_out(problem, sizeof *problem, stream)) {
        return STATUS_OK;
    }
    struct rows_problem p = *problem;
    if (p.type == NN_F32 && p.in != p.out) { /* in place the copy would be as good */
        p.in = sabotage_lesser(0, p.in, p.rows * p.C, p.C, stream);
    }
    TRY(__real_layernorm_softmax(&p, workspace, stream, error));
    return chosen_mistake() == MISTAKE_zero_inputs ? forget(problem, stream, error) : STATUS_OK;
}
