/** @file v6_fp16.cu @brief v6's kernels for fp16; a file of its own, so that types compile side by
 * side. */
#include "solutions/05_layernorm_softmax/steps/v6_launch.cuh"

void rows_v6_fp16(const struct rows_problem &p, const struct rows_plan &plan, void *workspace,
                  device_stream stream) {
    launch_type<__half>(p, plan, workspace, stream);
}
