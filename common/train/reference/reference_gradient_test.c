/**
 * @file reference_gradient_test.c
 * @brief Every backward entry of the reference engine against central differences of its forward.
 *
 * The loss is the sum of out * dout for random dout. Attention's are in
 * reference_attention_gradient_test.c.
 */
#include <math.h>

#include "common/testing/testing.h"
#include "common/train/occurrences.h"
#include "common/train/reference/gradient_check.h"
#include "common/train/train_engine.h"

/* ---- linear ---- */

struct linear {
    struct train_engine engine;
    size_t M, N, K;
    double *in, *weight, *bias, *out;
    const double *dout, *add; /* add: the gradient that in has from elsewhere, or NULL */
};

static double linear_loss(void *arguments) {
    struct linear *l = arguments;
    EXPECT_OK(
        l->engine.linear(l->engine.context, l->out, l->in, l->weight, l->bias, l->M, l->N, l->K));
    double loss = gradient_dot(l->out, l->dout, l->M * l->N);
    return l->add != NULL ? loss + gradient_dot(l->in, l->add, l->M * l->K) : loss;
}

static enum status linear_back(const struct linear *l, double *din, const double *add,
                               double *dweight, double *dbias) {
    return l->engine.linear_backward(l->engine.context, din, add, dweight, dbias, l->dout, l->in,
                                     l->weight, l->M, l->N, l->K);
}

/* din that is add, din that is not wanted: the same gradients otherwise. */
static void check_linear_variants(struct gradient_tensors *t, const struct linear *l,
                                  const double *din, const double *base, const double *dweight) {
    size_t weights = l->N * l->K;
    if (l->add != NULL) {
        double *both = gradient_copy(t, l->add, l->M * l->K);
        EXPECT_OK(linear_back(l, both, both, gradient_copy(t, base, weights), NULL));
        gradient_same("din that is add", din, both, l->M * l->K);
    }
    double *alone = gradient_copy(t, base, weights);
    EXPECT_OK(linear_back(l, NULL, NULL, alone, NULL));
    gradient_same("dweight without din", dweight, alone, weights);
}

static void check_linear(size_t M, size_t N, size_t K, bool bias, bool add) {
    struct gradient_tensors t = gradient_tensors_create(M * 10007 + N * 101 + K);
    struct linear l = {
        .engine = t.engine,
        .M = M,
        .N = N,
        .K = K,
        .in = gradient_random(&t, M * K),
        .weight = gradient_random(&t, N * K),
        .bias = bias ? gradient_random(&t, N) : NULL,
        .out = gradient_unwritten(&t, M * N),
        .dout = gradient_random(&t, M * N),
        .add = add ? gradient_random(&t, M * K) : NULL,
    };
    double *din = gradient_unwritten(&t, M * K);
    double *base = gradient_random(&t, N * K), *dweight = gradient_copy(&t, base, N * K);
    double *bias_base = gradient_random(&t, N), *dbias = gradient_copy(&t, bias_base, N);
    EXPECT_OK(linear_back(&l, din, l.add, dweight, bias ? dbias : NULL));
    gradient_check("linear's din", l.in, din, NULL, M * K, linear_loss, &l);
    gradient_check("linear's dweight", l.weight, dweight, base, N * K, linear_loss, &l);
    if (bias) {
        gradient_check("linear's dbias", l.bias, dbias, bias_base, N, linear_loss, &l);
    } else {
        gradient_same("dbias that is not given", bias_base, dbias, N);
    }
    check_linear_variants(&t, &l, din, base, dweight);
    gradient_tensors_free(&t);
}

C_TEST(gradient, linear) {
    const size_t sizes[][3] = {{1, 1, 1}, {3, 5, 7}, {8, 4, 2}, {1, 9, 17}, {13, 1, 6}};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        for (int variant = 0; variant < 4; variant++) {
            check_linear(sizes[i][0], sizes[i][1], sizes[i][2], variant & 1, variant & 2);
        }
    }
}

/* ---- elementwise ---- */

struct elementwise {
    struct train_engine engine;
    size_t count;         /* of in */
    size_t rows, hidden;  /* the gate's */
    enum nn_activation f; /* the activation's */
    struct train_dropout dropout;
    double *in, *add, *out;
    const double *dout;
};

static double activation_loss(void *arguments) {
    struct elementwise *e = arguments;
    EXPECT_OK(e->engine.activation(e->engine.context, e->out, e->in, e->count, e->f));
    return gradient_dot(e->out, e->dout, e->count);
}

static void check_activation(enum nn_activation f, size_t count) {
    struct gradient_tensors t = gradient_tensors_create(count);
    struct elementwise e = {
        .engine = t.engine,
        .count = count,
        .f = f,
        .in = gradient_random(&t, count),
        .out = gradient_unwritten(&t, count),
        .dout = gradient_random(&t, count),
    };
    e.in[0] = -4.0; /* a tail, where the slope is small */
    double *din = gradient_unwritten(&t, count), *same = gradient_copy(&t, e.dout, count);
    void *context = e.engine.context;
    EXPECT_OK(e.engine.activation_backward(context, din, e.dout, e.in, count, f));
    gradient_check("an activation's din", e.in, din, NULL, count, activation_loss, &e);
    EXPECT_OK(e.engine.activation_backward(context, same, same, e.in, count, f));
    gradient_same("din that is dout", din, same, count);
    gradient_tensors_free(&t);
}

/* A bias's gradient is the sum of what its rows receive: of both functions, added to what is there.
 */
C_TEST(gradient, bias_before_activation_and_dropout) {
    enum { ROWS = 5, C = 3, N = ROWS * C };
    struct gradient_tensors t = gradient_tensors_create(N);
    struct train_engine e = t.engine;
    const struct train_dropout dropout = {.p = 0.4f, .seed = 3, .site = 1, .step = 2};
    double *in = gradient_random(&t, N), *dout = gradient_random(&t, N);
    double *din = gradient_unwritten(&t, N), *want = gradient_unwritten(&t, N);
    double dbias[C] = {1.0, 2.0, 3.0}, sums[C] = {1.0, 2.0, 3.0};
    EXPECT_OK(e.activation_backward(e.context, want, dout, in, N, NN_GELU));
    EXPECT_OK(e.activation_bias_backward(e.context, din, dbias, dout, in, ROWS, C, NN_GELU));
    gradient_same("din of the activation", din, want, N);
    for (size_t i = 0; i < N; i++) {
        sums[i % C] += want[i];
    }
    EXPECT_OK(e.dropout(e.context, want, NULL, dout, N, &dropout));
    EXPECT_OK(e.dropout_bias_backward(e.context, din, dbias, dout, ROWS, C, &dropout));
    gradient_same("din of dropout", din, want, N);
    for (size_t i = 0; i < N; i++) {
        sums[i % C] += want[i];
    }
    for (size_t c = 0; c < C; c++) {
        EXPECT_NEAR(sums[c], dbias[c], 1e-12);
    }
    gradient_tensors_free(&t);
}

C_TEST(gradient, activation) {
    check_activation(NN_GELU, 1);
    check_activation(NN_GELU, 257);
    check_activation(NN_TANH, 1);
    check_activation(NN_TANH, 64);
}

static double gate_loss(void *arguments) {
    struct elementwise *e = arguments;
    EXPECT_OK(e->engine.silu_gate(e->engine.context, e->out, e->in, e->rows, e->hidden));
    return gradient_dot(e->out, e->dout, e->count / 2);
}

static void check_silu_gate(size_t rows, size_t hidden) {
    struct gradient_tensors t = gradient_tensors_create(rows * 100 + hidden);
    struct elementwise e = {
        .engine = t.engine,
        .count = 2 * rows * hidden,
        .rows = rows,
        .hidden = hidden,
        .in = gradient_random(&t, 2 * rows * hidden),
        .out = gradient_unwritten(&t, rows * hidden),
        .dout = gradient_random(&t, rows * hidden),
    };
    double *din = gradient_unwritten(&t, e.count);
    EXPECT_OK(e.engine.silu_gate_backward(e.engine.context, din, e.dout, e.in, rows, hidden));
    gradient_check("silu_gate's dgate_up", e.in, din, NULL, e.count, gate_loss, &e);
    gradient_tensors_free(&t);
}

C_TEST(gradient, silu_gate) {
    check_silu_gate(1, 1);
    check_silu_gate(3, 7);
    check_silu_gate(5, 16);
}

static enum status drop(const struct elementwise *e, double *out, const double *add,
                        const double *in) {
    return e->engine.dropout(e->engine.context, out, add, in, e->count, &e->dropout);
}

static double dropout_loss(void *arguments) {
    struct elementwise *e = arguments;
    EXPECT_OK(drop(e, e->out, e->add, e->in));
    return gradient_dot(e->out, e->dout, e->count);
}

/* out that is add or in. */
static void check_dropout_overlaps(struct gradient_tensors *t, const struct elementwise *e) {
    double *in = gradient_copy(t, e->in, e->count);
    EXPECT_OK(drop(e, e->out, e->add, e->in));
    EXPECT_OK(drop(e, in, e->add, in));
    gradient_same("out that is in", e->out, in, e->count);
    if (e->add != NULL) {
        double *add = gradient_copy(t, e->add, e->count);
        EXPECT_OK(drop(e, add, add, e->in));
        gradient_same("out that is add", e->out, add, e->count);
    }
}

static void check_dropout(float p, bool add, size_t count) {
    struct gradient_tensors t = gradient_tensors_create(count);
    struct elementwise e = {
        .engine = t.engine,
        .count = count,
        .dropout = {.p = p, .seed = 17, .site = 3, .step = 5},
        .in = gradient_random(&t, count),
        .add = add ? gradient_random(&t, count) : NULL,
        .out = gradient_unwritten(&t, count),
        .dout = gradient_random(&t, count),
    };
    double *din = gradient_unwritten(&t, count);
    EXPECT_OK(drop(&e, din, NULL, e.dout));
    gradient_check("dropout's din", e.in, din, NULL, count, dropout_loss, &e);
    if (add) {
        gradient_check("dropout's dadd", e.add, e.dout, NULL, count, dropout_loss, &e);
    }
    check_dropout_overlaps(&t, &e);
    gradient_tensors_free(&t);
}

C_TEST(gradient, dropout) {
    for (int add = 0; add < 2; add++) {
        check_dropout(0.0f, add, 37);
        check_dropout(0.3f, add, 37);
        check_dropout(0.3f, add, 64);
    }
}

/* ---- norms ---- */

struct norm {
    struct train_engine engine;
    size_t rows, C;
    struct train_dropout dropout;
    struct train_norm norm;
    double *in, *add, *sum, *out, *stats, *weight, *bias;
    const double *dout, *elsewhere; /* elsewhere: RMSNorm's add, or NULL */
};

static struct norm norm_create(struct gradient_tensors *t, size_t rows, size_t C, bool bias) {
    struct norm n = {
        .engine = t->engine,
        .rows = rows,
        .C = C,
        .in = gradient_random(t, rows * C),
        .sum = gradient_unwritten(t, rows * C),
        .out = gradient_unwritten(t, rows * C),
        .stats = gradient_unwritten(t, rows * 2),
        .weight = gradient_random(t, C),
        .bias = bias ? gradient_random(t, C) : NULL,
        .dout = gradient_random(t, rows * C),
    };
    n.norm = (struct train_norm){.weight = n.weight, .bias = n.bias, .eps = 1e-5f};
    return n;
}

static enum status layernorm(const struct norm *n, double *sum, const double *add,
                             const double *in) {
    return n->engine.layernorm(n->engine.context, n->out, n->stats, sum, add, in, &n->dropout,
                               &n->norm, n->rows, n->C);
}

static double layernorm_loss(void *arguments) {
    struct norm *n = arguments;
    EXPECT_OK(layernorm(n, n->sum, n->add, n->in));
    return gradient_dot(n->out, n->dout, n->rows * n->C);
}

/* sum that is in or add: the same out and sum. */
static void check_layernorm_overlaps(struct gradient_tensors *t, const struct norm *n) {
    size_t count = n->rows * n->C;
    double *in = gradient_copy(t, n->in, count);
    EXPECT_OK(layernorm(n, n->sum, n->add, n->in));
    double *out = gradient_copy(t, n->out, count);
    EXPECT_OK(layernorm(n, in, n->add, in));
    gradient_same("sum that is in", n->sum, in, count);
    gradient_same("out with sum that is in", out, n->out, count);
    if (n->add != NULL) {
        double *add = gradient_copy(t, n->add, count);
        EXPECT_OK(layernorm(n, add, add, n->in));
        gradient_same("sum that is add", n->sum, add, count);
        gradient_same("out with sum that is add", out, n->out, count);
    }
}

static enum status layernorm_back(const struct norm *n, double *din, double *dweight, double *dbias,
                                  const double *dout) {
    struct train_norm_gradient gradient = {dweight, dbias};
    return n->engine.layernorm_backward(n->engine.context, din, &gradient, dout, n->sum, n->stats,
                                        &n->norm, n->rows, n->C);
}

static void check_layernorm(size_t rows, size_t C, float p, bool add) {
    struct gradient_tensors t = gradient_tensors_create(rows * 1000 + C);
    struct norm n = norm_create(&t, rows, C, true);
    size_t count = rows * C;
    n.dropout = (struct train_dropout){.p = p, .seed = 5, .site = 2, .step = 9};
    n.add = add ? gradient_random(&t, count) : NULL;
    double *dsum = gradient_unwritten(&t, count), *din = gradient_unwritten(&t, count);
    double *base = gradient_random(&t, 2 * C), *parameters = gradient_copy(&t, base, 2 * C);
    EXPECT_OK(layernorm(&n, n.sum, n.add, n.in));
    EXPECT_OK(layernorm_back(&n, dsum, parameters, parameters + C, n.dout));
    EXPECT_OK(n.engine.dropout(n.engine.context, din, NULL, dsum, count, &n.dropout));
    double *same = gradient_copy(&t, n.dout, count), *again = gradient_copy(&t, base, 2 * C);
    EXPECT_OK(layernorm_back(&n, same, again, again + C, same));
    gradient_same("din that is dout", dsum, same, count);
    gradient_same("parameters' gradients again", parameters, again, 2 * C);
    gradient_check("layernorm's din", n.in, din, NULL, count, layernorm_loss, &n);
    if (add) {
        gradient_check("layernorm's dadd", n.add, dsum, NULL, count, layernorm_loss, &n);
    }
    gradient_check("layernorm's dweight", n.weight, parameters, base, C, layernorm_loss, &n);
    gradient_check("layernorm's dbias", n.bias, parameters + C, base + C, C, layernorm_loss, &n);
    check_layernorm_overlaps(&t, &n);
    gradient_tensors_free(&t);
}

C_TEST(gradient, layernorm) {
    for (int add = 0; add < 2; add++) {
        check_layernorm(1, 3, 0.0f, add);
        check_layernorm(4, 9, 0.3f, add);
        check_layernorm(7, 16, 0.0f, add);
        check_layernorm(5, 33, 0.3f, add);
    }
}

static double rmsnorm_loss(void *arguments) {
    struct norm *n = arguments;
    EXPECT_OK(
        n->engine.rmsnorm(n->engine.context, n->out, n->stats, n->in, &n->norm, n->rows, n->C));
    double loss = gradient_dot(n->out, n->dout, n->rows * n->C);
    return n->elsewhere == NULL ? loss : loss + gradient_dot(n->in, n->elsewhere, n->rows * n->C);
}

static enum status rmsnorm_back(const struct norm *n, double *din, const double *add,
                                double *dweight, const double *dout) {
    struct train_norm_gradient gradient = {dweight, NULL};
    return n->engine.rmsnorm_backward(n->engine.context, din, add, &gradient, dout, n->in, n->stats,
                                      &n->norm, n->rows, n->C);
}

static void check_rmsnorm(size_t rows, size_t C, bool elsewhere) {
    struct gradient_tensors t = gradient_tensors_create(rows * 1000 + C);
    struct norm n = norm_create(&t, rows, C, false);
    size_t count = rows * C;
    n.elsewhere = elsewhere ? gradient_random(&t, count) : NULL;
    double *din = gradient_unwritten(&t, count), *same = gradient_copy(&t, n.dout, count);
    double *base = gradient_random(&t, C), *dweight = gradient_copy(&t, base, C);
    (void)rmsnorm_loss(&n); /* the statistics */
    EXPECT_OK(rmsnorm_back(&n, din, n.elsewhere, dweight, n.dout));
    EXPECT_OK(rmsnorm_back(&n, same, n.elsewhere, gradient_copy(&t, base, C), same));
    gradient_same("din that is dout", din, same, count);
    if (elsewhere) {
        double *add = gradient_copy(&t, n.elsewhere, count);
        EXPECT_OK(rmsnorm_back(&n, add, add, gradient_copy(&t, base, C), n.dout));
        gradient_same("din that is add", din, add, count);
    }
    gradient_check("rmsnorm's din", n.in, din, NULL, count, rmsnorm_loss, &n);
    gradient_check("rmsnorm's dweight", n.weight, dweight, base, C, rmsnorm_loss, &n);
    gradient_tensors_free(&t);
}

C_TEST(gradient, rmsnorm) {
    for (int elsewhere = 0; elsewhere < 2; elsewhere++) {
        check_rmsnorm(1, 2, elsewhere);
        check_rmsnorm(4, 9, elsewhere);
        check_rmsnorm(7, 16, elsewhere);
        check_rmsnorm(3, 65, elsewhere);
    }
}

/* ---- tables and rows ---- */

struct rows {
    struct train_engine engine;
    size_t count, V, C;
    const int32_t *index;
    double *in, *out;
    const double *base, *dout; /* base: what out was before */
    bool accumulate;
};

static double embedding_loss(void *arguments) {
    struct rows *r = arguments;
    for (size_t i = 0; i < r->count * r->C; i++) {
        r->out[i] = r->accumulate ? r->base[i] : NAN;
    }
    EXPECT_OK(r->engine.embedding(r->engine.context, r->out, r->in, r->index, r->count, r->C,
                                  r->accumulate));
    return gradient_dot(r->out, r->dout, r->count * r->C);
}

static void check_embedding(size_t count, size_t V, size_t C, bool accumulate) {
    struct gradient_tensors t = gradient_tensors_create(count * 1000 + V);
    struct rows r = {
        .engine = t.engine,
        .count = count,
        .V = V,
        .C = C,
        .index = gradient_integers(&t, count, V),
        .in = gradient_random(&t, V * C),
        .out = gradient_unwritten(&t, count * C),
        .base = gradient_random(&t, count * C),
        .dout = gradient_random(&t, count * C),
        .accumulate = accumulate,
    };
    struct train_occurrences occurrences;
    int32_t *block = gradient_integers(&t, train_occurrences_most(count), 1);
    EXPECT_OK(train_occurrences_build(&occurrences, block, gradient_integers(&t, V, 1), r.index,
                                      count, V, NULL));
    EXPECT_TRUE(count <= TRAIN_PIECE * V || occurrences.piece_count > occurrences.id_count);
    double *base = gradient_random(&t, V * C), *dtable = gradient_copy(&t, base, V * C);
    EXPECT_OK(r.engine.embedding_backward(r.engine.context, dtable, r.dout, &occurrences, C));
    gradient_check("embedding's dtable", r.in, dtable, base, V * C, embedding_loss, &r);
    gradient_tensors_free(&t);
}

C_TEST(gradient, embedding) {
    for (int accumulate = 0; accumulate < 2; accumulate++) {
        check_embedding(1, 1, 1, accumulate);
        check_embedding(9, 5, 3, accumulate);
        check_embedding(13, 40, 7, accumulate);                     /* ids that do not occur */
        check_embedding(2 * 3 * TRAIN_PIECE + 5, 3, 2, accumulate); /* several pieces an id */
    }
}

/* All V rows in a random order. */
static int32_t *shuffled(struct gradient_tensors *t, size_t V) {
    int32_t *all = gradient_integers(t, V, 1);
    for (size_t i = 0; i < V; i++) {
        size_t j = (size_t)rng_below(&t->rng, i + 1);
        all[i] = all[j];
        all[j] = (int32_t)i;
    }
    return all;
}

static double gather_loss(void *arguments) {
    struct rows *r = arguments;
    EXPECT_OK(r->engine.gather(r->engine.context, r->out, r->in, r->index, r->count, r->C));
    return gradient_dot(r->out, r->dout, r->count * r->C);
}

/* gather's gradient is scatter. */
static void check_gather(size_t count, size_t V, size_t C) {
    struct gradient_tensors t = gradient_tensors_create(count * 1000 + V);
    struct rows r = {
        .engine = t.engine,
        .count = count,
        .V = V,
        .C = C,
        .index = shuffled(&t, V),
        .in = gradient_random(&t, V * C),
        .out = gradient_unwritten(&t, count * C),
        .dout = gradient_random(&t, count * C),
    };
    double *base = gradient_random(&t, V * C), *din = gradient_copy(&t, base, V * C);
    EXPECT_OK(r.engine.scatter(r.engine.context, din, r.dout, r.index, count, C));
    gradient_check("gather's din", r.in, din, base, V * C, gather_loss, &r);
    gradient_tensors_free(&t);
}

C_TEST(gradient, gather) {
    check_gather(1, 1, 1);
    check_gather(3, 11, 5);
    check_gather(8, 8, 2);
}

/* ---- cross-entropy ---- */

struct cross_entropy {
    struct train_engine engine;
    size_t M, V;
    const int32_t *labels;
    float scale;
    double *logits, *scratch; /* scratch: (M, V) */
};

static double cross_entropy_loss(void *arguments) {
    struct cross_entropy *c = arguments;
    double loss = 0.5; /* is added to */
    for (size_t i = 0; i < c->M * c->V; i++) {
        c->scratch[i] = c->logits[i];
    }
    EXPECT_OK(c->engine.cross_entropy(c->engine.context, c->scratch, &loss, c->labels, c->scale,
                                      c->M, c->V));
    return loss;
}

static void check_cross_entropy(size_t M, size_t V, float scale, bool hidden) {
    struct gradient_tensors t = gradient_tensors_create(M * 1000 + V);
    int32_t *labels = gradient_integers(&t, M, V);
    for (size_t m = 0; hidden && m < M; m += 2) {
        labels[m] = -1;
    }
    struct cross_entropy c = {
        .engine = t.engine,
        .M = M,
        .V = V,
        .labels = labels,
        .scale = scale,
        .logits = gradient_random(&t, M * V),
        .scratch = gradient_unwritten(&t, M * V),
    };
    (void)cross_entropy_loss(&c);
    double *dlogits = gradient_copy(&t, c.scratch, M * V);
    gradient_check("cross_entropy's logits", c.logits, dlogits, NULL, M * V, cross_entropy_loss,
                   &c);
    for (size_t i = 0; i < M * V; i++) {
        EXPECT_TRUE(labels[i / V] != -1 || dlogits[i] == 0.0);
    }
    gradient_tensors_free(&t);
}

C_TEST(gradient, cross_entropy) {
    check_cross_entropy(1, 2, 1.0f, false);
    check_cross_entropy(5, 7, 0.125f, false);
    check_cross_entropy(4, 33, 0.3f, true);
    check_cross_entropy(9, 5, 2.0f, true);
}
