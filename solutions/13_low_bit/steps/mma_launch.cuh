/**
 * @file mma_launch.cuh
 * @brief Host side of the steps on tensor cores: the kernel for a call's type, groups and rows.
 */
#ifndef WARPBOOK_SOLUTIONS_13_LOW_BIT_STEPS_MMA_LAUNCH_CUH_
#define WARPBOOK_SOLUTIONS_13_LOW_BIT_STEPS_MMA_LAUNCH_CUH_

#include "solutions/13_low_bit/steps/mma_rows.cuh"
#include "solutions/13_low_bit/steps/prepare.cuh"

static inline struct mma_call mma_call_of(const struct low_bit_linear *l) {
    const struct prepared_sizes sizes = prepared_sizes_of(&l->layout);
    const uint4 *values = (const uint4 *)l->prepared;
    bool is_aligned = l->layout.columns % 8 == 0 && (uintptr_t)l->in % 16 == 0;
    return (struct mma_call){values,
                             (const uint32_t *)(values + sizes.tiles * sizes.units * 64),
                             (const __nv_bfloat16 *)l->in,
                             l->out,
                             (unsigned)sizes.units,
                             (unsigned)sizes.groups,
                             (unsigned)l->M,
                             (unsigned)l->layout.rows,
                             (unsigned)l->layout.columns,
                             is_aligned,
                             l->out_dtype == NN_F32};
}

template <typename F>
static void launch_form(const struct low_bit_linear *l, device_stream stream) {
    unsigned blocks = (unsigned)((l->layout.rows + F::R * TILE_ROWS - 1) / (F::R * TILE_ROWS));
    if constexpr (F::CHAINED) {
        launch_dependent<mma_rows_kernel<F>>(blocks, F::WARPS * 32, 0, stream, mma_call_of(l));
    } else {
        mma_rows_kernel<F><<<blocks, F::WARPS * 32, 0, stream>>>(mma_call_of(l));
    }
}

template <template <enum low_bit_type, int, typename, int> class FORM, int NT>
static void launch_rows(const struct low_bit_linear *l, device_stream stream) {
    bool is_half = l->layout.scale_dtype == NN_F16;
    if (l->layout.type == LOW_BIT_INT8) {
        launch_form<FORM<LOW_BIT_INT8, 0, float, NT>>(l, stream);
    } else if (l->layout.type == LOW_BIT_FP8) {
        launch_form<FORM<LOW_BIT_FP8, 0, float, NT>>(l, stream);
    } else if (l->layout.group == 32 && is_half) {
        launch_form<FORM<LOW_BIT_INT4, 32, __half, NT>>(l, stream);
    } else if (l->layout.group == 32) {
        launch_form<FORM<LOW_BIT_INT4, 32, __nv_bfloat16, NT>>(l, stream);
    } else if (is_half) {
        launch_form<FORM<LOW_BIT_INT4, 128, __half, NT>>(l, stream);
    } else {
        launch_form<FORM<LOW_BIT_INT4, 128, __nv_bfloat16, NT>>(l, stream);
    }
}

/* Checks the call, and launches FORM for it. */
template <template <enum low_bit_type, int, typename, int> class FORM>
static enum status launch_mma(const struct low_bit_linear *l, const char *name,
                              device_stream stream, struct error *error) {
    TRY(low_bit_linear_check(l, error));
    TRY(low_bit_needs_bf16(error));
    if (l->M == 0) {
        return STATUS_OK;
    }
    if (l->M <= 8) {
        launch_rows<FORM, 1>(l, stream);
    } else {
        launch_rows<FORM, 2>(l, stream);
    }
    return device_launched(name, error);
}

#endif
