/** @file v6_bf16.cu @brief v6's kernels for bf16; a file of its own, so that types compile side by
 * side. */
#include "solutions/05_layernorm_softmax/steps/v6_launch.cuh"

void rows_v6_bf16(const struct rows_problem &p, const struct rows_plan &plan, void *workspace,
                  device_stream stream) {
    launch_type<__nv_bfloat16>(p, plan, workspace, stream);
}
