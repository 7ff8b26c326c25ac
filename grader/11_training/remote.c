#include "grader/11_training/remote.h"

#include "grader/11_training/calls.h"
#include "grader/isolation/remote.h"

static enum status remote_layernorm_backward(const struct layernorm_backward_problem *problem,
                                             void *workspace, device_stream stream,
                                             struct error *error) {
    struct layernorm_backward_call call = {*problem, workspace, stream};
    return remote_call("layernorm_backward", &call, sizeof call, error);
}

enum status remote_attention_backward_problem(struct attention_backward_problem *problem,
                                              struct error *error) {
    void *starts;
    TRY(remote_copy(&starts, problem->host_starts, (problem->B + 1) * sizeof *problem->host_starts,
                    error));
    problem->host_starts = starts;
    return STATUS_OK;
}

static enum status remote_attention_backward(const struct attention_backward_problem *problem,
                                             void *scratch, device_stream stream,
                                             struct error *error) {
    struct attention_backward_call call = {*problem, scratch, stream};
    TRY(remote_attention_backward_problem(&call.problem, error));
    return remote_call("attention_backward", &call, sizeof call, error);
}

static enum status remote_adamw(const struct adamw_problem *problem, device_stream stream,
                                struct error *error) {
    struct adamw_call call = {*problem, stream};
    return remote_call("adamw", &call, sizeof call, error);
}

const struct training_functions remote_training = {
    .layernorm_backward = remote_layernorm_backward,
    .attention_backward = remote_attention_backward,
    .adamw = remote_adamw,
};
