#include "common/nn/low_bit.h"

#include <math.h>

#include "common/base/checked.h"

enum { FP8_NAN = 0x7f, FP8_LARGEST = 0x7e };

const char *low_bit_type_name(enum low_bit_type type) {
    return type == LOW_BIT_INT8 ? "int8" : type == LOW_BIT_INT4 ? "int4" : "fp8";
}

size_t low_bit_row_bytes(const struct low_bit_layout *layout) {
    return layout->type == LOW_BIT_INT4 ? ceil_div(layout->columns, 2) : layout->columns;
}

size_t low_bit_groups(const struct low_bit_layout *layout) {
    return ceil_div(layout->columns, layout->group);
}

size_t low_bit_values_bytes(const struct low_bit_layout *layout) {
    return layout->rows * low_bit_row_bytes(layout);
}

size_t low_bit_scales_bytes(const struct low_bit_layout *layout) {
    return layout->rows * low_bit_groups(layout) * nn_dtype_bytes(layout->scale_dtype);
}

size_t low_bit_zeros_bytes(const struct low_bit_layout *layout) {
    return layout->has_zeros ? layout->rows * low_bit_groups(layout) : 0;
}

enum status low_bit_check(const struct low_bit_layout *layout, struct error *error) {
    const enum status bad = STATUS_INVALID_ARGUMENT;
    if ((int)layout->type < LOW_BIT_INT8 || (int)layout->type > LOW_BIT_FP8) {
        return error_set(error, bad, "low bits: type %d is none of int8, int4, fp8",
                         (int)layout->type);
    }
    if (layout->rows < 1 || layout->rows > LOW_BIT_MAX_SIZE || layout->columns < 1 ||
        layout->columns > LOW_BIT_MAX_SIZE) {
        return error_set(error, bad, "low bits: %zu x %zu, each must be 1 to %zu", layout->rows,
                         layout->columns, LOW_BIT_MAX_SIZE);
    }
    if (layout->group < 1 || layout->group > layout->columns) {
        return error_set(error, bad, "low bits: groups of %zu in %zu columns", layout->group,
                         layout->columns);
    }
    if ((int)layout->scale_dtype < NN_F32 || (int)layout->scale_dtype > NN_BF16) {
        return error_set(error, bad, "low bits: scales of type %d", (int)layout->scale_dtype);
    }
    if (layout->has_zeros && layout->type != LOW_BIT_INT4) {
        return error_set(error, bad, "low bits: zero points with %s, only int4 has them",
                         low_bit_type_name(layout->type));
    }
    return STATUS_OK;
}

/* e4m3: below 2^-6 a multiple of 2^-9. */
static float of_fp8(uint8_t bits) {
    int exponent = bits >> 3 & 15, fraction = bits & 7;
    if ((bits & FP8_NAN) == FP8_NAN) {
        return NAN;
    }
    float x =
        exponent == 0 ? ldexpf((float)fraction, -9) : ldexpf((float)(fraction + 8), exponent - 10);
    return bits >> 7 != 0 ? -x : x;
}

/* The magnitudes ascend with their codes, so the nearest is found by its exponent. */
static uint8_t fp8_of(float x) {
    uint8_t sign = signbit(x) ? 0x80 : 0;
    float magnitude = fabsf(x);
    if (isnan(x)) {
        return (uint8_t)(sign | FP8_NAN);
    }
    if (magnitude >= 448.0f) {
        return (uint8_t)(sign | FP8_LARGEST);
    }
    int exponent = -6;
    if (magnitude >= 0x1p-6f) {
        exponent = ilogbf(magnitude);
    }
    /* steps of 2^(exponent - 3) from 0; 16 of them begin the next exponent, as the codes do */
    int steps = (int)lrintf(ldexpf(magnitude, 3 - exponent));
    int code = steps + 8 * (exponent + 6);
    return (uint8_t)(sign | (code > FP8_LARGEST ? FP8_LARGEST : code));
}

float low_bit_stored(enum low_bit_type type, uint8_t bits, uint8_t zero) {
    return type == LOW_BIT_INT8   ? (float)(int8_t)bits
           : type == LOW_BIT_INT4 ? (float)((int)(bits & 15) - (int)zero)
                                  : of_fp8(bits);
}

uint8_t low_bit_round(enum low_bit_type type, float weight, float scale, uint8_t zero) {
    float x = weight / scale;
    if (type == LOW_BIT_FP8) {
        return fp8_of(x);
    }
    float least = type == LOW_BIT_INT8 ? -127.0f : -(float)zero;
    float most = type == LOW_BIT_INT8 ? 127.0f : 15.0f - (float)zero;
    int rounded = (int)rintf(fminf(fmaxf(x, least), most));
    return (uint8_t)(type == LOW_BIT_INT8 ? rounded : rounded + zero);
}

void low_bit_set(struct low_bit_matrix *matrix, size_t row, size_t column, uint8_t bits) {
    uint8_t *values = (uint8_t *)matrix->values + row * low_bit_row_bytes(&matrix->layout);
    if (matrix->layout.type != LOW_BIT_INT4) {
        values[column] = bits;
        return;
    }
    unsigned shift = column % 2 * 4;
    values[column / 2] =
        (uint8_t)((values[column / 2] & (0xf0u >> shift)) | (unsigned)(bits & 15) << shift);
}

uint8_t low_bit_get(const struct low_bit_matrix *matrix, size_t row, size_t column) {
    const uint8_t *values =
        (const uint8_t *)matrix->values + row * low_bit_row_bytes(&matrix->layout);
    return matrix->layout.type != LOW_BIT_INT4
               ? values[column]
               : (uint8_t)(values[column / 2] >> (column % 2 * 4) & 15);
}

void low_bit_set_group(struct low_bit_matrix *matrix, size_t row, size_t group, float scale,
                       uint8_t zero) {
    size_t index = row * low_bit_groups(&matrix->layout) + group;
    size_t bytes = nn_dtype_bytes(matrix->layout.scale_dtype);
    nn_dtype_store((char *)matrix->scales + index * bytes, &scale, 1, matrix->layout.scale_dtype);
    if (matrix->layout.has_zeros) {
        matrix->zeros[index] = zero;
    }
}

float low_bit_get_group(const struct low_bit_matrix *matrix, size_t row, size_t group,
                        uint8_t *zero) {
    const struct low_bit_layout *layout = &matrix->layout;
    size_t index = row * low_bit_groups(layout) + group;
    size_t bytes = nn_dtype_bytes(layout->scale_dtype);
    float scale;
    nn_dtype_load(&scale, (const char *)matrix->scales + index * bytes, 1, layout->scale_dtype);
    *zero = layout->has_zeros ? matrix->zeros[index] : layout->type == LOW_BIT_INT4 ? 8 : 0;
    return scale;
}

double low_bit_weight(const struct low_bit_matrix *matrix, size_t row, size_t column) {
    uint8_t zero;
    double scale = low_bit_get_group(matrix, row, column / matrix->layout.group, &zero);
    return scale * low_bit_stored(matrix->layout.type, low_bit_get(matrix, row, column), zero);
}

void low_bit_dequantize(const struct low_bit_matrix *matrix, size_t first, size_t rows,
                        float *out) {
    const struct low_bit_layout *layout = &matrix->layout;
    for (size_t row = first; row < first + rows; row++) {
        for (size_t begin = 0; begin < layout->columns; begin += layout->group) {
            uint8_t zero;
            float scale = low_bit_get_group(matrix, row, begin / layout->group, &zero);
            for (size_t c = begin; c < begin + layout->group && c < layout->columns; c++) {
                *out++ = scale * low_bit_stored(layout->type, low_bit_get(matrix, row, c), zero);
            }
        }
    }
}

/* Rounded to the scales' type; a scale that would become 0 is the type's least instead. */
static float rounded_scale(float scale, enum nn_dtype dtype) {
    uint32_t stored = 0;
    float rounded;
    nn_dtype_store(&stored, &scale, 1, dtype);
    nn_dtype_load(&rounded, &stored, 1, dtype);
    if (rounded > 0.0f && isfinite(rounded)) {
        return rounded;
    }
    const float least[] = {0x1p-149f, 0x1p-24f, 0x1p-133f},
                most[] = {0x1.fffffep127f, 65504.0f, 0x1.fep127f};
    return rounded > 0.0f ? most[dtype] : least[dtype];
}

float low_bit_choose_scale(const struct low_bit_layout *layout, const float *weights, size_t count,
                           uint8_t *zero) {
    float least = 0.0f, most = 0.0f;
    for (size_t i = 0; i < count; i++) {
        least = fminf(least, weights[i]);
        most = fmaxf(most, weights[i]);
    }
    bool is_int4 = layout->type == LOW_BIT_INT4;
    *zero = is_int4 ? 8 : 0;
    if (least == 0.0f && most == 0.0f) {
        return 1.0f;
    }
    if (layout->has_zeros) {
        /* divided first: the difference of two large floats may be infinite */
        float scale = rounded_scale((most / 15.0f) - (least / 15.0f), layout->scale_dtype);
        *zero = (uint8_t)fminf(rintf(-least / scale), 15.0f);
        return scale;
    }
    float largest = fmaxf(-least, most);
    float steps = layout->type == LOW_BIT_INT8 ? 127.0f : is_int4 ? 7.0f : 448.0f;
    return rounded_scale(largest / steps, layout->scale_dtype);
}

enum status low_bit_quantize(const float *weights, struct low_bit_matrix *matrix,
                             struct error *error) {
    const struct low_bit_layout *layout = &matrix->layout;
    TRY(low_bit_check(layout, error));
    for (size_t row = 0; row < layout->rows; row++) {
        for (size_t begin = 0; begin < layout->columns; begin += layout->group) {
            const float *group = weights + row * layout->columns + begin;
            size_t left = layout->columns - begin;
            size_t count = left < layout->group ? left : layout->group;
            for (size_t i = 0; i < count; i++) {
                if (!isfinite(group[i])) {
                    return error_set(error, STATUS_INVALID_ARGUMENT,
                                     "low bits: weight (%zu, %zu) is not finite", row, begin + i);
                }
            }
            uint8_t zero;
            float scale = low_bit_choose_scale(layout, group, count, &zero);
            low_bit_set_group(matrix, row, begin / layout->group, scale, zero);
            for (size_t i = 0; i < count; i++) {
                low_bit_set(matrix, row, begin + i,
                            low_bit_round(layout->type, group[i], scale, zero));
            }
        }
    }
    return STATUS_OK;
}
