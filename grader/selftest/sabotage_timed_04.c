#include "grader/selftest/sabotage_timed.h"
#include "labs/04_sgemm/sgemm.h"

sgemm_function __real_sgemm, __wrap_sgemm;

/* "rounds" and the like: lesser products. */
enum status __wrap_sgemm(const struct sgemm_problem *problem, void *workspace, device_stream stream,
                         struct error *error) {
    struct sgemm_problem p = *problem;
    const size_t columns_of_b = p.form == SGEMM_B_PLAIN ? p.N : p.K;
    p.A = sabotage_lesser(0, p.A, p.M * p.K, p.K, stream);
    if (chosen_mistake() != MISTAKE_leaves_columns) {
        p.B = sabotage_lesser(1, p.B, p.N * p.K, columns_of_b, stream);
    }
    return __real_sgemm(&p, workspace, stream, error);
}
