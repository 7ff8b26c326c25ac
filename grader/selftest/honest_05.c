#include "grader/selftest/honest_ways.h"
#include "labs/05_layernorm_softmax/layernorm_softmax.h"

enum status __real_layernorm_softmax(const struct rows_problem *problem, void *workspace,
                                     device_stream stream, struct error *error);
enum status __wrap_layernorm_softmax(const struct rows_problem *problem, void *workspace,
                                     device_stream stream, struct error *error);

struct layernorm_softmax_arguments {
    const struct rows_problem *problem;
    void *workspace;
};

static enum status do_layernorm_softmax(const void *arguments, device_stream stream,
                                        struct error *error) {
    const struct layernorm_softmax_arguments *a = arguments;
    return __real_layernorm_softmax(a->problem, a->workspace, stream, error);
}

enum status __wrap_layernorm_softmax(const struct rows_problem *problem, void *workspace,
                                     device_stream stream, struct error *error) {
    const struct layernorm_softmax_arguments a = {problem, workspace};
    return honest_around(do_layernorm_softmax, &a, stream, true, error);
}
