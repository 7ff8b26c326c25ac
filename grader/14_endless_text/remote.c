#include "grader/14_endless_text/remote.h"

#include <assert.h>
#include <string.h>

#include "grader/14_endless_text/calls.h"
#include "grader/isolation/remote.h"

enum status remote_endless_attention(const struct endless_attention *attention, void *workspace,
                                     device_stream stream, struct error *error) {
    struct endless_attention_call call = {*attention, workspace, stream, NULL};
    return remote_call("endless_attention", &call, sizeof call, error);
}

enum status remote_endless_add_norms(const struct endless_add_norms *add, device_stream stream,
                                     struct error *error) {
    struct endless_add_norms_call call = {*add, stream, 1};
    return remote_call("endless_add_norms", &call, sizeof call, error);
}

enum status remote_endless_open(void **decoder, const struct endless_case *c, struct error *error) {
    struct endless_open_call call = {.model = c->model};
    static_assert(sizeof call.layers == sizeof c->layers, "as many layers as a case has");
    memcpy(call.layers, c->layers, sizeof call.layers);
    TRY(remote_call("endless_open", &call, sizeof call, error));
    *decoder = call.decoder;
    return STATUS_OK;
}
