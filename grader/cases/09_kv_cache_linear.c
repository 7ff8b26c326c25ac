#include "grader/cases/09_kv_cache_linear.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/testing/compare.h"
#include "common/testing/words.h"
#include "grader/inputs.h"

static const float NORM_EPS = 0.25f;

/* Host values of a case while it is made. */
struct values {
    float *weight, *in, *norm; /* (N, K) as stored, (K), (K) */
    double *y;                 /* (K): the normed input */
};

static void name_case(struct kv_linear_case *c) {
    static const char *const residuals[] = {"", ", residual", ", residual in place"};
    const struct kv_linear_spec *s = &c->spec;
    char skew[64] = "";
    if (s->skew > 0) {
        snprintf(skew, sizeof skew, ", pointers %zu element%s past a multiple of 256", s->skew,
                 plural(s->skew));
    }
    snprintf(c->name, sizeof c->name, "kv_linear %s N=%zu K=%zu%s%s%s", nn_dtype_name(s->dtype),
             s->N, s->K, s->norm ? ", norm" : "", residuals[s->residual], skew);
}

/* y = in, or its RMSNorm. */
static void make_y(const struct kv_linear_spec *s, struct values *v) {
    double squares = 0.0;
    for (size_t k = 0; k < s->K; k++) {
        squares += (double)v->in[k] * v->in[k];
    }
    double factor = s->norm ? 1.0 / sqrt(squares / (double)s->K + (double)NORM_EPS) : 1.0;
    for (size_t k = 0; k < s->K; k++) {
        v->y[k] = (double)v->in[k] * factor * (s->norm ? (double)v->norm[k] : 1.0);
    }
}

static void make_result(struct kv_linear_case *c, const struct values *v) {
    const struct kv_linear_spec *s = &c->spec;
    double sizes = 0.0;
    for (size_t n = 0; n < s->N; n++) {
        double sum = 0.0, squares = 0.0;
        for (size_t k = 0; k < s->K; k++) {
            double product = (double)v->weight[n * s->K + k] * v->y[k];
            sum += product;
            squares += product * product;
        }
        double residual = s->residual != KV_NO_RESIDUAL ? (double)c->residual_host[n] : 0.0;
        c->want[n] = residual + sum;
        sizes += squares + sum * sum + residual * residual;
    }
    c->size = sqrt(sizes / (double)(s->N > 0 ? s->N : 1));
}

/* Values as the type has them, and the bytes of that. */
static enum status store_weight(struct kv_linear_case *c, struct values *v, bool guarded,
                                struct error *error) {
    const struct kv_linear_spec *s = &c->spec;
    size_t e = nn_dtype_bytes(s->dtype), count = s->N * s->K;
    void *stored = malloc(count * e + 1);
    if (stored == NULL) {
        return error_set(error, STATUS_OUT_OF_MEMORY, "the grader is out of memory");
    }
    nn_dtype_store(stored, v->weight, count, s->dtype);
    nn_dtype_load(v->weight, stored, count, s->dtype);
    enum status status = kv_block_create(&c->weight, count * e, guarded, s->skew * e, error);
    if (status == STATUS_OK) {
        status = kv_block_put(&c->weight, stored, error);
    }
    free(stored);
    return status;
}

static enum status put_floats(struct kv_block *block, const float *values, size_t count,
                              bool guarded, size_t skew, struct error *error) {
    TRY(kv_block_create(block, count * sizeof(float), guarded, skew * sizeof(float), error));
    return values != NULL ? kv_block_put(block, values, error) : STATUS_OK;
}

static enum status fill(struct kv_linear_case *c, struct values *v, struct rng *rng, bool guarded,
                        struct error *error) {
    const struct kv_linear_spec *s = &c->spec;
    grader_fill(rng, v->weight, s->N, s->K);
    grader_fill(rng, v->in, 1, s->K);
    grader_fill(rng, v->norm, 1, s->K);
    grader_fill(rng, c->residual_host, 1, s->N);
    TRY(store_weight(c, v, guarded, error));
    TRY(put_floats(&c->in, v->in, s->K, guarded, s->skew, error));
    TRY(put_floats(&c->norm, v->norm, s->norm ? s->K : 0, guarded, s->skew, error));
    size_t other = s->residual == KV_RESIDUAL ? s->N : 0;
    TRY(put_floats(&c->residual, other > 0 ? c->residual_host : NULL, other, guarded, s->skew,
                   error));
    TRY(put_floats(&c->out, NULL, s->N, guarded, s->skew, error));
    make_y(s, v);
    make_result(c, v);
    return STATUS_OK;
}

enum status kv_linear_case_create(struct kv_linear_case *c, const struct kv_linear_spec *spec,
                                  struct rng *rng, bool guarded, struct error *error) {
    size_t N = spec->N, K = spec->K;
    *c = (struct kv_linear_case){.spec = *spec};
    name_case(c);
    struct values v = {malloc(N * K * sizeof(float) + 1), malloc(K * sizeof(float) + 1),
                       malloc(K * sizeof(float) + 1), malloc(K * sizeof(double) + 1)};
    c->residual_host = malloc(N * sizeof(float) + 1);
    c->want = malloc(N * sizeof(double) + 1);
    c->got = malloc(N * sizeof(float) + 1);
    bool good = v.weight != NULL && v.in != NULL && v.norm != NULL && v.y != NULL &&
                c->residual_host != NULL && c->want != NULL && c->got != NULL;
    enum status status = good ? fill(c, &v, rng, guarded, error)
                              : error_set(error, STATUS_OUT_OF_MEMORY, "out of memory");
    const float *residual = c->residual.data;
    /* A norm without elements is one all the same: some address, which nobody may read. */
    const float *norm = spec->norm && K == 0 ? c->out.data : c->norm.data;
    c->call = (struct kv_linear){.N = N,
                                 .K = K,
                                 .dtype = spec->dtype,
                                 .weight = c->weight.data,
                                 .in = c->in.data,
                                 .norm = norm,
                                 .eps = spec->norm ? NORM_EPS : NAN,
                                 .residual = spec->residual == KV_IN_PLACE ? c->out.data : residual,
                                 .out = c->out.data};
    free(v.weight);
    free(v.in);
    free(v.norm);
    free(v.y);
    return status;
}

enum status kv_linear_case_run(struct kv_linear_case *c, kv_linear_function *run,
                               device_stream stream, struct error *error) {
    TRY(kv_block_put(&c->out, c->spec.residual == KV_IN_PLACE ? c->residual_host : NULL, error));
    TRY(run(&c->call, stream, error));
    return device_synchronize(stream, error);
}

/* What of the inputs is not as it was, or NULL. */
static enum status find_changed(const struct kv_linear_case *c, const char **what,
                                struct error *error) {
    const struct kv_block *inputs[] = {&c->weight, &c->in, &c->norm, &c->residual};
    static const char *const names[] = {"weight", "in", "norm", "residual"};
    *what = NULL;
    for (int i = 0; i < 4 && *what == NULL; i++) {
        bool intact, changed;
        TRY(kv_block_get(inputs[i], NULL, &intact, &changed, error));
        *what = !intact || changed ? names[i] : NULL;
    }
    return STATUS_OK;
}

static struct tolerance tolerance_of(const struct kv_linear_case *c) {
    double bound = tolerance_dot_f32(c->spec.K, 1.0).absolute + (c->spec.norm ? 0x1p-21 : 0.0);
    double squares = 0.0;
    for (size_t n = 0; n < c->spec.N; n++) {
        squares += c->want[n] * c->want[n];
    }
    double whole = c->size * sqrt((double)c->spec.N);
    return (struct tolerance){.absolute = bound * c->size,
                              .relative = bound,
                              .norm = squares > 0.0 ? bound * whole / sqrt(squares) : 0.0};
}

enum status kv_linear_case_check(struct kv_linear_case *c, char *text, size_t size,
                                 struct error *error) {
    bool intact, unused;
    const char *what;
    text[0] = '\0';
    TRY(kv_block_get(&c->out, c->got, &intact, &unused, error));
    TRY(find_changed(c, &what, error));
    struct comparison result = compare_f32(c->got, c->want, c->spec.N, tolerance_of(c));
    if (!result.pass) {
        comparison_describe(&result, 1, text, size);
    } else if (!intact) {
        snprintf(text, size, "wrote outside of out");
    } else if (what != NULL) {
        snprintf(text, size, "changed its input: %s", what);
    }
    return STATUS_OK;
}

void kv_linear_case_free(struct kv_linear_case *c) {
    struct kv_block *blocks[] = {&c->weight, &c->in, &c->norm, &c->residual, &c->out};
    for (int i = 0; i < 5; i++) {
        kv_block_free(blocks[i]);
    }
    free(c->residual_host);
    free(c->want);
    free(c->got);
}
