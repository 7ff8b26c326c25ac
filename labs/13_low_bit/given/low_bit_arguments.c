/**
 * @file low_bit_arguments.c
 * @brief Checks calls of lab 13 against the contract, and says how large a prepared matrix may be.
 */
#include "common/base/checked.h"
#include "labs/13_low_bit/low_bit.h"

size_t low_bit_prepared_bytes(const struct low_bit_layout *layout) {
    size_t rows = ceil_div(layout->rows, 32) * 32, columns = ceil_div(layout->columns, 128) * 128;
    size_t values = layout->type == LOW_BIT_INT4 ? columns / 2 : columns;
    size_t groups = ceil_div(columns, layout->group);
    return rows * (values + 4 * groups) + 4096;
}

enum status low_bit_check_layout(const struct low_bit_layout *layout, struct error *error) {
    TRY(low_bit_check(layout, error));
    if (layout->type == LOW_BIT_INT4) {
        size_t group = layout->group;
        if (group != 32 && group != 128) {
            return error_set(error, STATUS_UNSUPPORTED,
                             "low_bit: int4 in groups of %zu; groups of 32 and 128 are supported",
                             group);
        }
        if (layout->scale_dtype == NN_F32) {
            return error_set(error, STATUS_UNSUPPORTED,
                             "low_bit: int4 with scales in fp32; bf16 and fp16 are supported");
        }
        return STATUS_OK;
    }
    if (layout->group != layout->columns || layout->scale_dtype != NN_F32) {
        return error_set(error, STATUS_UNSUPPORTED,
                         "low_bit: %s in groups of %zu of %zu columns with scales in %s; a scale a "
                         "row in fp32 is supported",
                         low_bit_type_name(layout->type), layout->group, layout->columns,
                         nn_dtype_name(layout->scale_dtype));
    }
    return STATUS_OK;
}

enum status low_bit_linear_check(const struct low_bit_linear *l, struct error *error) {
    TRY(low_bit_check_layout(&l->layout, error));
    if (l->M > LOW_BIT_MAX_ROWS) {
        return error_set(error, STATUS_INVALID_ARGUMENT, "low_bit: M = %zu is above %zu", l->M,
                         LOW_BIT_MAX_ROWS);
    }
    if (l->out_dtype != NN_BF16 && l->out_dtype != NN_F32) {
        return error_set(error, STATUS_INVALID_ARGUMENT,
                         "low_bit: out_dtype = %d; it must be bf16 or fp32", (int)l->out_dtype);
    }
    return STATUS_OK;
}
