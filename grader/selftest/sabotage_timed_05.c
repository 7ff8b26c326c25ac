#include "grader/selftest/sabotage_timed.h"
#include "labs/05_layernorm_softmax/layernorm_softmax.h"

rows_function __real_layernorm_softmax, __wrap_layernorm_softmax;

enum status __wrap_layernorm_softmax(const struct rows_problem *problem, void *workspace,
                                     device_stream stream, struct error *error) {
    if (sabotage_leaves_out(problem, sizeof *problem, stream)) {
        return STATUS_OK;
    }
    return __real_layernorm_softmax(problem, workspace, stream, error);
}
