/**
 * @file reference_optimiser.c
 * @brief Clipping of the gradients' norm, and AdamW (Loshchilov and Hutter 2019), in double.
 */
#include <math.h>

#include "common/train/reference/reference_internal.h"

enum status reference_clip(void *context, void *scale, void *norm, const void *gradient,
                           size_t count, float most) {
    (void)context;
    double length = sqrt(reference_dot(gradient, gradient, count));
    *(double *)norm = length;
    *(double *)scale = most > 0.0f && length > (double)most ? (double)most / length : 1.0;
    return STATUS_OK;
}

/* The hyperparameters in double, and the bias corrections of the moments, which begin at 0. */
struct step {
    double scale, rate, beta1, beta2, eps, decay;
    double correction1, correction2; /* 1 - beta^step */
};

static void update(double *weight, double *m, double *v, double gradient, bool decays,
                   const struct step *s) {
    double g = s->scale * gradient;
    if (decays) {
        *weight *= 1.0 - s->rate * s->decay;
    }
    *m = s->beta1 * *m + (1.0 - s->beta1) * g;
    *v = s->beta2 * *v + (1.0 - s->beta2) * g * g;
    *weight -= s->rate * (*m / s->correction1) / (sqrt(*v / s->correction2) + s->eps);
}

enum status reference_adamw(void *context, const struct train_adamw *a) {
    (void)context;
    struct step step = {
        .scale = *(const double *)a->scale,
        .rate = (double)a->rate,
        .beta1 = (double)a->beta1,
        .beta2 = (double)a->beta2,
        .eps = (double)a->eps,
        .decay = (double)a->decay,
        .correction1 = 1.0 - pow((double)a->beta1, (double)a->step),
        .correction2 = 1.0 - pow((double)a->beta2, (double)a->step),
    };
    double *weights = a->weights, *copy = a->copy, *m = a->m, *v = a->v;
    for (size_t i = 0; i < a->count; i++) {
        update(weights + i, m + i, v + i, ((const double *)a->gradient)[i], i < a->decayed, &step);
        if (copy != NULL) {
            copy[i] = weights[i];
        }
    }
    return STATUS_OK;
}
