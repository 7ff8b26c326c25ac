#include "common/quantize/gptq.h"

#include <math.h>
#include <string.h>

void gptq_add(double *hessian, const float *in, size_t tokens, size_t K) {
    for (size_t t = 0; t < tokens; t++) {
        const float *x = in + t * K;
        for (size_t i = 0; i < K; i++) {
            double *row = hessian + i * K;
            double factor = (double)x[i];
            for (size_t k = i; k < K && factor != 0.0; k++) {
                row[k] += factor * (double)x[k];
            }
        }
    }
}

void gptq_add_drift(double *drift, const float *wanted, const float *in, size_t tokens, size_t K) {
    for (size_t t = 0; t < tokens; t++) {
        const float *x = in + t * K, *y = wanted + t * K;
        for (size_t i = 0; i < K; i++) {
            double *row = drift + i * K;
            double factor = (double)y[i] - (double)x[i];
            for (size_t k = 0; k < K && factor != 0.0; k++) {
                row[k] += factor * (double)x[k];
            }
        }
    }
}

static void damp(double *hessian, size_t K) {
    double mean = 0.0;
    for (size_t i = 0; i < K; i++) {
        mean += hessian[i * K + i] / (double)K;
    }
    for (size_t i = 0; i < K; i++) {
        double *diagonal = &hessian[i * K + i];
        *diagonal = *diagonal == 0.0 ? 1.0 : *diagonal;
        *diagonal += GPTQ_DAMPING * mean;
    }
}

/* H = R R^T, R upper triangular, from the last column to the first: R_ij = (H_ij - sum over k > j
   of R_ik R_jk) / R_jj. */
static enum status factor(double *h, size_t K) {
    for (size_t j = K; j-- > 0;) {
        const double *row_j = h + j * K;
        for (size_t i = j + 1; i-- > 0;) {
            double *row_i = h + i * K, sum = row_i[j];
            for (size_t k = j + 1; k < K; k++) {
                sum -= row_i[k] * row_j[k];
            }
            if (i == j && !(sum > 0.0 && isfinite(sum))) {
                return STATUS_BAD_FORMAT;
            }
            row_i[j] = i == j ? sqrt(sum) : sum / row_j[j];
        }
    }
    return STATUS_OK;
}

/* U = R^-1, also upper triangular, row by row: U_ij = -(sum over i < k <= j of R_ik U_kj) / R_ii,
   from the last row to the first, as row i needs the rows behind it. */
static void invert(double *r, size_t K) {
    for (size_t i = K; i-- > 0;) {
        double *row = r + i * K, diagonal = row[i];
        for (size_t j = K; j-- > i + 1;) {
            double sum = 0.0;
            for (size_t k = i + 1; k <= j; k++) {
                sum += row[k] * r[k * K + j];
            }
            row[j] = -sum / diagonal;
        }
        row[i] = 1.0 / diagonal;
        memset(row, 0, i * sizeof *row);
    }
}

enum status gptq_prepare(double *hessian, size_t K) {
    damp(hessian, K);
    TRY(factor(hessian, K));
    invert(hessian, K);
    return STATUS_OK;
}

/* The scale for the largest weight, as rounding to nearest has it. */
static float nearest_scale(const struct low_bit_layout *layout, const double *weights, size_t count,
                           double share, uint8_t *zero) {
    float extremes[2] = {0.0f, 0.0f}; /* all that the choice looks at */
    for (size_t i = 0; i < count; i++) {
        extremes[0] = fminf(extremes[0], (float)(share * weights[i]));
        extremes[1] = fmaxf(extremes[1], (float)(share * weights[i]));
    }
    return low_bit_choose_scale(layout, extremes, 2, zero);
}

static double cost_of(const struct low_bit_layout *layout, const double *weights,
                      const double *upper, size_t stride, size_t count, float scale, uint8_t zero) {
    double sum = 0.0;
    for (size_t i = 0; i < count; i++) {
        uint8_t bits = low_bit_round(layout->type, (float)weights[i], scale, zero);
        double kept = (double)scale * (double)low_bit_stored(layout->type, bits, zero);
        double error = (weights[i] - kept) / upper[i * stride];
        sum += error * error;
    }
    return sum;
}

float gptq_choose_scale(const struct low_bit_layout *layout, const double *weights,
                        const double *upper, size_t stride, size_t count, uint8_t *zero) {
    float best = nearest_scale(layout, weights, count, 1.0, zero);
    double least = cost_of(layout, weights, upper, stride, count, best, *zero);
    for (int i = 1; i < GPTQ_SCALES; i++) {
        uint8_t other;
        float scale = nearest_scale(layout, weights, count, 1.0 - i / 32.0, &other);
        double cost = cost_of(layout, weights, upper, stride, count, scale, other);
        if (cost < least) {
            least = cost;
            best = scale;
            *zero = other;
        }
    }
    return best;
}

/* Chooses the scale of the group that begins at a column. @param row the weights as they now are */
static float begin_group(struct low_bit_matrix *matrix, const double *upper, const double *row,
                         size_t r, size_t begin, uint8_t *zero) {
    const struct low_bit_layout *layout = &matrix->layout;
    size_t K = layout->columns, left = K - begin;
    size_t count = left < layout->group ? left : layout->group;
    float scale = upper != NULL ? gptq_choose_scale(layout, row + begin, upper + begin * K + begin,
                                                    K + 1, count, zero)
                                : nearest_scale(layout, row + begin, count, 1.0, zero);
    low_bit_set_group(matrix, r, begin / layout->group, scale, *zero);
    return scale;
}

static void quantize_row(struct low_bit_matrix *matrix, const double *upper, double *row,
                         size_t r) {
    const struct low_bit_layout *layout = &matrix->layout;
    size_t K = layout->columns;
    float scale = 1.0f;
    uint8_t zero = 0;
    for (size_t j = 0; j < K; j++) {
        if (j % layout->group == 0) {
            scale = begin_group(matrix, upper, row, r, j, &zero);
        }
        uint8_t bits = low_bit_round(layout->type, (float)row[j], scale, zero);
        low_bit_set(matrix, r, j, bits);
        if (upper != NULL) {
            const double *u = upper + j * K;
            double kept = (double)scale * (double)low_bit_stored(layout->type, bits, zero);
            double error = (row[j] - kept) / u[j];
            for (size_t k = j + 1; k < K; k++) {
                row[k] -= error * u[k];
            }
        }
    }
}

/* w += w D U^T U, as U^T U is the inverse of H. @param scratch (K) */
static void aim(double *row, const double *upper, const double *drift, double *scratch, size_t K) {
    memset(scratch, 0, K * sizeof *scratch);
    for (size_t i = 0; i < K; i++) {
        for (size_t k = 0; k < K; k++) {
            scratch[k] += row[i] * drift[i * K + k];
        }
    }
    for (size_t i = 0; i < K; i++) {
        const double *u = upper + i * K;
        double sum = 0.0;
        for (size_t k = i; k < K; k++) {
            sum += u[k] * scratch[k];
        }
        for (size_t k = i; k < K; k++) {
            row[k] += sum * u[k];
        }
    }
}

enum status gptq_quantize(const float *weights, const double *upper, const double *drift,
                          struct low_bit_matrix *matrix, double *scratch, struct error *error) {
    double *row = scratch;
    const struct low_bit_layout *layout = &matrix->layout;
    TRY(low_bit_check(layout, error));
    for (size_t r = 0; r < layout->rows; r++) {
        for (size_t k = 0; k < layout->columns; k++) {
            row[k] = (double)weights[r * layout->columns + k];
        }
        if (drift != NULL) {
            aim(row, upper, drift, scratch + layout->columns, layout->columns);
        }
        quantize_row(matrix, upper, row, r);
    }
    return STATUS_OK;
}
