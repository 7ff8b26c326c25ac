#include "labs/11_training/problem/adamw.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const double u = 0x1p-24; /* half of fp32's step */

/* What fp32 may make of a power of beta, one minus it, and a root: of an update's size. */
static const double update_error = 5e-5;

struct adamw_spec adamw_spec_usual(size_t count, size_t decayed) {
    return (struct adamw_spec){.count = count,
                               .decayed = decayed,
                               .copy = true,
                               .rate = 1e-3f,
                               .beta1 = 0.9f,
                               .beta2 = 0.999f,
                               .eps = 1e-8f,
                               .decay = 0.1f,
                               .step = 10,
                               .scale = 1.0};
}

enum status adamw_case_create(struct adamw_case *c, const struct adamw_spec *spec, bool guarded,
                              struct error *error) {
    *c = (struct adamw_case){.spec = *spec};
    snprintf(c->name, sizeof c->name, "adamw of %zu, %zu decay, step %" PRIu64 ", scale %g%s",
             spec->count, spec->decayed, spec->step, spec->scale,
             spec->copy ? ", with a copy" : "");
    struct tensor *all[] = {&c->weights, &c->gradient, &c->m, &c->v};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        TRY(tensor_create(all[i], NN_F32, spec->count, guarded, error));
    }
    TRY(tensor_create(&c->copy, NN_BF16, spec->copy ? spec->count : 0, guarded, error));
    return tensor_create(&c->scale, NN_F32, 1, guarded, error);
}

enum { TENSORS = 6 };

static void list_tensors(struct adamw_case *c, struct tensor *all[TENSORS]) {
    struct tensor *const tensors[TENSORS] = {&c->weights, &c->gradient, &c->m,
                                             &c->v,       &c->copy,     &c->scale};
    memcpy(all, tensors, sizeof tensors);
}

void adamw_case_free(struct adamw_case *c) {
    struct tensor *all[TENSORS];
    list_tensors(c, all);
    for (size_t i = 0; i < TENSORS; i++) {
        tensor_free(all[i]);
    }
}

enum status adamw_case_place(struct adamw_case *copy, struct error *error) {
    struct tensor *all[TENSORS];
    list_tensors(copy, all);
    for (size_t i = 0; i < TENSORS; i++) {
        all[i]->buffer = (struct device_buffer){0};
    }
    for (size_t i = 0; i < TENSORS; i++) {
        TRY(tensor_place(all[i], error));
    }
    return STATUS_OK;
}

void adamw_case_unplace(struct adamw_case *copy) {
    struct tensor *all[TENSORS];
    list_tensors(copy, all);
    for (size_t i = 0; i < TENSORS; i++) {
        tensor_unplace(all[i]);
    }
}

void adamw_case_renew(struct adamw_case *c, struct rng *rng) {
    bool first = c->spec.step == 1;
    tensor_fill(&c->weights, rng, 0.0, 0.5);
    tensor_fill(&c->gradient, rng, 0.0, 0.1);
    tensor_fill(&c->m, rng, 0.0, first ? 0.0 : 0.05);
    tensor_fill(&c->v, rng, 0.0, first ? 0.0 : 0.1);
    for (size_t i = 0; i < c->v.count; i++) {
        c->v.values[i] *= c->v.values[i];
    }
    c->scale.values[0] = c->spec.scale;
}

enum status adamw_case_draw(struct adamw_case *c, struct rng *rng, struct error *error) {
    adamw_case_renew(c, rng);
    return adamw_case_send(c, error);
}

enum status adamw_case_send(struct adamw_case *c, struct error *error) {
    struct tensor *inputs[] = {&c->weights, &c->gradient, &c->m, &c->v, &c->scale};
    for (size_t i = 0; i < sizeof inputs / sizeof *inputs; i++) {
        TRY(tensor_put(inputs[i], NULL, error));
    }
    return tensor_poison(&c->copy, error);
}

struct adamw_problem adamw_case_problem(const struct adamw_case *c) {
    const struct adamw_spec *s = &c->spec;
    return (struct adamw_problem){.weights = c->weights.buffer.data,
                                  .copy = s->copy ? c->copy.buffer.data : NULL,
                                  .gradient = c->gradient.buffer.data,
                                  .m = c->m.buffer.data,
                                  .v = c->v.buffer.data,
                                  .count = s->count,
                                  .decayed = s->decayed,
                                  .scale = c->scale.buffer.data,
                                  .rate = s->rate,
                                  .beta1 = s->beta1,
                                  .beta2 = s->beta2,
                                  .eps = s->eps,
                                  .decay = s->decay,
                                  .step = s->step};
}

struct tensor_outputs adamw_case_outputs(const struct adamw_case *c) {
    return (struct tensor_outputs){{&c->weights, &c->m, &c->v, &c->copy}, c->spec.copy ? 4 : 3};
}

/* ---- The verdict ---- */

/* One parameter behind the step, and what each may be off by. */
struct after {
    double weight, m, v;
    double weight_off, m_off, v_off;
};

/* What the moments, which began at zero, are divided by: 1 - beta^step. */
struct corrections {
    double first, second;
};

static struct after step_of(const struct adamw_case *c, const struct corrections *corrections,
                            size_t i) {
    const struct adamw_spec *s = &c->spec;
    double beta1 = (double)s->beta1, beta2 = (double)s->beta2, rate = (double)s->rate;
    double g = c->scale.values[0] * c->gradient.values[i];
    double decay = i < s->decayed ? rate * (double)s->decay : 0.0;
    double m = beta1 * c->m.values[i], v = beta2 * c->v.values[i];
    struct after a = {.m = m + (1.0 - beta1) * g, .v = v + (1.0 - beta2) * g * g};
    double root = sqrt(a.v / corrections->second);
    double down = root + (double)s->eps, first = corrections->first;
    double update = rate * a.m / first / down;
    double old = c->weights.values[i];
    a.weight = old * (1.0 - decay) - update;
    a.m_off = 8.0 * u * (fabs(m) + fabs((1.0 - beta1) * g)) + 1e-30;
    a.v_off = 8.0 * u * a.v + 1e-30;
    a.weight_off =
        4.0 * u * fabs(old) + update_error * fabs(update) + rate * a.m_off / first / down;
    return a;
}

static bool close_to(const struct adamw_case *c, const char *what, size_t i, double got,
                     double want, double off, char *text, size_t size) {
    bool near = fabs(got - want) <= off; /* not of NaN */
    if (!near) {
        snprintf(text, size, "%s: %s[%zu]: got %.9g, want %.9g, difference %.3g, tolerance %.3g",
                 c->name, what, i, got, want, got - want, off);
    }
    return near;
}

/* The results, as they were read. */
struct adamw_got {
    float *weights, *copy, *m, *v;
};

static void compare_all(const struct adamw_case *c, const struct adamw_got *got, char *text,
                        size_t size) {
    const double step = (double)c->spec.step;
    const struct corrections corrections = {.first = 1.0 - pow((double)c->spec.beta1, step),
                                            .second = 1.0 - pow((double)c->spec.beta2, step)};
    for (size_t i = 0; i < c->spec.count; i++) {
        struct after a = step_of(c, &corrections, i);
        if (!close_to(c, "m", i, (double)got->m[i], a.m, a.m_off, text, size) ||
            !close_to(c, "v", i, (double)got->v[i], a.v, a.v_off, text, size) ||
            !close_to(c, "weights", i, (double)got->weights[i], a.weight, a.weight_off, text,
                      size)) {
            return;
        }
        float rounded = got->weights[i];
        unsigned char stored[2];
        nn_dtype_store(stored, &rounded, 1, NN_BF16);
        nn_dtype_load(&rounded, stored, 1, NN_BF16);
        if (c->spec.copy &&
            !close_to(c, "copy", i, (double)got->copy[i], (double)rounded, 0.0, text, size)) {
            return;
        }
    }
}

static enum status read_all(struct adamw_case *c, struct adamw_got *got, char *text, size_t size,
                            struct error *error) {
    const struct tensor *tensors[] = {&c->weights, &c->m, &c->v, &c->copy, &c->gradient, &c->scale};
    float scale, *to[] = {got->weights, got->m, got->v, got->copy, got->copy, &scale};
    bool intact, changed;
    for (size_t i = 6; i-- > 0 && text[0] == '\0';) { /* the copy's place serves the gradient */
        TRY(tensor_get(tensors[i], to[i], &intact, &changed, error));
        if (!intact) {
            snprintf(text, size, "%s: wrote outside of the output", c->name);
        } else if (changed && i >= 4) {
            snprintf(text, size, "%s: changed its input %s", c->name,
                     i == 4 ? "gradient" : "scale");
        }
    }
    return STATUS_OK;
}

enum status adamw_case_check(struct adamw_case *c, char *text, size_t size, struct error *error) {
    size_t count = c->weights.count;
    float *room = calloc(4 * count + 4, sizeof *room);
    if (room == NULL) {
        return error_set(error, STATUS_OUT_OF_MEMORY, "the grader is out of memory");
    }
    struct adamw_got got = {room, room + count, room + 2 * count, room + 3 * count};
    text[0] = '\0';
    enum status status = read_all(c, &got, text, size, error);
    if (status == STATUS_OK && text[0] == '\0') {
        compare_all(c, &got, text, size);
    }
    free(room);
    return status;
}
