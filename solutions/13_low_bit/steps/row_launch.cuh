/**
 * @file row_launch.cuh
 * @brief Host side of the steps in which a warp computes one row of W.
 */
#ifndef WARPBOOK_SOLUTIONS_13_LOW_BIT_STEPS_ROW_LAUNCH_CUH_
#define WARPBOOK_SOLUTIONS_13_LOW_BIT_STEPS_ROW_LAUNCH_CUH_

#include "solutions/13_low_bit/steps/prepare.cuh"
#include "solutions/13_low_bit/steps/row_helpers.cuh"

static inline struct row_call row_call_of(const struct low_bit_linear *l) {
    return (struct row_call){plain_parts(&l->layout, l->prepared),
                             low_bit_groups(&l->layout),
                             low_bit_row_bytes(&l->layout),
                             l->M,
                             (const __nv_bfloat16 *)l->in,
                             l->out,
                             l->out_dtype == NN_F32};
}

/* A launch for the type of the weights; `call` names it TYPE. */
#define FOR_LOW_BIT_TYPE(type, call)                         \
    do {                                                     \
        if ((type) == LOW_BIT_INT8) {                        \
            constexpr enum low_bit_type TYPE = LOW_BIT_INT8; \
            call;                                            \
        } else if ((type) == LOW_BIT_INT4) {                 \
            constexpr enum low_bit_type TYPE = LOW_BIT_INT4; \
            call;                                            \
        } else {                                             \
            constexpr enum low_bit_type TYPE = LOW_BIT_FP8;  \
            call;                                            \
        }                                                    \
    } while (0)

#endif
