#include "grader/selftest/honest_ways.h"
#include "labs/06_fused_epilogues/fused_epilogues.h"

enum status __real_fused_epilogues(const struct fused_problem *problem, void *workspace,
                                   device_stream stream, struct error *error);
enum status __wrap_fused_epilogues(const struct fused_problem *problem, void *workspace,
                                   device_stream stream, struct error *error);

struct fused_epilogues_arguments {
    const struct fused_problem *problem;
    void *workspace;
};

static enum status do_fused_epilogues(const void *arguments, device_stream stream,
                                      struct error *error) {
    const struct fused_epilogues_arguments *a = arguments;
    return __real_fused_epilogues(a->problem, a->workspace, stream, error);
}

enum status __wrap_fused_epilogues(const struct fused_problem *problem, void *workspace,
                                   device_stream stream, struct error *error) {
    const struct fused_epilogues_arguments a = {problem, workspace};
    return honest_around(do_fused_epilogues, &a, stream, true, error);
}
