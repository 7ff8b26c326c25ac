#include "labs/09_kv_cache/problem/linear.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/rng_bell.h"
#include "common/testing/compare.h"
#include "common/testing/words.h"

static const float NORM_EPS = 0.25f;

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
static void make_y(struct kv_linear_case *c) {
    const struct kv_linear_spec *s = &c->spec;
    double squares = 0.0;
    for (size_t k = 0; k < s->K; k++) {
        squares += (double)c->in_host[k] * c->in_host[k];
    }
    double rstd = s->norm ? 1.0 / sqrt(squares / (double)s->K + (double)NORM_EPS) : 1.0;
    for (size_t k = 0; k < s->K; k++) {
        c->y[k] = (double)c->in_host[k] * rstd * (s->norm ? (double)c->norm_host[k] : 1.0);
    }
}

/* Two doubles: every 64-bit machine's vector registers hold at least these. */
typedef double pair __attribute__((vector_size(16)));

struct sums {
    double products, squares;
};

/* Four sums of each at a time, or an addition waits for the one before it. */
static struct sums sums_of(const float *weight, const double *y, size_t K) {
    pair a = {0.0}, b = {0.0}, a_squares = {0.0}, b_squares = {0.0};
    size_t k = 0;
    for (; k + 4 <= K; k += 4) {
        const pair x = (pair){weight[k], weight[k + 1]} * (pair){y[k], y[k + 1]};
        const pair z = (pair){weight[k + 2], weight[k + 3]} * (pair){y[k + 2], y[k + 3]};
        a += x;
        b += z;
        a_squares += x * x;
        b_squares += z * z;
    }
    a += b;
    a_squares += b_squares;
    struct sums sums = {a[0] + a[1], a_squares[0] + a_squares[1]};
    for (; k < K; k++) {
        double product = (double)weight[k] * y[k];
        sums.products += product;
        sums.squares += product * product;
    }
    return sums;
}

static void make_result(struct kv_linear_case *c) {
    const struct kv_linear_spec *s = &c->spec;
    double sizes = 0.0;
    for (size_t n = 0; n < s->N; n++) {
        const struct sums sums = sums_of(c->weight_host + n * s->K, c->y, s->K);
        double sum = sums.products, squares = sums.squares;
        double residual = s->residual != KV_NO_RESIDUAL ? (double)c->residual_host[n] : 0.0;
        c->want[n] = residual + sum;
        sizes += squares + sum * sum + residual * residual;
    }
    c->size = sqrt(sizes / (double)(s->N > 0 ? s->N : 1));
}

/* What a call only reads: weights as stored, and the norm's. */
static enum status put_parameters(struct kv_linear_case *c, const void *stored,
                                  struct error *error) {
    TRY(device_buffer_put(&c->weight, stored, error));
    return c->spec.norm ? device_buffer_put(&c->norm, c->norm_host, error) : STATUS_OK;
}

/* Rounds the weights to their type, on the host and on the device. */
static enum status store_parameters(struct kv_linear_case *c, struct error *error) {
    const struct kv_linear_spec *s = &c->spec;
    size_t count = s->N * s->K;
    void *stored = malloc(count * nn_dtype_bytes(s->dtype) + 1);
    if (stored == NULL) {
        return error_set(error, STATUS_OUT_OF_MEMORY, "the grader is out of memory");
    }
    nn_dtype_store(stored, c->weight_host, count, s->dtype);
    nn_dtype_load(c->weight_host, stored, count, s->dtype);
    enum status status = put_parameters(c, stored, error);
    free(stored);
    return status;
}

static enum status make_block(struct device_buffer *block, size_t count, size_t element,
                              bool guarded, size_t skew, struct error *error) {
    TRY(device_buffer_create_bytes(block, count * element, guarded, skew * element, error));
    block->data = count > 0 ? block->data : NULL; /* an argument that a call does not have */
    return STATUS_OK;
}

static enum status make_blocks(struct kv_linear_case *c, bool guarded, struct error *error) {
    const struct kv_linear_spec *s = &c->spec;
    size_t e = nn_dtype_bytes(s->dtype), other = s->residual == KV_RESIDUAL ? s->N : 0;
    TRY(make_block(&c->weight, s->N * s->K, e, guarded, s->skew, error));
    TRY(make_block(&c->in, s->K, sizeof(float), guarded, s->skew, error));
    TRY(make_block(&c->norm, s->norm ? s->K : 0, sizeof(float), guarded, s->skew, error));
    TRY(make_block(&c->residual, other, sizeof(float), guarded, s->skew, error));
    return make_block(&c->out, s->N, sizeof(float), guarded, s->skew, error);
}

static void fill_call(struct kv_linear_case *c) {
    const struct kv_linear_spec *s = &c->spec;
    const float *residual = c->residual.data;
    /* A norm without elements is not NULL: it is some address, which must not be read. */
    const float *norm = s->norm && s->K == 0 ? c->out.data : c->norm.data;
    c->call = (struct kv_linear){.N = s->N,
                                 .K = s->K,
                                 .dtype = s->dtype,
                                 .weight = c->weight.data,
                                 .in = c->in.data,
                                 .norm = norm,
                                 .eps = s->norm ? NORM_EPS : NAN,
                                 .residual = s->residual == KV_IN_PLACE ? c->out.data : residual,
                                 .out = c->out.data};
}

/* Sets out for a call. */
static enum status put_out(struct kv_linear_case *c, struct error *error) {
    return device_buffer_put(&c->out, c->spec.residual == KV_IN_PLACE ? c->residual_host : NULL,
                             error);
}

enum { BLOCKS = 5 };

static void list_blocks(struct kv_linear_case *c, struct device_buffer *all[BLOCKS]) {
    struct device_buffer *const blocks[BLOCKS] = {&c->weight, &c->in, &c->norm, &c->residual,
                                                  &c->out};
    memcpy(all, blocks, sizeof blocks);
}

enum status kv_linear_case_create(struct kv_linear_case *c, const struct kv_linear_spec *spec,
                                  struct rng *rng, bool guarded, struct error *error) {
    size_t N = spec->N, K = spec->K;
    *c = (struct kv_linear_case){.spec = *spec};
    name_case(c);
    c->weight_host = malloc(N * K * sizeof(float) + 1);
    c->in_host = malloc(K * sizeof(float) + 1);
    c->norm_host = malloc(K * sizeof(float) + 1);
    c->residual_host = malloc(N * sizeof(float) + 1);
    c->y = malloc(K * sizeof(double) + 1);
    c->want = malloc(N * sizeof(double) + 1);
    c->got = malloc(N * sizeof(float) + 1);
    if (c->weight_host == NULL || c->in_host == NULL || c->norm_host == NULL ||
        c->residual_host == NULL || c->y == NULL || c->want == NULL || c->got == NULL) {
        return error_set(error, STATUS_OUT_OF_MEMORY, "the grader is out of memory");
    }
    TRY(make_blocks(c, guarded, error));
    fill_call(c);
    rng_fill_bell_rows(rng, c->weight_host, N, K);
    rng_fill_bell_rows(rng, c->norm_host, 1, K);
    TRY(store_parameters(c, error));
    kv_linear_case_draw(c, rng);
    return kv_linear_case_send(c, error);
}

enum status kv_linear_case_place(struct kv_linear_case *copy, struct error *error) {
    const struct device_buffer original = copy->weight;
    struct device_buffer *blocks[BLOCKS];
    list_blocks(copy, blocks);
    for (int i = 0; i < BLOCKS; i++) {
        *blocks[i] = (struct device_buffer){0};
    }
    TRY(make_blocks(copy, false, error));
    fill_call(copy);
    TRY(put_parameters(copy, (const char *)original.expect + original.before, error));
    return kv_linear_case_send(copy, error);
}

void kv_linear_case_unplace(struct kv_linear_case *copy) {
    struct device_buffer *blocks[BLOCKS];
    list_blocks(copy, blocks);
    for (int i = 0; i < BLOCKS; i++) {
        device_buffer_free(blocks[i]);
    }
}

void kv_linear_case_draw(struct kv_linear_case *c, struct rng *rng) {
    rng_fill_bell_rows(rng, c->in_host, 1, c->spec.K);
    rng_fill_bell_rows(rng, c->residual_host, 1, c->spec.N);
    make_y(c);
    make_result(c);
}

enum status kv_linear_case_send(struct kv_linear_case *c, struct error *error) {
    TRY(device_buffer_put(&c->in, c->in_host, error));
    if (c->spec.residual == KV_RESIDUAL) {
        TRY(device_buffer_put(&c->residual, c->residual_host, error));
    }
    return put_out(c, error);
}

enum status kv_linear_case_renew(struct kv_linear_case *c, struct rng *rng, struct error *error) {
    kv_linear_case_draw(c, rng);
    return kv_linear_case_send(c, error);
}

enum status kv_linear_case_run(struct kv_linear_case *c, kv_linear_function *run,
                               device_stream stream, struct error *error) {
    TRY(put_out(c, error));
    TRY(run(&c->call, stream, error));
    return device_synchronize(stream, error);
}

/* *what = the name of an input that has changed, or NULL. */
static enum status find_changed(const struct kv_linear_case *c, const char **what,
                                struct error *error) {
    const struct device_buffer *inputs[] = {&c->weight, &c->in, &c->norm, &c->residual};
    static const char *const names[] = {"weight", "in", "norm", "residual"};
    *what = NULL;
    for (int i = 0; i < 4 && *what == NULL; i++) {
        bool intact, changed;
        TRY(device_buffer_get(inputs[i], NULL, &intact, &changed, error));
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
    TRY(device_buffer_get(&c->out, c->got, &intact, &unused, error));
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
    kv_linear_case_unplace(c);
    void *host[] = {c->weight_host, c->in_host, c->norm_host, c->residual_host,
                    c->y,           c->want,    c->got};
    for (int i = 0; i < 7; i++) {
        free(host[i]);
    }
}
