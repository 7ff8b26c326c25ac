#include "grader/09_kv_cache/remote.h"

#include "grader/09_kv_cache/calls.h"
#include "grader/isolation/remote.h"

enum status remote_kv_linear(const struct kv_linear *linear, device_stream stream,
                             struct error *error) {
    struct kv_linear_call call = {*linear, stream};
    return remote_call("kv_linear", &call, sizeof call, error);
}

enum status remote_kv_attention(const struct kv_attention *attention, void *workspace,
                                device_stream stream, struct error *error) {
    struct kv_attention_call call = {*attention, workspace, stream, NULL};
    return remote_call("kv_attention", &call, sizeof call, error);
}
