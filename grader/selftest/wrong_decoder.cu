/*
 * Wrong submissions to lab 10. $WRONG_DECODER names one; each must be caught by the parity test,
 * with a message that leads to the mistake. "right" is the control: it must pass. It has a launch
 * for every operator, feeds prompts token by token and draws on the host, and must miss launches
 * and speedup.
 */
#include <cuda_fp16.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/models/sampler.h"
#include "labs/03_resident_weights/given/operators.h"
#include "labs/09_kv_cache/given/embedding_row.h"
#include "labs/09_kv_cache/kv_cache.h"
#include "labs/10_llama2_decoder/decoder.h"

#define MISTAKES(X)                                                                         \
    X(right)                                                                                \
    X(empty)              /* does nothing */                                                \
    X(stale_position)     /* every step is at the position of the first, as in its graph */ \
    X(own_counter)        /* counts positions itself, and does not look at the argument */  \
    X(lost_pieces)        /* a piece of a prompt does not see those before it */            \
    X(earlier_rows)       /* a piece of a prompt overwrites the cache's first rows */       \
    X(rope_from_zero)     /* rotary embedding begins at 0 in every piece of a prompt */     \
    X(always_interleaved) /* does not look at the rope's layout */                          \
    X(first_row)          /* a prompt's logits are those of its first token */              \
    X(silu_of_up)         /* SiLU of the wrong half */                                      \
    X(no_final_norm)      /* forgets the norm before the classifier */                      \
    X(no_residual)        /* forgets to add x behind attention */                           \
    X(shared_classifier)  /* takes the embedding for the classifier */                      \
    X(one_layer)          /* runs the first layer only */                                   \
    X(half)               /* activations are fp16 where fp32 is asked for */                \
    X(no_temperature)     /* draws as with temperature 1 */                                 \
    X(no_top_p)           /* does not look at top_p */                                      \
    X(no_top_k)           /* does not look at top_k */                                      \
    X(highest_of_ties)    /* greedy: the highest of the best */                             \
    X(own_logits)         /* draws from a copy that prefill and step made */                \
    X(same_state)         /* does not move the generator on */                              \
    X(one_model)          /* all decoders use the model that came last */                   \
    X(behind)             /* writes one element behind the logits */                        \
    X(changes_weights)    /* changes a norm */                                              \
    X(status)             /* reports a failure */

#define MISTAKE_VARIABLE "WRONG_DECODER"
#include "grader/selftest/mistakes.h"

enum { THREADS = 256 };

/* Keys and values are fp32 whatever the dtype: that is allowed, it is but larger. */
struct decoder {
    const struct decoder_model *model;
    struct decoder_io io;
    enum mistake mistake;
    device_stream stream;
    float *x, *y, *qkv, *heads, *gate_up; /* device */
    float *k, *v;                         /* device, (L, T, KVH*HS) */
    float *logits;                        /* host, (V) */
    float *copy;                          /* host, (V), of "own_logits" */
    size_t steps, first_position, counter;
};

/* The model that "one_model" uses. */
static const struct decoder_model *last_model;

static enum status allocate(float **memory, size_t count, device_stream stream,
                            struct error *error) {
    TRY(device_alloc((void **)memory, count * sizeof(float), error));
    return device_set(*memory, 0, count * sizeof(float), stream, error);
}

static enum status allocate_all(struct decoder *d, struct error *error) {
    const struct decoder_model *m = d->model;
    size_t kv = m->KVH * m->HS, cache = m->L * m->T * kv;
    TRY(allocate(&d->x, m->C, d->stream, error));
    TRY(allocate(&d->y, m->C, d->stream, error));
    TRY(allocate(&d->qkv, m->NH * m->HS + 2 * kv, d->stream, error));
    TRY(allocate(&d->heads, m->NH * m->HS, d->stream, error));
    TRY(allocate(&d->gate_up, 2 * m->hidden, d->stream, error));
    TRY(allocate(&d->k, cache, d->stream, error));
    TRY(allocate(&d->v, cache, d->stream, error));
    d->logits = (float *)calloc(m->V, sizeof(float));
    d->copy = (float *)calloc(m->V, sizeof(float));
    return d->logits != NULL && d->copy != NULL
               ? STATUS_OK
               : error_set(error, STATUS_OUT_OF_MEMORY, "out of memory");
}

enum status decoder_create(struct decoder **decoder, const struct decoder_model *model,
                           const struct decoder_io *io, size_t batch, device_stream stream,
                           struct error *error) {
    (void)batch;
    struct decoder *d = (struct decoder *)calloc(1, sizeof *d);
    *decoder = d;
    d->model = last_model = model;
    d->io = *io;
    d->mistake = chosen_mistake();
    d->stream = stream;
    return allocate_all(d, error);
}

void decoder_free(struct decoder *d) {
    if (d == NULL) {
        return;
    }
    void *const all[] = {d->x, d->y, d->qkv, d->heads, d->gate_up, d->k, d->v};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        device_free(all[i]);
    }
    free(d->logits);
    free(d->copy);
    free(d);
}

/* ---- One token ---- */

/* Where a token is: usually all the same. */
struct place {
    size_t row;  /* of the cache */
    size_t rope; /* position of rotary embedding */
    size_t from; /* first row that it sees */
    size_t seen; /* rows that it sees */
};

static __global__ void round_kernel(float *x, size_t count) {
    size_t i = blockIdx.x * (size_t)THREADS + threadIdx.x;
    if (i < count) {
        x[i] = __half2float(__float2half(x[i]));
    }
}

static __global__ void write_kernel(float *x) {
    *x = 1.0f;
}

/* "half": what a product reads has passed through fp16. */
static enum status round_it(const struct decoder *d, float *x, size_t count, struct error *error) {
    if (d->mistake != MISTAKE_half || d->model->dtype != NN_F32) {
        return STATUS_OK;
    }
    round_kernel<<<(unsigned)((count + THREADS - 1) / THREADS), THREADS, 0, d->stream>>>(x, count);
    return device_launched("round_kernel", error);
}

static enum status multiply(const struct decoder *d, float *out, const void *weight, float *in,
                            size_t N, size_t K, struct error *error) {
    struct kv_linear linear = {};
    linear.N = N, linear.K = K;
    linear.dtype = d->model->dtype;
    linear.weight = weight;
    linear.in = in;
    linear.out = out;
    TRY(round_it(d, in, K, error));
    return kv_linear(&linear, d->stream, error);
}

static enum status normalise(const struct decoder *d, const float *norm, struct error *error) {
    const struct decoder_model *m = d->model;
    return launch_rmsnorm(d->y, d->x, norm, 1, m->C, m->eps, d->stream, error);
}

static enum status rotate(const struct decoder *d, float *x, size_t heads, size_t position,
                          struct error *error) {
    const struct decoder_model *m = d->model;
    enum nn_rope_layout layout =
        d->mistake == MISTAKE_always_interleaved ? NN_ROPE_INTERLEAVED : m->layout;
    return launch_rope(x, 1, heads, m->HS, heads * m->HS, position, m->theta, layout, d->stream,
                       error);
}

static enum status attend(const struct decoder *d, size_t l, const struct place *p,
                          struct error *error) {
    const struct decoder_model *m = d->model;
    size_t q_width = m->NH * m->HS, kv_width = m->KVH * m->HS, row = kv_width * sizeof(float);
    float *k = d->k + l * m->T * kv_width, *v = d->v + l * m->T * kv_width;
    float *k_new = d->qkv + q_width, *v_new = k_new + kv_width;
    TRY(multiply(d, d->qkv, m->layers[l].qkv, d->y, q_width + 2 * kv_width, m->C, error));
    TRY(rotate(d, d->qkv, m->NH, p->rope, error));
    TRY(rotate(d, k_new, m->KVH, p->rope, error));
    TRY(device_copy(k + p->row * kv_width, k_new, row, d->stream, error));
    TRY(device_copy(v + p->row * kv_width, v_new, row, d->stream, error));
    struct nn_attention a = {};
    a.q = d->qkv;
    a.k = k + p->from * kv_width;
    a.v = v + p->from * kv_width;
    a.B = a.T = 1;
    a.S = p->seen;
    a.NH = m->NH, a.KVH = m->KVH, a.HS = m->HS;
    a.q_stride = q_width, a.kv_stride = kv_width;
    a.scale = 1.0f / sqrtf((float)m->HS);
    return launch_attention(d->heads, &a, d->stream, error);
}

static enum status add_to_x(const struct decoder *d, bool forgotten, struct error *error) {
    size_t C = d->model->C;
    return forgotten ? device_copy(d->x, d->y, C * sizeof(float), d->stream, error)
                     : launch_residual(d->x, d->x, d->y, C, d->stream, error);
}

static enum status run_layer(const struct decoder *d, size_t l, const struct place *p,
                             struct error *error) {
    const struct decoder_model *m = d->model;
    const struct decoder_layer *w = &m->layers[l];
    float *gate = d->gate_up, *up = d->gate_up + m->hidden;
    bool other = d->mistake == MISTAKE_silu_of_up;
    TRY(normalise(d, w->attention_norm, error));
    TRY(attend(d, l, p, error));
    TRY(multiply(d, d->y, w->out, d->heads, m->C, m->NH * m->HS, error));
    TRY(add_to_x(d, d->mistake == MISTAKE_no_residual, error));
    TRY(normalise(d, w->ffn_norm, error));
    TRY(multiply(d, gate, w->gate_up, d->y, 2 * m->hidden, m->C, error));
    TRY(launch_silu_gate(gate, other ? up : gate, other ? gate : up, m->hidden, d->stream, error));
    TRY(multiply(d, d->y, w->down, gate, m->C, m->hidden, error));
    return add_to_x(d, false, error);
}

static enum status classify(const struct decoder *d, struct error *error) {
    const struct decoder_model *m = d->model;
    const void *classifier = d->mistake == MISTAKE_shared_classifier ? m->embedding : m->classifier;
    if (d->mistake == MISTAKE_no_final_norm) {
        TRY(device_copy(d->y, d->x, m->C * sizeof(float), d->stream, error));
    } else {
        TRY(normalise(d, m->final_norm, error));
    }
    TRY(multiply(d, d->io.logits, classifier, d->y, m->V, m->C, error));
    if (d->mistake == MISTAKE_behind || d->mistake == MISTAKE_changes_weights) {
        float *target =
            d->mistake == MISTAKE_behind ? d->io.logits + m->V : (float *)(uintptr_t)m->final_norm;
        write_kernel<<<1, 1, 0, d->stream>>>(target);
        TRY(device_launched("write_kernel", error));
    }
    return STATUS_OK;
}

static enum status feed(struct decoder *d, int32_t token, const struct place *p,
                        struct error *error) {
    const struct decoder_model *m = d->model;
    size_t L = d->mistake == MISTAKE_one_layer ? 1 : m->L;
    TRY(embedding_row(d->x, m->embedding, m->dtype, (size_t)token, m->C, d->stream, error));
    for (size_t l = 0; l < L; l++) {
        TRY(run_layer(d, l, p, error));
    }
    return STATUS_OK;
}

/* What decoders begin a call with. @return whether there is nothing more to do */
static bool begin(struct decoder *d, enum status *status, struct error *error) {
    if (d->mistake == MISTAKE_one_model) {
        d->model = last_model;
    }
    *status = d->mistake == MISTAKE_status ? error_set(error, STATUS_DEVICE, "nothing works today")
                                           : STATUS_OK;
    return d->mistake == MISTAKE_status || d->mistake == MISTAKE_empty;
}

static enum status keep_logits(struct decoder *d, struct error *error) {
    return d->mistake != MISTAKE_own_logits
               ? STATUS_OK
               : device_read(d->copy, d->io.logits, d->model->V * sizeof(float), d->stream, error);
}

static struct place place_in_prompt(const struct decoder *d, size_t position, size_t i) {
    struct place p = {position + i, position + i, 0, position + i + 1};
    if (d->mistake == MISTAKE_lost_pieces) {
        p.from = position;
        p.seen = i + 1;
    }
    p.row = d->mistake == MISTAKE_earlier_rows ? i : p.row;
    p.rope = d->mistake == MISTAKE_rope_from_zero ? i : p.rope;
    return p;
}

enum status decoder_prefill(struct decoder *d, const int32_t *tokens, size_t count, size_t position,
                            struct error *error) {
    enum status status;
    if (begin(d, &status, error)) {
        return status;
    }
    for (size_t i = 0; i < count; i++) {
        const struct place p = place_in_prompt(d, position, i);
        TRY(feed(d, tokens[i], &p, error));
        if (i == (d->mistake == MISTAKE_first_row ? 0 : count - 1)) {
            TRY(classify(d, error));
        }
    }
    d->counter += count;
    return keep_logits(d, error);
}

/* ---- The next token ---- */

static int32_t highest_of_the_best(const float *logits, size_t V) {
    size_t best = 0;
    for (size_t i = 1; i < V; i++) {
        best = logits[i] >= logits[best] ? i : best;
    }
    return (int32_t)best;
}

static void make_mistakes(enum mistake mistake, struct llama2_sampling *how) {
    if (mistake == MISTAKE_no_temperature && how->temperature != 0.0f) {
        how->temperature = 1.0f;
    }
    how->top_p = mistake == MISTAKE_no_top_p ? 0.0f : how->top_p;
    how->top_k = mistake == MISTAKE_no_top_k ? 0 : how->top_k;
}

static enum status draw(struct decoder *d, int32_t *token, struct error *error) {
    struct sampling now;
    struct sampler sampler;
    size_t V = d->model->V, bytes = V * sizeof(float);
    TRY(device_read(&now, d->io.sampling, sizeof now, d->stream, error));
    TRY(device_read(d->logits, d->io.logits, bytes, d->stream, error));
    struct llama2_sampling how = {now.temperature, now.top_p, now.top_k, now.state};
    make_mistakes(d->mistake, &how);
    TRY(sampler_create(&sampler, V, &how));
    if (d->mistake == MISTAKE_own_logits) {
        memcpy(d->logits, d->copy, bytes);
    }
    *token = d->mistake == MISTAKE_highest_of_ties && how.temperature == 0.0f
                 ? highest_of_the_best(d->logits, V)
                 : sampler_next(&sampler, d->logits);
    now.state = d->mistake == MISTAKE_same_state ? now.state : sampler.state;
    sampler_free(&sampler);
    TRY(device_write(d->io.sampling, &now, sizeof now, d->stream, error));
    return device_write(d->io.token, token, sizeof *token, d->stream, error);
}

enum status decoder_step(struct decoder *d, size_t position, struct error *error) {
    enum status status;
    int32_t token;
    if (begin(d, &status, error)) {
        return status;
    }
    d->first_position = d->steps++ == 0 ? position : d->first_position;
    position = d->mistake == MISTAKE_stale_position ? d->first_position : position;
    position = d->mistake == MISTAKE_own_counter ? d->counter % d->model->T : position;
    d->counter++;
    const struct place p = {position, position, 0, position + 1};
    TRY(draw(d, &token, error));
    TRY(feed(d, token, &p, error));
    TRY(classify(d, error));
    return keep_logits(d, error);
}
