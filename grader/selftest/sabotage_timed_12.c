#include "grader/selftest/sabotage_timed.h"
#include "labs/12_tensor_cores/tensor_cores.h"

gemm16_function __real_gemm16, __wrap_gemm16;

/* "part_of_it": the first half of the rows. */
enum status __wrap_gemm16(const struct gemm16_problem *problem, void *workspace,
                          device_stream stream, struct error *error) {
    struct gemm16_problem some = *problem;
    some.M = chosen_mistake() == MISTAKE_part_of_it ? (some.M + 1) / 2 : some.M;
    return sabotage_leaves_out(problem, sizeof *problem, stream)
               ? STATUS_OK
               : __real_gemm16(&some, workspace, stream, error);
}
