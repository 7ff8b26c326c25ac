#include "grader/selftest/honest_ways.h"
#include "labs/07_attention/attention.h"

enum status __real_attention(const struct attention_problem *problem, device_stream stream,
                             struct error *error);
enum status __wrap_attention(const struct attention_problem *problem, device_stream stream,
                             struct error *error);

struct attention_arguments {
    const struct attention_problem *problem;
};

static enum status do_attention(const void *arguments, device_stream stream, struct error *error) {
    const struct attention_arguments *a = arguments;
    return __real_attention(a->problem, stream, error);
}

enum status __wrap_attention(const struct attention_problem *problem, device_stream stream,
                             struct error *error) {
    const struct attention_arguments a = {problem};
    return honest_around(do_attention, &a, stream, true, error);
}
