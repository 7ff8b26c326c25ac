#include "grader/selftest/honest_ways.h"
#include "labs/04_sgemm/sgemm.h"

enum status __real_sgemm(const struct sgemm_problem *problem, void *workspace, device_stream stream,
                         struct error *error);
enum status __wrap_sgemm(const struct sgemm_problem *problem, void *workspace, device_stream stream,
                         struct error *error);

struct sgemm_arguments {
    const struct sgemm_problem *problem;
    void *workspace;
};

static enum status do_sgemm(const void *arguments, device_stream stream, struct error *error) {
    const struct sgemm_arguments *a = arguments;
    return __real_sgemm(a->problem, a->workspace, stream, error);
}

enum status __wrap_sgemm(const struct sgemm_problem *problem, void *workspace, device_stream stream,
                         struct error *error) {
    const struct sgemm_arguments a = {problem, workspace};
    return honest_around(do_sgemm, &a, stream, true, error);
}
