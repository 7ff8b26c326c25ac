/**
 * @file train_cpu_optimiser.c
 * @brief Clipping of the gradients' norm, and AdamW (Loshchilov and Hutter 2019).
 */
#include <math.h>

#include "common/base/checked.h"
#include "common/base/cpu.h"
#include "common/cpu/parallel.h"
#include "common/train/cpu/train_cpu_internal.h"

/* Elements of a chunk, and of each sum of squares. */
enum { CHUNK = 16384, CHEAP = 2, UPDATE = 12 };

struct squares {
    const float *x;
    double *sums; /* one a chunk */
};

CPU_CLONES
static double sum_of_squares(const float *x, size_t count) {
    double sum = 0.0;
#pragma omp simd reduction(+ : sum)
    for (size_t i = 0; i < count; i++) {
        sum += (double)x[i] * (double)x[i];
    }
    return sum;
}

static void square_range(void *arguments, int thread, size_t begin, size_t end) {
    const struct squares *s = arguments;
    (void)thread;
    s->sums[begin / CHUNK] = sum_of_squares(s->x + begin, end - begin);
}

enum status train_cpu_clip(void *context, void *scale, void *norm, const void *gradient,
                           size_t count, float most) {
    struct train_cpu *cpu = context;
    size_t chunks = ceil_div(count, CHUNK);
    double sum = 0.0;
    TRY(cpu_scratch_reserve(&cpu->scratch, chunks, sizeof(double) / sizeof(float)));
    struct squares squares = {gradient, (double *)(void *)cpu->scratch.memory};
    cpu_parallel_for(train_cpu_threads(cpu, count, CHEAP), count, CHUNK, square_range, &squares);
    for (size_t i = 0; i < chunks; i++) {
        sum += squares.sums[i];
    }
    double length = sqrt(sum);
    *(float *)norm = (float)length;
    *(float *)scale = most > 0.0f && length > (double)most ? (float)((double)most / length) : 1.0f;
    return STATUS_OK;
}

/* One step, with what is the same for all weights. */
struct step {
    const struct train_adamw *a;
    float scale, kept; /* kept: 1 - rate * decay */
    float rate;        /* divided by the first moment's bias correction */
    float correction2; /* 1 / sqrt of the second moment's */
};

/* w = kept w - rate m / (sqrt(v) correction2 + eps), with the moments of this step. */
CPU_CLONES
static void update(const struct step *s, size_t begin, size_t end, float kept) {
    const struct train_adamw *a = s->a;
    float *w = a->weights, *m = a->m, *v = a->v;
    const float *gradient = a->gradient;
    const float beta1 = a->beta1, beta2 = a->beta2, eps = a->eps;
    const float new1 = (float)(1.0 - (double)beta1), new2 = (float)(1.0 - (double)beta2);
    const float scale = s->scale, rate = s->rate, correction2 = s->correction2;
#pragma omp simd
    for (size_t i = begin; i < end; i++) {
        float g = scale * gradient[i];
        float first = beta1 * m[i] + new1 * g, second = beta2 * v[i] + new2 * g * g;
        m[i] = first;
        v[i] = second;
        w[i] = kept * w[i] - rate * first / (sqrtf(second) * correction2 + eps);
    }
}

static void update_range(void *arguments, int thread, size_t begin, size_t end) {
    const struct step *s = arguments;
    size_t decayed = s->a->decayed;
    size_t middle = end <= decayed ? end : begin >= decayed ? begin : decayed;
    (void)thread;
    update(s, begin, middle, s->kept);
    update(s, middle, end, 1.0f);
}

enum status train_cpu_adamw(void *context, const struct train_adamw *a) {
    double correction1 = 1.0 - pow((double)a->beta1, (double)a->step);
    double correction2 = 1.0 - pow((double)a->beta2, (double)a->step);
    struct step step = {
        .a = a,
        .scale = *(const float *)a->scale,
        .kept = (float)(1.0 - (double)a->rate * (double)a->decay),
        .rate = (float)((double)a->rate / correction1),
        .correction2 = (float)(1.0 / sqrt(correction2)),
    };
    cpu_parallel_for(train_cpu_threads(context, a->count, UPDATE), a->count, CHUNK, update_range,
                     &step);
    return STATUS_OK;
}
