/* Stage 07's engine with lab 13's product. Matrices are rounded when they are first used. */
#include "labs/13_low_bit/given/engine.h"

#include <stdlib.h>

#include "common/models/engine_layer.h"
#include "labs/07_attention/given/engine.h"
#include "labs/13_low_bit/given/to_bf16.h"

/* A matrix that was used, by its address. */
struct known_matrix {
    const float *weight;
    struct low_bit_layout layout;
    void *prepared; /* device */
};

struct stage {
    struct low_bit_storage storage;
    const struct low_bit_step *step;
    struct known_matrix *known;
    size_t count;
    void *workspace, *in; /* device; in: LOW_BIT_MAX_ROWS rows of bf16 */
    size_t in_columns;
};

static void forget(struct stage *stage) {
    for (size_t i = 0; i < stage->count; i++) {
        device_free(stage->known[i].prepared);
    }
    stage->count = 0;
}

static void release_stage(void *own) {
    struct stage *stage = own;
    forget(stage);
    free(stage->known);
    device_free(stage->workspace);
    device_free(stage->in);
}

/* ---- A matrix's first use ---- */

static struct low_bit_layout layout_of(const struct low_bit_storage *storage, size_t N, size_t K) {
    bool in_groups = storage->type == LOW_BIT_INT4;
    return (struct low_bit_layout){
        storage->type, N, K, in_groups ? storage->group : K, in_groups ? NN_BF16 : NN_F32,
        in_groups};
}

static enum status upload(struct low_bit_matrix *d, const struct low_bit_matrix *host,
                          struct error *error) {
    const struct low_bit_layout *l = &host->layout;
    *d = (struct low_bit_matrix){.layout = *l};
    TRY(device_alloc(&d->values, low_bit_values_bytes(l), error));
    TRY(device_alloc(&d->scales, low_bit_scales_bytes(l), error));
    TRY(device_write(d->values, host->values, low_bit_values_bytes(l), NULL, error));
    TRY(device_write(d->scales, host->scales, low_bit_scales_bytes(l), NULL, error));
    if (!l->has_zeros) {
        return STATUS_OK;
    }
    void *zeros;
    TRY(device_alloc(&zeros, low_bit_zeros_bytes(l), error));
    d->zeros = zeros;
    return device_write(zeros, host->zeros, low_bit_zeros_bytes(l), NULL, error);
}

static enum status prepare(const struct stage *stage, struct known_matrix *k,
                           const struct low_bit_matrix *host, struct error *error) {
    struct low_bit_matrix d = {0};
    enum status status = upload(&d, host, error);
    status = status == STATUS_OK
                 ? device_alloc(&k->prepared, low_bit_prepared_bytes(&host->layout), error)
                 : status;
    status = status == STATUS_OK ? stage->step->prepare(&d, k->prepared, NULL, error) : status;
    status = status == STATUS_OK ? device_synchronize(NULL, error) : status;
    device_free(d.values);
    device_free(d.scales);
    device_free(d.zeros);
    return status;
}

static enum status round_matrix(const struct stage *stage, struct known_matrix *k,
                                struct error *error) {
    const struct low_bit_layout *l = &k->layout;
    size_t bytes = l->rows * l->columns * sizeof(float);
    float *weights = malloc(bytes);
    struct low_bit_matrix host = {*l, malloc(low_bit_values_bytes(l)),
                                  malloc(low_bit_scales_bytes(l)),
                                  malloc(low_bit_zeros_bytes(l) + 1)};
    enum status status = STATUS_OK;
    if (weights == NULL || host.values == NULL || host.scales == NULL || host.zeros == NULL) {
        status = error_set(error, STATUS_OUT_OF_MEMORY, "out of memory on the host");
    }
    status = status == STATUS_OK ? device_read(weights, k->weight, bytes, NULL, error) : status;
    status = status == STATUS_OK ? low_bit_quantize(weights, &host, error) : status;
    status = status == STATUS_OK ? prepare(stage, k, &host, error) : status;
    free(weights);
    free(host.values);
    free(host.scales);
    free(host.zeros);
    return status;
}

static enum status add_matrix(struct stage *stage, const float *weight, size_t N, size_t K) {
    struct known_matrix k = {.weight = weight, .layout = layout_of(&stage->storage, N, K)};
    if (k.layout.group > K) { /* narrower than a group */
        k.layout = layout_of(&(struct low_bit_storage){LOW_BIT_INT8, 0}, N, K);
    }
    struct known_matrix *more = realloc(stage->known, (stage->count + 1) * sizeof *more);
    if (more == NULL) {
        return STATUS_OUT_OF_MEMORY;
    }
    stage->known = more;
    enum status status = round_matrix(stage, &k, NULL);
    if (status != STATUS_OK) {
        device_free(k.prepared);
        return status;
    }
    stage->known[stage->count++] = k;
    return STATUS_OK;
}

static enum status find_matrix(struct stage *stage, const float *weight, size_t N, size_t K,
                               const struct known_matrix **found) {
    for (size_t i = 0; i < stage->count; i++) {
        *found = &stage->known[i];
        const struct low_bit_layout *l = &(*found)->layout;
        if ((*found)->weight == weight && l->rows == N && l->columns == K) {
            return STATUS_OK;
        }
    }
    TRY(add_matrix(stage, weight, N, K));
    *found = &stage->known[stage->count - 1];
    return STATUS_OK;
}

/* ---- Products ---- */

static enum status make_room(struct stage *stage, size_t K) {
    if (stage->workspace == NULL) {
        TRY(device_alloc(&stage->workspace, LOW_BIT_WORKSPACE_BYTES, NULL));
    }
    if (K > stage->in_columns) {
        device_free(stage->in);
        stage->in = NULL;
        stage->in_columns = 0;
        TRY(device_alloc(&stage->in, LOW_BIT_MAX_ROWS * K * 2, NULL));
        stage->in_columns = K;
    }
    return STATUS_OK;
}

static enum status low_bit_matmul(void *context, float *out, const float *in, const float *weight,
                                  size_t M, size_t N, size_t K) {
    struct stage *stage = engine_layer_own(context);
    const struct known_matrix *k;
    if (M == 0 || N == 0 || K == 0) {
        const struct engine *base = engine_layer_base(context);
        return base->matmul(base->context, out, in, weight, M, N, K);
    }
    TRY(make_room(stage, K));
    TRY(find_matrix(stage, weight, N, K, &k));
    for (size_t m = 0; m < M; m += LOW_BIT_MAX_ROWS) {
        size_t rows = M - m < LOW_BIT_MAX_ROWS ? M - m : LOW_BIT_MAX_ROWS;
        const struct low_bit_linear call = {k->layout, k->prepared, rows,
                                            stage->in, NN_F32,      out + m * N};
        TRY(low_bit_to_bf16(stage->in, in + m * K, rows * K, NULL, NULL));
        TRY(stage->step->linear(&call, stage->workspace, NULL, NULL));
    }
    return STATUS_OK;
}

/* Another matrix may come to lie where this one was. */
static void low_bit_release_weights(void *context, const void *resident) {
    const struct engine *base = engine_layer_base(context);
    forget(engine_layer_own(context));
    base->release_weights(base->context, resident);
}

enum status engine_low_bit_create_with(struct engine *engine, struct low_bit_storage storage,
                                       const struct low_bit_step *step, struct error *error) {
    struct engine base;
    *engine = (struct engine){0};
    TRY(engine_attention_create(&base, error));
    const struct stage stage = {.storage = storage, .step = step};
    TRY(engine_layer_create_copy(engine, "13_low_bit", &base, &stage, sizeof stage, release_stage,
                                 error));
    engine->matmul = low_bit_matmul;
    engine->release_weights = low_bit_release_weights;
    engine->linear = NULL;
    engine->linear_activation = NULL;
    engine->linear_residual_layernorm = NULL;
    return STATUS_OK;
}

enum status engine_low_bit_create(struct engine *engine, struct error *error) {
    static const struct low_bit_step own = {"low_bit", low_bit_prepare, low_bit_linear};
    return engine_low_bit_create_with(engine, (struct low_bit_storage){LOW_BIT_INT8, 0}, &own,
                                      error);
}
