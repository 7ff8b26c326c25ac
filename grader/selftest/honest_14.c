#include "grader/selftest/honest_ways.h"
#include "labs/14_endless_text/endless_text.h"

enum status __real_endless_attention(const struct endless_attention *attention, void *workspace,
                                     device_stream stream, struct error *error);
enum status __wrap_endless_attention(const struct endless_attention *attention, void *workspace,
                                     device_stream stream, struct error *error);
enum status __real_endless_add_norms(const struct endless_add_norms *add, device_stream stream,
                                     struct error *error);
enum status __wrap_endless_add_norms(const struct endless_add_norms *add, device_stream stream,
                                     struct error *error);

struct attention_arguments {
    const struct endless_attention *attention;
    void *workspace;
};

static enum status do_attention(const void *arguments, device_stream stream, struct error *error) {
    const struct attention_arguments *a = arguments;
    return __real_endless_attention(a->attention, a->workspace, stream, error);
}

enum status __wrap_endless_attention(const struct endless_attention *attention, void *workspace,
                                     device_stream stream, struct error *error) {
    const struct attention_arguments a = {attention, workspace};
    return honest_around(do_attention, &a, stream, true, error);
}

struct add_norms_arguments {
    const struct endless_add_norms *add;
};

static enum status do_add_norms(const void *arguments, device_stream stream, struct error *error) {
    const struct add_norms_arguments *a = arguments;
    return __real_endless_add_norms(a->add, stream, error);
}

enum status __wrap_endless_add_norms(const struct endless_add_norms *add, device_stream stream,
                                     struct error *error) {
    const struct add_norms_arguments a = {add};
    return honest_around(do_add_norms, &a, stream, true, error);
}
