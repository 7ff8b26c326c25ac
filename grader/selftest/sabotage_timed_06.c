#include "grader/selftest/sabotage_timed.h"
#include "labs/06_fused_epilogues/fused_epilogues.h"

fused_function __real_fused_epilogues, __wrap_fused_epilogues;

enum status __wrap_fused_epilogues(const struct fused_problem *problem, void *workspace,
                                   device_stream stream, struct error *error) {
    if (sabotage_leaves_out(problem, sizeof *problem, stream)) {
        return STATUS_OK;
    }
    return __real_fused_epilogues(problem, workspace, stream, error);
}
