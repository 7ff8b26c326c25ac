#include "common/quantize/awq.h"

#include <math.h>

#include "common/quantize/gptq.h"

/* Sizes below this share of the largest count as this share. */
static const double SMALLEST = 1e-4;

/* m: root mean squares, up to a factor that s does not depend on. @param m, counts (K) */
static void measure(const struct awq_problem *p, double *m, double *counts) {
    for (size_t k = 0; k < p->K; k++) {
        m[k] = counts[k] = 0.0;
    }
    for (size_t k = 0; k < p->K; k++) {
        m[p->same[k]] += p->hessian[k * p->K + k];
        counts[p->same[k]] += 1.0;
    }
    for (size_t k = 0; k < p->K; k++) {
        m[k] = counts[k] > 0.0 ? sqrt(m[k] / counts[k]) : 0.0;
    }
}

/* s for an exponent. @param m by number of `same` */
static void scales_for(const struct awq_problem *p, const double *m, double exponent,
                       float *scales) {
    double largest = 0.0, most = 0.0, least = INFINITY;
    for (size_t k = 0; k < p->K; k++) {
        largest = fmax(largest, m[k]);
    }
    for (size_t k = 0; k < p->K; k++) {
        double size = largest > 0.0 ? fmax(m[p->same[k]], SMALLEST * largest) : 1.0;
        double s = pow(size, exponent);
        most = fmax(most, s);
        least = fmin(least, s);
        scales[k] = (float)s;
    }
    for (size_t k = 0; k < p->K; k++) {
        scales[k] = (float)((double)scales[k] / sqrt(most * least));
    }
}

/* error = w - q / s of a row, where q is what w s is rounded to. */
static void row_error(const struct awq_problem *p, const float *row, const float *scales,
                      double *error) {
    struct low_bit_layout layout = p->layout;
    for (size_t begin = 0; begin < p->K; begin += layout.group) {
        size_t end = begin + layout.group < p->K ? begin + layout.group : p->K;
        float extremes[2] = {0.0f, 0.0f};
        uint8_t zero;
        for (size_t k = begin; k < end; k++) {
            extremes[0] = fminf(extremes[0], row[k] * scales[k]);
            extremes[1] = fmaxf(extremes[1], row[k] * scales[k]);
        }
        float scale = low_bit_choose_scale(&layout, extremes, 2, &zero);
        for (size_t k = begin; k < end; k++) {
            uint8_t bits = low_bit_round(layout.type, row[k] * scales[k], scale, zero);
            double kept = (double)scale * (double)low_bit_stored(layout.type, bits, zero);
            error[k] = (double)row[k] - kept / (double)scales[k];
        }
    }
}

/* error H error^T */
static double product_error(const struct awq_problem *p, const double *error) {
    double sum = 0.0;
    for (size_t i = 0; i < p->K; i++) {
        const double *h = p->hessian + i * p->K;
        double others = 0.0;
        for (size_t k = i + 1; k < p->K; k++) {
            others += h[k] * error[k];
        }
        sum += error[i] * (error[i] * h[i] + 2.0 * others);
    }
    return sum;
}

static double cost_of(const struct awq_problem *p, const float *scales, double *error) {
    double sum = 0.0;
    for (size_t i = 0; i < p->count; i++) {
        for (size_t r = 0; r < p->matrices[i].rows; r++) {
            row_error(p, p->matrices[i].weights + r * p->K, scales, error);
            sum += product_error(p, error);
        }
    }
    return sum;
}

void awq_choose(const struct awq_problem *problem, float *scales, double *scratch) {
    size_t K = problem->K;
    double *m = scratch, *error = scratch + K, least = INFINITY;
    int best = 0;
    measure(problem, m, error);
    for (int i = 0; i < AWQ_EXPONENTS; i++) {
        scales_for(problem, m, i / (double)AWQ_EXPONENTS, scales);
        double cost = cost_of(problem, scales, error);
        if (cost < least) {
            least = cost;
            best = i;
        }
    }
    scales_for(problem, m, best / (double)AWQ_EXPONENTS, scales);
}

enum status awq_quantize(const float *weights, const double *inverse, struct low_bit_matrix *matrix,
                         double *row, struct error *error) {
    const struct low_bit_layout *l = &matrix->layout;
    TRY(low_bit_check(l, error));
    for (size_t r = 0; r < l->rows; r++) {
        for (size_t k = 0; k < l->columns; k++) {
            row[k] = (double)weights[r * l->columns + k];
        }
        for (size_t begin = 0; begin < l->columns; begin += l->group) {
            size_t left = l->columns - begin, count = left < l->group ? left : l->group;
            uint8_t zero = 0;
            float scale = gptq_choose_scale(l, row + begin, inverse + begin, 1, count, &zero);
            low_bit_set_group(matrix, r, begin / l->group, scale, zero);
            for (size_t k = begin; k < begin + count; k++) {
                low_bit_set(matrix, r, k, low_bit_round(l->type, (float)row[k], scale, zero));
            }
        }
    }
    return STATUS_OK;
}
