#include "common/train/program/train_profile.h"

#include <time.h>

static const char *const names[] = {
#define NAME(name) #name,
    TRAIN_PROFILE_LIST(NAME)
#undef NAME
};

/* The time, once all work is done. */
static double now(const struct train_profile *p) {
    struct timespec time;
    if (p->now != NULL) {
        return p->now();
    }
    if (p->inner.synchronize(p->inner.context, NULL) != STATUS_OK) {
        return 0.0; /* the next call will report the failure */
    }
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

static enum status end(struct train_profile *p, enum train_operator operator, double start,
                       double flops, enum status status) {
    struct train_profile_row *row = &p->rows[operator];
    row->seconds += now(p) - start;
    row->flops += flops;
    row->calls++;
    return status;
}

/* Calls the inner engine's entry with the remaining arguments and times it. */
#define TIMED(name, flops, ...)        \
    struct train_profile *p = context; \
    double start = now(p);             \
    return end(p, TRAIN_OPERATOR_##name, start, flops, p->inner.name(p->inner.context, __VA_ARGS__))

/* ---- Memory ---- */

static void destroy(void *context) {
    struct train_profile *p = context;
    train_engine_destroy(&p->inner);
}

static enum status alloc(void *context, size_t bytes, void **memory, struct error *error) {
    struct train_profile *p = context;
    return p->inner.alloc(p->inner.context, bytes, memory, error);
}

static void release(void *context, void *memory) {
    struct train_profile *p = context;
    p->inner.release(p->inner.context, memory);
}

static enum status synchronize(void *context, struct error *error) {
    struct train_profile *p = context;
    return p->inner.synchronize(p->inner.context, error);
}

static enum status write(void *context, void *resident, const void *host, size_t bytes) {
    TIMED(write, 0.0, resident, host, bytes);
}

static enum status read(void *context, void *host, const void *resident, size_t bytes) {
    TIMED(read, 0.0, host, resident, bytes);
}

static enum status zero(void *context, void *resident, size_t bytes) {
    TIMED(zero, 0.0, resident, bytes);
}

static enum status convert(void *context, void *copy, const void *weights, size_t count) {
    TIMED(convert, 0.0, copy, weights, count);
}

/* ---- Matmuls, elementwise, norms ---- */

static double product(size_t M, size_t N, size_t K) {
    return 2.0 * (double)M * (double)N * (double)K;
}

static enum status linear(void *context, void *out, const void *in, const void *weight,
                          const void *bias, size_t M, size_t N, size_t K) {
    TIMED(linear, product(M, N, K), out, in, weight, bias, M, N, K);
}

static enum status linear_backward(void *context, void *din, const void *add, void *dweight,
                                   void *dbias, const void *dout, const void *in,
                                   const void *weight, size_t M, size_t N, size_t K) {
    TIMED(linear_backward, (din != NULL ? 2.0 : 1.0) * product(M, N, K), din, add, dweight, dbias,
          dout, in, weight, M, N, K);
}

static enum status activation(void *context, void *out, const void *in, size_t count,
                              enum nn_activation f) {
    TIMED(activation, 0.0, out, in, count, f);
}

static enum status activation_backward(void *context, void *din, const void *dout, const void *in,
                                       size_t count, enum nn_activation f) {
    TIMED(activation_backward, 0.0, din, dout, in, count, f);
}

static enum status activation_bias_backward(void *context, void *din, void *dbias, const void *dout,
                                            const void *in, size_t rows, size_t C,
                                            enum nn_activation f) {
    TIMED(activation_bias_backward, 0.0, din, dbias, dout, in, rows, C, f);
}

static enum status dropout_bias_backward(void *context, void *din, void *dbias, const void *dout,
                                         size_t rows, size_t C,
                                         const struct train_dropout *dropout) {
    TIMED(dropout_bias_backward, 0.0, din, dbias, dout, rows, C, dropout);
}

static enum status silu_gate(void *context, void *out, const void *gate_up, size_t rows,
                             size_t hidden) {
    TIMED(silu_gate, 0.0, out, gate_up, rows, hidden);
}

static enum status silu_gate_backward(void *context, void *dgate_up, const void *dout,
                                      const void *gate_up, size_t rows, size_t hidden) {
    TIMED(silu_gate_backward, 0.0, dgate_up, dout, gate_up, rows, hidden);
}

static enum status dropout(void *context, void *out, const void *add, const void *in, size_t count,
                           const struct train_dropout *d) {
    TIMED(dropout, 0.0, out, add, in, count, d);
}

static enum status layernorm(void *context, void *out, void *stats, void *sum, const void *add,
                             const void *in, const struct train_dropout *d,
                             const struct train_norm *norm, size_t rows, size_t C) {
    TIMED(layernorm, 0.0, out, stats, sum, add, in, d, norm, rows, C);
}

static enum status layernorm_backward(void *context, void *din,
                                      const struct train_norm_gradient *gradient, const void *dout,
                                      const void *in, const void *stats,
                                      const struct train_norm *norm, size_t rows, size_t C) {
    TIMED(layernorm_backward, 0.0, din, gradient, dout, in, stats, norm, rows, C);
}

static enum status rmsnorm(void *context, void *out, void *stats, const void *in,
                           const struct train_norm *norm, size_t rows, size_t C) {
    TIMED(rmsnorm, 0.0, out, stats, in, norm, rows, C);
}

static enum status rmsnorm_backward(void *context, void *din, const void *add,
                                    const struct train_norm_gradient *gradient, const void *dout,
                                    const void *in, const void *stats,
                                    const struct train_norm *norm, size_t rows, size_t C) {
    TIMED(rmsnorm_backward, 0.0, din, add, gradient, dout, in, stats, norm, rows, C);
}

/* ---- Attention, tables, the optimiser ---- */

static enum status attention(void *context, void *out, void *lse, const struct train_attention *a) {
    TIMED(attention, 0.0, out, lse, a);
}

static enum status attention_backward(void *context,
                                      const struct train_attention_gradient *gradient,
                                      const void *dout, const void *out, const void *lse,
                                      const struct train_attention *a) {
    TIMED(attention_backward, 0.0, gradient, dout, out, lse, a);
}

static enum status rope(void *context, void *x, const int32_t *positions, size_t rows, size_t heads,
                        size_t HS, size_t stride, float theta, enum nn_rope_layout layout,
                        bool back) {
    TIMED(rope, 0.0, x, positions, rows, heads, HS, stride, theta, layout, back);
}

static enum status embedding(void *context, void *out, const void *table, const int32_t *ids,
                             size_t rows, size_t C, bool accumulate) {
    TIMED(embedding, 0.0, out, table, ids, rows, C, accumulate);
}

static enum status embedding_backward(void *context, void *dtable, const void *dout,
                                      const struct train_occurrences *occurrences, size_t C) {
    TIMED(embedding_backward, 0.0, dtable, dout, occurrences, C);
}

static enum status gather(void *context, void *out, const void *in, const int32_t *index,
                          size_t count, size_t C) {
    TIMED(gather, 0.0, out, in, index, count, C);
}

static enum status scatter(void *context, void *out, const void *in, const int32_t *index,
                           size_t count, size_t C) {
    TIMED(scatter, 0.0, out, in, index, count, C);
}

static enum status cross_entropy(void *context, void *logits, void *loss, const int32_t *labels,
                                 float scale, size_t M, size_t V) {
    TIMED(cross_entropy, 0.0, logits, loss, labels, scale, M, V);
}

static enum status clip(void *context, void *scale, void *norm, const void *gradient, size_t count,
                        float most) {
    TIMED(clip, 0.0, scale, norm, gradient, count, most);
}

static enum status adamw(void *context, const struct train_adamw *a) {
    TIMED(adamw, 0.0, a);
}

/* ---- The whole ---- */

void train_profile_wrap(struct train_profile *profile, struct train_engine *engine,
                        double (*clock)(void)) {
    *profile = (struct train_profile){.inner = *engine, .now = clock};
    *engine = (struct train_engine){.name = profile->inner.name,
                                    .context = profile,
                                    .activations = profile->inner.activations,
                                    .weights = profile->inner.weights,
                                    .destroy = destroy,
                                    .alloc = alloc,
                                    .release = release,
                                    .synchronize = synchronize,
                                    .at_once = train_engine_just_do,
#define ENTRY(name) .name = name,
                                    TRAIN_PROFILE_LIST(ENTRY)
#undef ENTRY
    };
    profile->begun = now(profile);
}

/* Sorts operators, longest first. */
static void sort(const struct train_profile *p, enum train_operator order[TRAIN_OPERATORS]) {
    for (int i = 0; i < TRAIN_OPERATORS; i++) {
        int at = i;
        for (; at > 0 && p->rows[order[at - 1]].seconds < p->rows[i].seconds; at--) {
            order[at] = order[at - 1];
        }
        order[at] = (enum train_operator)i;
    }
}

static void print_row(const char *name, const struct train_profile_row *row, double all,
                      FILE *stream) {
    fprintf(stream, "  %-24s %9zu %12.3f %6.1f%%", name, row->calls, row->seconds * 1e3,
            all > 0.0 ? 100.0 * row->seconds / all : 0.0);
    if (row->flops > 0.0 && row->seconds > 0.0) {
        fprintf(stream, " %9.3f", row->flops / row->seconds * 1e-12);
    }
    fputc('\n', stream);
}

void train_profile_print(const struct train_profile *p, bool modelled, FILE *stream) {
    enum train_operator order[TRAIN_OPERATORS];
    double all = now(p) - p->begun, rest = all;
    sort(p, order);
    fprintf(stream, "\n  %-24s %9s %12s %7s %9s   (%s)\n", "operator", "calls", "ms", "share",
            "TFLOP/s", modelled ? "modelled" : "measured, waiting after each");
    for (int i = 0; i < TRAIN_OPERATORS; i++) {
        const struct train_profile_row *row = &p->rows[order[i]];
        rest -= row->seconds;
        if (row->calls > 0) {
            print_row(names[order[i]], row, all, stream);
        }
    }
    fprintf(stream, "  %-24s %9s %12.3f %6.1f%%\n", "all else", "", rest * 1e3,
            all > 0.0 ? 100.0 * rest / all : 0.0);
}
