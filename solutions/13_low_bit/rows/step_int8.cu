#include "solutions/13_low_bit/rows/step_kernel.cuh"

struct step_kernel_choice step_kernel_int8(size_t tiles, size_t L) {
    return choose_step_kernel<step_weights<0, float>>(tiles, L);
}
