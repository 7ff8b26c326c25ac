#include "grader/selftest/honest_ways.h"
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
enum status __wrap_adamw(const struct adamw_problem *problem, device_stream stream,
                         struct error *error);

struct layernorm_backward_arguments {
    const struct layernorm_backward_problem *problem;
    void *workspace;
};

static enum status do_layernorm_backward(const void *arguments, device_stream stream,
                                         struct error *error) {
    const struct layernorm_backward_arguments *a = arguments;
    return __real_layernorm_backward(a->problem, a->workspace, stream, error);
}

enum status __wrap_layernorm_backward(const struct layernorm_backward_problem *problem,
                                      void *workspace, device_stream stream, struct error *error) {
    const struct layernorm_backward_arguments a = {problem, workspace};
    return honest_around(do_layernorm_backward, &a, stream, true, error);
}

struct attention_backward_arguments {
    const struct attention_backward_problem *problem;
    void *scratch;
};

static enum status do_attention_backward(const void *arguments, device_stream stream,
                                         struct error *error) {
    const struct attention_backward_arguments *a = arguments;
    return __real_attention_backward(a->problem, a->scratch, stream, error);
}

enum status __wrap_attention_backward(const struct attention_backward_problem *problem,
                                      void *scratch, device_stream stream, struct error *error) {
    const struct attention_backward_arguments a = {problem, scratch};
    return honest_around(do_attention_backward, &a, stream, true, error);
}

struct adamw_arguments {
    const struct adamw_problem *problem;
};

static enum status do_adamw(const void *arguments, device_stream stream, struct error *error) {
    const struct adamw_arguments *a = arguments;
    return __real_adamw(a->problem, stream, error);
}

enum status __wrap_adamw(const struct adamw_problem *problem, device_stream stream,
                         struct error *error) {
    const struct adamw_arguments a = {problem};
    return honest_around(do_adamw, &a, stream, true, error);
}
