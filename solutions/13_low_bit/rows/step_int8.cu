#include "solutions/13_low_bit/rows/step_kernel.cuh"

struct step_kernel_choice step_kernel_int8(struct step_arguments *p, size_t blocks) {
    return choose_step_kernel<step_weights<0, float>>(p, blocks);
}
