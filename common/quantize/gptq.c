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

void gptq_add_pull(double *pull, const float *wanted, const float *got, const float *in,
                   size_t tokens, size_t rows, size_t K) {
    for (size_t t = 0; t < tokens; t++) {
        const float *x = in + t * K;
        for (size_t r = 0; r < rows; r++) {
            double missing = (double)wanted[t * rows + r] - (double)got[t * rows + r];
            for (size_t k = 0; k < K && missing != 0.0; k++) {
                pull[r * K + k] += missing * (double)x[k];
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

/* A group's least and largest weight, and 0. */
struct range {
    float least, largest;
};

static struct range range_of(const double *weights, size_t count) {
    struct range range = {0.0f, 0.0f};
    for (size_t i = 0; i < count; i++) {
        range.least = fminf(range.least, (float)weights[i]);
        range.largest = fmaxf(range.largest, (float)weights[i]);
    }
    return range;
}

/* The scale for this range, as rounding to nearest has it. */
static float scale_for(const struct low_bit_layout *layout, struct range range, uint8_t *zero) {
    const float extremes[2] = {range.least, range.largest}; /* all that the choice looks at */
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
    const struct range all = range_of(weights, count);
    double least = INFINITY;
    float best = 1.0f;
    for (int i = 0; i < GPTQ_CUTS * (layout->has_zeros ? GPTQ_CUTS : 1); i++) {
        int low = i % GPTQ_CUTS, high = layout->has_zeros ? i / GPTQ_CUTS : low;
        const struct range cut = {all.least * (1.0f - (float)low / 20.0f),
                                  all.largest * (1.0f - (float)high / 20.0f)};
        uint8_t other;
        float scale = scale_for(layout, cut, &other);
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
                                : scale_for(layout, range_of(row + begin, count), zero);
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

/* w += p U^T U, as U^T U is the inverse of H. */
static void aim(double *row, const double *upper, const double *pull, size_t K) {
    for (size_t i = 0; i < K; i++) {
        const double *u = upper + i * K;
        double sum = 0.0;
        for (size_t k = i; k < K; k++) {
            sum += u[k] * pull[k];
        }
        for (size_t k = i; k < K; k++) {
            row[k] += sum * u[k];
        }
    }
}

enum status gptq_quantize(const float *weights, const double *upper, const double *pull,
                          struct low_bit_matrix *matrix, double *row, struct error *error) {
    const struct low_bit_layout *layout = &matrix->layout;
    TRY(low_bit_check(layout, error));
    for (size_t r = 0; r < layout->rows; r++) {
        for (size_t k = 0; k < layout->columns; k++) {
            row[k] = (double)weights[r * layout->columns + k];
        }
        if (pull != NULL) {
            aim(row, upper, pull + r * layout->columns, layout->columns);
        }
        quantize_row(matrix, upper, row, r);
    }
    return STATUS_OK;
}
