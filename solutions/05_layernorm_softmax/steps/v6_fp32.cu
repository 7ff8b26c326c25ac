/** @file v6_fp32.cu @brief v6's kernels for fp32; a file of its own, so that types compile side by
 * side. */
#include "solutions/05_layernorm_softmax/steps/v6_launch.cuh"

void rows_v6_fp32(const struct rows_problem &p, const struct rows_plan &plan, void *workspace,
                  device_stream stream) {
    launch_type<float>(p, plan, workspace, stream);
}
