#include "grader/selftest/honest_ways.h"
#include "labs/09_kv_cache/kv_cache.h"

enum status __real_kv_linear(const struct kv_linear *linear, device_stream stream,
                             struct error *error);
enum status __wrap_kv_linear(const struct kv_linear *linear, device_stream stream,
                             struct error *error);
enum status __real_kv_attention(const struct kv_attention *attention, void *workspace,
                                device_stream stream, struct error *error);
enum status __wrap_kv_attention(const struct kv_attention *attention, void *workspace,
                                device_stream stream, struct error *error);

struct kv_linear_arguments {
    const struct kv_linear *linear;
};

static enum status do_kv_linear(const void *arguments, device_stream stream, struct error *error) {
    const struct kv_linear_arguments *a = arguments;
    return __real_kv_linear(a->linear, stream, error);
}

enum status __wrap_kv_linear(const struct kv_linear *linear, device_stream stream,
                             struct error *error) {
    const struct kv_linear_arguments a = {linear};
    return honest_around(do_kv_linear, &a, stream, true, error);
}

struct kv_attention_arguments {
    const struct kv_attention *attention;
    void *workspace;
};

static enum status do_kv_attention(const void *arguments, device_stream stream,
                                   struct error *error) {
    const struct kv_attention_arguments *a = arguments;
    return __real_kv_attention(a->attention, a->workspace, stream, error);
}

enum status __wrap_kv_attention(const struct kv_attention *attention, void *workspace,
                                device_stream stream, struct error *error) {
    const struct kv_attention_arguments a = {attention, workspace};
    return honest_around(do_kv_attention, &a, stream, true, error);
}
