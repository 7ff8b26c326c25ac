/*
 * Wrong submissions to lab 08. $WRONG_ENCODER names one; each must be caught by the parity test,
 * with a message that leads to the mistake. "right" is the control: it must pass. It packs, but has
 * a launch for every operator, and must miss launches and speedup.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "labs/03_resident_weights/given/operators.h"
#include "labs/04_sgemm/sgemm.h"
#include "labs/05_layernorm_softmax/layernorm_softmax.h"
#include "labs/07_attention/attention.h"
#include "labs/08_bert_classifier/encoder.h"

#define MISTAKES(X)                                                                        \
    X(right)                                                                               \
    X(empty)           /* does nothing */                                                  \
    X(zeros)           /* writes zeros */                                                  \
    X(batch_positions) /* counts positions through the batch, not in each sequence */      \
    X(one_position)    /* begins each sequence at position 1 */                            \
    X(last_sequence)   /* leaves out the last sequence */                                  \
    X(no_types)        /* forgets the type embedding */                                    \
    X(types_of_zero)   /* takes types for 0 where they are given */                        \
    X(stale_types)     /* without types, has those of the batch before */                  \
    X(stale_starts)    /* copies starts with the first batch only */                       \
    X(stale_rows)      /* copies no lists of a batch smaller than the one before */        \
    X(remembers)       /* has the first batch's result for all with the same lengths */    \
    X(only_firsts)     /* the last layer is for first rows, also where hidden is wanted */ \
    X(neighbours)      /* every token sees the whole batch */                              \
    X(last_rows)       /* first has the last token of each sequence */                     \
    X(always_gelu)     /* does not look at the activation */                               \
    X(no_bias)         /* forgets the bias of q, k and v */                                \
    X(no_residual)     /* forgets to add x behind attention */                             \
    X(no_norm)         /* forgets the LayerNorm behind the embeddings */                   \
    X(not_alone)       /* writes NaN where a sequence is alone */                          \
    X(one_layer)       /* runs the first layer only */                                     \
    X(one_model)       /* all encoders use the model that came last */                     \
    X(behind)          /* writes one element behind first */                               \
    X(changes_weights) /* changes a bias */                                                \
    X(frees_badly)     /* aborts while it frees */                                         \
    X(status)          /* reports a failure */

#define MISTAKE_VARIABLE "WRONG_ENCODER"
#include "grader/selftest/mistakes.h"

enum { THREADS = 256, LISTS = 4 };

/* Places of the lists. */
enum { IDS, TYPES, POSITIONS, STARTS };

struct encoder {
    const struct encoder_model *model;
    enum mistake mistake;
    device_stream stream;
    void *workspace;
    float *x, *qkv, *attended, *projected, *inner;
    int32_t *lists[LISTS], *host[LISTS]; /* (max_tokens + 1) */
    size_t batches, rows_before;
    float *kept;          /* (kept_B, C): the first batch's result */
    int32_t *kept_starts; /* (kept_B + 1), host */
    size_t kept_B;
};

static enum status allocate(float **memory, size_t rows, size_t columns, struct error *error) {
    return device_alloc((void **)memory, rows * columns * sizeof(float), error);
}

static enum status allocate_all(struct encoder *e, size_t rows, struct error *error) {
    TRY(device_alloc(&e->workspace, SGEMM_WORKSPACE_BYTES, error));
    TRY(allocate(&e->x, rows, e->model->C, error));
    TRY(allocate(&e->qkv, rows, 3 * e->model->C, error));
    TRY(allocate(&e->attended, rows, e->model->C, error));
    TRY(allocate(&e->projected, rows, e->model->C, error));
    TRY(allocate(&e->inner, rows, e->model->hidden, error));
    for (int i = 0; i < LISTS; i++) {
        TRY(device_alloc((void **)&e->lists[i], (rows + 1) * sizeof(int32_t), error));
        TRY(device_alloc_host((void **)&e->host[i], (rows + 1) * sizeof(int32_t), error));
        memset(e->host[i], 0, (rows + 1) * sizeof(int32_t));
    }
    return STATUS_OK;
}

/* The model that "one_model" uses. */
static const struct encoder_model *last_model;

enum status encoder_create(struct encoder **encoder, const struct encoder_model *model,
                           size_t max_tokens, device_stream stream, struct error *error) {
    struct encoder *e = (struct encoder *)calloc(1, sizeof *e);
    *encoder = e;
    e->model = last_model = model;
    e->mistake = chosen_mistake();
    e->stream = stream;
    return allocate_all(e, max_tokens, error);
}

void encoder_free(struct encoder *e) {
    if (e == NULL) {
        return;
    }
    if (e->mistake == MISTAKE_frees_badly) {
        abort();
    }
    void *const all[] = {e->workspace, e->x, e->qkv, e->attended, e->projected, e->inner, e->kept};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        device_free(all[i]);
    }
    for (int i = 0; i < LISTS; i++) {
        device_free(e->lists[i]);
        device_free_host(e->host[i]);
    }
    free(e->kept_starts);
    free(e);
}

/* ---- Lists ---- */

static int32_t position_of(const struct encoder *e, const struct encoder_batch *batch, size_t b,
                           int32_t row) {
    int32_t position = row - batch->starts[b], T = (int32_t)e->model->T;
    position = e->mistake == MISTAKE_batch_positions ? row : position;
    position = e->mistake == MISTAKE_one_position ? position + 1 : position;
    return position % T;
}

static void fill_lists(struct encoder *e, const struct encoder_batch *batch) {
    for (size_t b = 0; b < batch->B; b++) {
        for (int32_t row = batch->starts[b]; row < batch->starts[b + 1]; row++) {
            bool given = batch->types != NULL && e->mistake != MISTAKE_types_of_zero;
            bool stale = batch->types == NULL && e->mistake == MISTAKE_stale_types;
            e->host[IDS][row] = batch->ids[row];
            e->host[POSITIONS][row] = position_of(e, batch, b, row);
            e->host[TYPES][row] = stale ? e->host[TYPES][row] : given ? batch->types[row] : 0;
        }
    }
    memcpy(e->host[STARTS], batch->starts, (batch->B + 1) * sizeof(int32_t));
}

static enum status upload(struct encoder *e, size_t rows, size_t B, struct error *error) {
    int lists = e->mistake == MISTAKE_stale_starts && e->batches > 0 ? (int)STARTS : (int)LISTS;
    e->batches++;
    for (int i = 0; i < lists; i++) {
        size_t count = i == STARTS ? B + 1 : rows;
        if (cudaMemcpyAsync(e->lists[i], e->host[i], count * sizeof(int32_t),
                            cudaMemcpyHostToDevice, e->stream) != cudaSuccess) {
            return error_set(error, STATUS_DEVICE, "a copy failed");
        }
    }
    return STATUS_OK;
}

/* ---- Operators ---- */

static __global__ void gather_kernel(float *out, const float *table, const int32_t *ids, int shift,
                                     size_t rows, size_t C, bool accumulate) {
    size_t i = blockIdx.x * (size_t)THREADS + threadIdx.x;
    if (i < rows * C) {
        float value = table[(size_t)(ids[i / C] + shift) * C + i % C];
        out[i] = accumulate ? out[i] + value : value;
    }
}

static enum status gather(const struct encoder *e, float *out, const float *table,
                          const int32_t *ids, int shift, size_t rows, bool accumulate,
                          struct error *error) {
    size_t blocks = (rows * e->model->C + THREADS - 1) / THREADS;
    gather_kernel<<<(unsigned)blocks, THREADS, 0, e->stream>>>(out, table, ids, shift, rows,
                                                               e->model->C, accumulate);
    return device_launched("gather_kernel", error);
}

static enum status normalise(const struct encoder *e, const struct nn_norm *norm, size_t rows,
                             struct error *error) {
    const struct rows_problem problem = {.op = ROWS_LAYERNORM,
                                         .type = NN_F32,
                                         .rows = rows,
                                         .C = e->model->C,
                                         .in = e->x,
                                         .out = e->x,
                                         .weight = norm->weight,
                                         .bias = norm->bias,
                                         .eps = norm->eps};
    return layernorm_softmax(&problem, e->workspace, e->stream, error);
}

static enum status embed(const struct encoder *e, const struct encoder_model *m, size_t rows,
                         struct error *error) {
    TRY(gather(e, e->x, m->word_embedding, e->lists[IDS], 0, rows, false, error));
    TRY(gather(e, e->x, m->position_embedding, e->lists[POSITIONS], 0, rows, true, error));
    if (e->mistake != MISTAKE_no_types) {
        TRY(gather(e, e->x, m->type_embedding, e->lists[TYPES], 0, rows, true, error));
    }
    return e->mistake == MISTAKE_no_norm ? STATUS_OK : normalise(e, &m->embedding, rows, error);
}

static enum status linear(const struct encoder *e, float *out, const float *in,
                          const struct encoder_linear *layer, size_t rows, size_t N, size_t K,
                          struct error *error) {
    const struct sgemm_problem product = {.M = rows,
                                          .N = N,
                                          .K = K,
                                          .form = SGEMM_B_TRANSPOSED,
                                          .alpha = 1.0f,
                                          .beta = 0.0f,
                                          .A = in,
                                          .B = layer->weight,
                                          .C = out};
    TRY(sgemm(&product, e->workspace, e->stream, error));
    if (e->mistake == MISTAKE_no_bias && out == e->qkv) {
        return STATUS_OK;
    }
    return launch_bias_add(out, layer->bias, rows, N, e->stream, error);
}

static enum status close_sublayer(const struct encoder *e, const float *in,
                                  const struct encoder_linear *layer, const struct nn_norm *norm,
                                  size_t rows, size_t K, struct error *error) {
    size_t C = e->model->C;
    TRY(linear(e, e->projected, in, layer, rows, C, K, error));
    if (e->mistake == MISTAKE_no_residual && in == e->attended) {
        TRY(device_copy(e->x, e->projected, rows * C * sizeof(float), e->stream, error));
    } else {
        TRY(launch_residual(e->x, e->x, e->projected, rows * C, e->stream, error));
    }
    return normalise(e, norm, rows, error);
}

static enum status attend(const struct encoder *e, const struct encoder_batch *batch, size_t rows,
                          struct error *error) {
    const struct encoder_model *m = e->model;
    bool whole = e->mistake == MISTAKE_neighbours;
    size_t HS = m->C / m->NH, T = whole ? rows : batch->longest;
    const struct attention_problem problem = {.dtype = NN_F32,
                                              .q = e->qkv,
                                              .k = e->qkv + m->C,
                                              .v = e->qkv + 2 * m->C,
                                              .out = e->attended,
                                              .starts = whole ? NULL : e->lists[STARTS],
                                              .host_starts = whole ? NULL : e->host[STARTS],
                                              .B = whole ? 1 : batch->B,
                                              .T = T,
                                              .S = T,
                                              .NH = m->NH,
                                              .KVH = m->NH,
                                              .HS = HS,
                                              .q_stride = 3 * m->C,
                                              .kv_stride = 3 * m->C,
                                              .out_stride = m->C,
                                              .scale = 1.0f / sqrtf((float)HS)};
    return attention(&problem, e->stream, error);
}

static enum status run_layer(const struct encoder *e, const struct encoder_layer *layer,
                             const struct encoder_batch *batch, size_t rows, struct error *error) {
    const struct encoder_model *m = e->model;
    enum nn_activation f = e->mistake == MISTAKE_always_gelu ? NN_GELU : m->activation;
    TRY(linear(e, e->qkv, e->x, &layer->qkv, rows, 3 * m->C, m->C, error));
    TRY(attend(e, batch, rows, error));
    TRY(close_sublayer(e, e->attended, &layer->out, &layer->attention, rows, m->C, error));
    TRY(linear(e, e->inner, e->x, &layer->up, rows, m->hidden, m->C, error));
    TRY(launch_activation(e->inner, e->inner, rows * m->hidden, f, e->stream, error));
    return close_sublayer(e, e->inner, &layer->down, &layer->feed_forward, rows, m->hidden, error);
}

/* ---- A batch ---- */

/* "only_firsts": what the rows behind the first were before the last layer is handed out. */
static enum status keep_firsts(const struct encoder *e, const struct encoder_batch *batch,
                               const float *before, struct error *error) {
    size_t row_bytes = e->model->C * sizeof(float);
    for (size_t b = 0; b < batch->B; b++) {
        size_t start = (size_t)batch->starts[b], end = (size_t)batch->starts[b + 1];
        size_t offset = (start + 1) * e->model->C;
        TRY(device_copy(e->x + offset, before + offset, (end - start - 1) * row_bytes, e->stream,
                        error));
    }
    return STATUS_OK;
}

static enum status run_layers(const struct encoder *e, const struct encoder_batch *batch,
                              size_t rows, struct error *error) {
    size_t L = e->mistake == MISTAKE_one_layer ? 1 : e->model->L;
    bool keeps = e->mistake == MISTAKE_only_firsts && batch->hidden != NULL;
    size_t bytes = batch->rows * e->model->C * sizeof(float);
    for (size_t l = 0; l < L; l++) {
        if (keeps && l == L - 1) {
            TRY(device_copy(batch->hidden, e->x, bytes, e->stream, error));
        }
        TRY(run_layer(e, &e->model->layers[l], batch, rows, error));
    }
    return keeps ? keep_firsts(e, batch, batch->hidden, error) : STATUS_OK;
}

static enum status deliver(const struct encoder *e, const struct encoder_batch *batch,
                           struct error *error) {
    size_t C = e->model->C, B = batch->B - (e->mistake == MISTAKE_last_sequence);
    bool last = e->mistake == MISTAKE_last_rows;
    if (batch->hidden != NULL) {
        TRY(device_copy(batch->hidden, e->x, batch->rows * C * sizeof(float), e->stream, error));
    }
    if (e->mistake == MISTAKE_zeros) {
        return device_set(batch->first, 0, B * C * sizeof(float), e->stream, error);
    }
    if (e->mistake == MISTAKE_not_alone && B == 1) {
        return device_set(batch->first, 0xff, C * sizeof(float), e->stream, error);
    }
    if (e->mistake == MISTAKE_behind) {
        TRY(device_set(batch->first + B * C, 0, sizeof(float), e->stream, error));
    }
    if (e->mistake == MISTAKE_changes_weights) {
        TRY(device_set((void *)e->model->layers[0].up.bias, 0, sizeof(float), e->stream, error));
    }
    return B == 0 ? STATUS_OK
                  : gather(e, batch->first, e->x, e->lists[STARTS] + last, last ? -1 : 0, B, false,
                           error);
}

/* "remembers". */
static bool is_kept(const struct encoder *e, const struct encoder_batch *batch) {
    return e->kept != NULL && e->kept_B == batch->B && batch->hidden == NULL &&
           memcmp(e->kept_starts, batch->starts, (batch->B + 1) * sizeof(int32_t)) == 0;
}

static enum status keep(struct encoder *e, const struct encoder_batch *batch, struct error *error) {
    size_t bytes = batch->B * e->model->C * sizeof(float),
           starts = (batch->B + 1) * sizeof(int32_t);
    e->kept_starts = (int32_t *)malloc(starts);
    memcpy(e->kept_starts, batch->starts, starts);
    e->kept_B = batch->B;
    TRY(device_alloc((void **)&e->kept, bytes, error));
    return device_copy(e->kept, batch->first, bytes, e->stream, error);
}

enum status encoder_run(struct encoder *e, const struct encoder_batch *batch, struct error *error) {
    const struct encoder_model *m = e->model;
    if (e->mistake == MISTAKE_status) {
        return error_set(error, STATUS_DEVICE, "nothing works today");
    }
    if (e->mistake == MISTAKE_empty) {
        return STATUS_OK;
    }
    bool remembers = e->mistake == MISTAKE_remembers;
    if (remembers && is_kept(e, batch)) {
        return device_copy(batch->first, e->kept, batch->B * m->C * sizeof(float), e->stream,
                           error);
    }
    fill_lists(e, batch);
    bool stale = e->mistake == MISTAKE_stale_rows && e->rows_before > batch->rows;
    if (!stale) {
        TRY(upload(e, batch->rows, batch->B, error));
        e->rows_before = batch->rows;
    }
    TRY(embed(e, e->mistake == MISTAKE_one_model ? last_model : m, batch->rows, error));
    TRY(run_layers(e, batch, batch->rows, error));
    TRY(deliver(e, batch, error));
    return remembers && e->kept == NULL ? keep(e, batch, error) : STATUS_OK;
}
