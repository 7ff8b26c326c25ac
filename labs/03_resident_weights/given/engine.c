/**
 * @file engine.c
 * @brief Every operator as a resident_call(): sizes packed into arguments, pointers into operands.
 *
 * The kernels are those of operators.h and, for matmul, of the solved lab 02. The
 * functions of resident.h decide where an operand lies and what is copied.
 */
#include "labs/03_resident_weights/given/engine.h"

#include <string.h>

#include "common/models/engine_layer.h"
#include "labs/02_gpu_matmul/gpu_matmul.h"
#include "labs/03_resident_weights/given/operators.h"

#define F (sizeof(float))

static const char stage_name[] = "03_resident_weights";

static struct resident_operand in(const void *memory, size_t bytes) {
    return (struct resident_operand){memory, bytes, RESIDENT_IN};
}

static struct resident_operand out(const void *memory, size_t bytes) {
    return (struct resident_operand){memory, bytes, RESIDENT_OUT};
}

static struct resident_operand in_out(const void *memory, size_t bytes) {
    return (struct resident_operand){memory, bytes, RESIDENT_IN_OUT};
}

#define CALL(kernel, arguments, operands) \
    resident_call(context, kernel, arguments, operands, sizeof(operands) / sizeof *(operands), NULL)

struct matmul_sizes {
    size_t M, N, K;
};

static enum status matmul_kernel(const void *arguments, void *const *d, device_stream stream,
                                 struct error *error) {
    const struct matmul_sizes *a = arguments;
    return gpu_matmul_launch(d[0], d[1], d[2], a->M, a->N, a->K, stream, error);
}

static enum status stage_matmul(void *context, float *y, const float *x, const float *weight,
                                size_t M, size_t N, size_t K) {
    const struct matmul_sizes a = {M, N, K};
    const struct resident_operand operands[] = {out(y, M * N * F), in(x, M * K * F),
                                                in(weight, N * K * F)};
    return CALL(matmul_kernel, &a, operands);
}

/* Sizes of the operators on rows, and the eps of norms. */
struct row_sizes {
    size_t rows, C;
    float eps;
};

static enum status bias_add_kernel(const void *arguments, void *const *d, device_stream stream,
                                   struct error *error) {
    const struct row_sizes *a = arguments;
    return launch_bias_add(d[0], d[1], a->rows, a->C, stream, error);
}

static enum status stage_bias_add(void *context, float *x, const float *bias, size_t rows,
                                  size_t C) {
    const struct row_sizes a = {rows, C, 0.0f};
    const struct resident_operand operands[] = {in_out(x, rows * C * F), in(bias, C * F)};
    return CALL(bias_add_kernel, &a, operands);
}

static enum status layernorm_kernel(const void *arguments, void *const *d, device_stream stream,
                                    struct error *error) {
    const struct row_sizes *a = arguments;
    return launch_layernorm(d[0], d[1], d[2], d[3], a->rows, a->C, a->eps, stream, error);
}

static enum status stage_layernorm(void *context, float *y, const float *x, const float *weight,
                                   const float *bias, size_t rows, size_t C, float eps) {
    const struct row_sizes a = {rows, C, eps};
    const struct resident_operand operands[] = {out(y, rows * C * F), in(x, rows * C * F),
                                                in(weight, C * F), in(bias, C * F)};
    return CALL(layernorm_kernel, &a, operands);
}

static enum status rmsnorm_kernel(const void *arguments, void *const *d, device_stream stream,
                                  struct error *error) {
    const struct row_sizes *a = arguments;
    return launch_rmsnorm(d[0], d[1], d[2], a->rows, a->C, a->eps, stream, error);
}

static enum status stage_rmsnorm(void *context, float *y, const float *x, const float *weight,
                                 size_t rows, size_t C, float eps) {
    const struct row_sizes a = {rows, C, eps};
    const struct resident_operand operands[] = {out(y, rows * C * F), in(x, rows * C * F),
                                                in(weight, C * F)};
    return CALL(rmsnorm_kernel, &a, operands);
}

static enum status softmax_kernel(const void *arguments, void *const *d, device_stream stream,
                                  struct error *error) {
    const struct row_sizes *a = arguments;
    return launch_softmax(d[0], d[1], a->rows, a->C, stream, error);
}

static enum status stage_softmax(void *context, float *y, const float *x, size_t rows, size_t C) {
    const struct row_sizes a = {rows, C, 0.0f};
    const struct resident_operand operands[] = {out(y, rows * C * F), in(x, rows * C * F)};
    return CALL(softmax_kernel, &a, operands);
}

/* Sizes of the elementwise operators. */
struct element_sizes {
    size_t count;
    enum nn_activation f;
};

static enum status activation_kernel(const void *arguments, void *const *d, device_stream stream,
                                     struct error *error) {
    const struct element_sizes *a = arguments;
    return launch_activation(d[0], d[1], a->count, a->f, stream, error);
}

static enum status stage_activation(void *context, float *y, const float *x, size_t count,
                                    enum nn_activation f) {
    const struct element_sizes a = {count, f};
    const struct resident_operand operands[] = {out(y, count * F), in(x, count * F)};
    return CALL(activation_kernel, &a, operands);
}

static enum status silu_gate_kernel(const void *arguments, void *const *d, device_stream stream,
                                    struct error *error) {
    const struct element_sizes *a = arguments;
    return launch_silu_gate(d[0], d[1], d[2], a->count, stream, error);
}

static enum status stage_silu_gate(void *context, float *y, const float *gate, const float *up,
                                   size_t count) {
    const struct element_sizes a = {.count = count};
    const struct resident_operand operands[] = {out(y, count * F), in(gate, count * F),
                                                in(up, count * F)};
    return CALL(silu_gate_kernel, &a, operands);
}

static enum status residual_kernel(const void *arguments, void *const *d, device_stream stream,
                                   struct error *error) {
    const struct element_sizes *a = arguments;
    return launch_residual(d[0], d[1], d[2], a->count, stream, error);
}

static enum status stage_residual(void *context, float *y, const float *a, const float *b,
                                  size_t count) {
    const struct element_sizes sizes = {.count = count};
    const struct resident_operand operands[] = {out(y, count * F), in(a, count * F),
                                                in(b, count * F)};
    return CALL(residual_kernel, &sizes, operands);
}

struct rope_sizes {
    size_t T, heads, HS, stride, position;
    float theta;
    enum nn_rope_layout layout;
};

static enum status rope_kernel(const void *arguments, void *const *d, device_stream stream,
                               struct error *error) {
    const struct rope_sizes *a = arguments;
    return launch_rope(d[0], a->T, a->heads, a->HS, a->stride, a->position, a->theta, a->layout,
                       stream, error);
}

/* Bytes from the first to the last element of `rows` rows of `width`, `stride` elements apart. */
static size_t strided_bytes(size_t rows, size_t width, size_t stride) {
    return rows == 0 ? 0 : ((rows - 1) * stride + width) * F;
}

static enum status stage_rope(void *context, float *x, size_t T, size_t heads, size_t HS,
                              size_t stride, size_t position, float theta,
                              enum nn_rope_layout layout) {
    const struct rope_sizes a = {T, heads, HS, stride, position, theta, layout};
    const struct resident_operand operands[] = {in_out(x, strided_bytes(T, heads * HS, stride))};
    return CALL(rope_kernel, &a, operands);
}

struct rope_table_sizes {
    size_t T, heads, HS, stride, position;
    enum nn_rope_layout layout;
};

static enum status rope_table_kernel(const void *arguments, void *const *d, device_stream stream,
                                     struct error *error) {
    const struct rope_table_sizes *a = arguments;
    return launch_rope_table(d[0], a->T, a->heads, a->HS, a->stride, a->position, d[1], a->layout,
                             stream, error);
}

static enum status stage_rope_table(void *context, float *x, size_t T, size_t heads, size_t HS,
                                    size_t stride, size_t position, const float *frequencies,
                                    enum nn_rope_layout layout) {
    const struct rope_table_sizes a = {T, heads, HS, stride, position, layout};
    const struct resident_operand operands[] = {in_out(x, strided_bytes(T, heads * HS, stride)),
                                                in(frequencies, HS / 2 * F)};
    return CALL(rope_table_kernel, &a, operands);
}

/* The pointers in `arguments` are the model's; device addresses replace them. */
static enum status attention_kernel(const void *arguments, void *const *d, device_stream stream,
                                    struct error *error) {
    struct nn_attention a = *(const struct nn_attention *)arguments;
    a.q = d[1];
    a.k = d[2];
    a.v = d[3];
    a.mask = a.mask != NULL ? d[4] : NULL;
    return launch_attention(d[0], &a, stream, error);
}

static enum status stage_attention(void *context, float *y, const struct nn_attention *a) {
    size_t kv_bytes = strided_bytes(a->B * a->S, a->KVH * a->HS, a->kv_stride);
    const struct resident_operand operands[] = {
        out(y, a->B * a->T * a->NH * a->HS * F),
        in(a->q, strided_bytes(a->B * a->T, a->NH * a->HS, a->q_stride)),
        in(a->k, kv_bytes),
        in(a->v, kv_bytes),
        in(a->mask, a->B * a->S),
    };
    size_t count = sizeof operands / sizeof *operands - (a->mask == NULL);
    return resident_call(context, attention_kernel, a, operands, count, NULL);
}

struct embedding_sizes {
    struct embedding_ids ids;
    size_t T, C;
    bool accumulate;
};

static enum status embedding_kernel(const void *arguments, void *const *d, device_stream stream,
                                    struct error *error) {
    const struct embedding_sizes *a = arguments;
    return launch_embedding(d[0], d[1], &a->ids, a->T, a->C, a->accumulate, stream, error);
}

/* Bytes of the table up to the last row that an id names; the rest is not used. */
static size_t table_bytes(const int32_t *ids, size_t T, size_t C) {
    size_t rows = 0;
    for (size_t t = 0; t < T; t++) {
        size_t needed = (size_t)ids[t] + 1;
        rows = needed > rows ? needed : rows;
    }
    return rows * C * F;
}

/* Ids are kernel arguments: at most EMBEDDING_MAX_IDS a launch. */
static enum status stage_embedding(void *context, float *y, const float *table, const int32_t *ids,
                                   size_t T, size_t C, bool accumulate) {
    for (size_t done = 0; done < T; done += EMBEDDING_MAX_IDS) {
        size_t count = T - done < EMBEDDING_MAX_IDS ? T - done : EMBEDDING_MAX_IDS;
        struct embedding_sizes a = {.T = count, .C = C, .accumulate = accumulate};
        memcpy(a.ids.ids, ids + done, count * sizeof *ids);
        const struct resident_operand operands[] = {accumulate ? in_out(y + done * C, count * C * F)
                                                               : out(y + done * C, count * C * F),
                                                    in(table, table_bytes(ids + done, count, C))};
        TRY(CALL(embedding_kernel, &a, operands));
    }
    return STATUS_OK;
}

static void stage_destroy(void *context) {
    resident_destroy(context);
}

static enum status stage_alloc(void *context, size_t bytes, void **memory) {
    return resident_alloc(context, bytes, memory, NULL);
}

static void stage_release(void *context, void *memory) {
    resident_release(context, memory);
}

static enum status stage_weights(void *context, const void *host, size_t bytes,
                                 const void **resident) {
    return resident_weights(context, host, bytes, resident, NULL);
}

static void stage_release_weights(void *context, const void *resident) {
    resident_release_weights(context, resident);
}

static enum status stage_write(void *context, void *resident, const void *host, size_t bytes) {
    return resident_write(context, resident, host, bytes, NULL);
}

static enum status stage_read(void *context, void *host, const void *resident, size_t bytes) {
    return resident_read(context, host, resident, bytes, NULL);
}

static enum status stage_synchronize(void *context) {
    return resident_synchronize(context, NULL);
}

enum status engine_resident_create(struct engine *engine, struct error *error) {
    struct resident *resident;
    *engine = (struct engine){0};
    TRY(device_open(error));
    TRY(resident_create(&resident, error));
    *engine = (struct engine){
        .name = stage_name,
        .context = resident,
        .destroy = stage_destroy,
        .alloc = stage_alloc,
        .release = stage_release,
        .weights = stage_weights,
        .release_weights = stage_release_weights,
        .write = stage_write,
        .read = stage_read,
        .synchronize = stage_synchronize,
        .matmul = stage_matmul,
        .bias_add = stage_bias_add,
        .activation = stage_activation,
        .silu_gate = stage_silu_gate,
        .residual = stage_residual,
        .layernorm = stage_layernorm,
        .rmsnorm = stage_rmsnorm,
        .softmax = stage_softmax,
        .rope = stage_rope,
        .attention = stage_attention,
        .embedding = stage_embedding,
        .rope_table = stage_rope_table,
    };
    return STATUS_OK;
}

/* ---- For the stages above ---- */

struct resident *engine_resident_of(const struct engine *engine) {
    while (strcmp(engine->name, stage_name) != 0) {
        engine = engine_layer_base(engine->context);
    }
    return engine->context;
}

/* An operator that launches nothing; it notes the stream that it is given. */
static enum status note_stream(const void *arguments, void *const *operands, device_stream stream,
                               struct error *error) {
    (void)operands;
    (void)error;
    **(device_stream *const *)arguments = stream;
    return STATUS_OK;
}

enum status engine_resident_stream(struct resident *resident, device_stream *stream,
                                   struct error *error) {
    return resident_call(resident, note_stream, &stream, NULL, 0, error);
}
