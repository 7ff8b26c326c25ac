#include "solutions/13_low_bit/decoder/stages.h"

#include <stdio.h>
#include <stdlib.h>

#include "common/base/checked.h"
#include "common/device/device.h"
#include "common/programs/program.h"
#include "labs/10_llama2_decoder/given/decoder_model.h"
#include "labs/10_llama2_decoder/given/engine.h"
#include "solutions/13_low_bit/decoder/stored_numbers.h"
#include "solutions/13_low_bit/decoder/upload.h"

/* A loaded model: what it has in device memory. */
struct loaded {
    const struct low_bit_stage *stage;
    struct low_bit_decoder_model model;
    struct decoder_layer *layers;
    size_t matrices, kept; /* kept: with the numbers that the checkpoint has */
};

/* A matrix made of the rows of some tensors. */
struct source {
    const struct decoder_stored_tensor *tensors[3];
    bool paired;
};

/* ---- Loading ---- */

static enum status out_of_memory(size_t rows, size_t columns, struct error *error) {
    return error_set(error, STATUS_OUT_OF_MEMORY, "out of memory for a matrix of %zu x %zu", rows,
                     columns);
}

/* The host buffers of a matrix that is being rounded. */
struct rounding {
    float *weights;
    struct low_bit_matrix matrix;
};

static bool allocate(struct rounding *r) {
    const struct low_bit_layout *l = &r->matrix.layout;
    size_t bytes;
    if (!checked_multiply(l->rows, l->columns, &bytes) ||
        !checked_multiply(bytes, sizeof(float), &bytes)) {
        return false;
    }
    r->weights = malloc(bytes);
    r->matrix.values = calloc(1, low_bit_values_bytes(l));
    r->matrix.scales = malloc(low_bit_scales_bytes(l));
    r->matrix.zeros = malloc(low_bit_zeros_bytes(l) + 1);
    return r->weights != NULL && r->matrix.values != NULL && r->matrix.scales != NULL &&
           r->matrix.zeros != NULL;
}

static void free_rounding(struct rounding *r) {
    free(r->weights);
    free(r->matrix.values);
    free(r->matrix.scales);
    free(r->matrix.zeros);
}

/* Reads the tensors, and finds the numbers that they had been stored as, if they had. */
static enum status read_source(struct rounding *r, const struct source *source, bool *found,
                               struct error *error) {
    if (!allocate(r)) {
        return out_of_memory(r->matrix.layout.rows, r->matrix.layout.columns, error);
    }
    float *to = r->weights;
    for (int i = 0; i < 3 && source->tensors[i] != NULL; i++) {
        const struct decoder_stored_tensor *t = source->tensors[i];
        nn_dtype_load(to, t->data, t->rows * t->columns, t->dtype);
        to += t->rows * t->columns;
    }
    *found = stored_numbers_find(r->weights, &r->matrix);
    return STATUS_OK;
}

static struct low_bit_layout layout_of(const struct loaded *l, const struct source *source) {
    bool is_int4 = l->stage->type == LOW_BIT_INT4;
    struct low_bit_layout layout = {.type = l->stage->type, .columns = source->tensors[0]->columns};
    for (int i = 0; i < 3 && source->tensors[i] != NULL; i++) {
        layout.rows += source->tensors[i]->rows;
    }
    layout.group = is_int4 ? l->stage->group : layout.columns;
    layout.scale_dtype = is_int4 ? l->model.scale_dtype : NN_F32;
    layout.has_zeros = is_int4;
    return layout;
}

static enum status load_matrix(struct loaded *l, const struct source *source, const void **out,
                               struct error *error) {
    struct rounding r = {.matrix.layout = layout_of(l, source)};
    bool found = false;
    TRY(low_bit_check(&r.matrix.layout, error));
    enum status status = read_source(&r, source, &found, error);
    if (status == STATUS_OK && !found) {
        status = low_bit_quantize(r.weights, &r.matrix, error);
    }
    if (status == STATUS_OK) {
        status = low_bit_decoder_upload(&r.matrix, source->paired, out, NULL, error);
    }
    free_rounding(&r);
    l->matrices++;
    l->kept += found ? 1 : 0;
    return status;
}

/* Scales in fp16 where the first layer's output matrix is stored with such ones: GPTQ, GGUF. */
static enum status choose_scales(struct loaded *l, const struct llama2_stored_layer *first,
                                 struct error *error) {
    const struct source source = {{&first->wo}, false};
    bool found = false;
    l->model.scale_dtype = NN_F16;
    struct rounding r = {.matrix.layout = layout_of(l, &source)};
    TRY(low_bit_check(&r.matrix.layout, error));
    enum status status = read_source(&r, &source, &found, error);
    free_rounding(&r);
    l->model.scale_dtype = found ? NN_F16 : NN_BF16;
    return status;
}

/* *out = a tensor in another type, in device memory. */
static enum status load_as(const void **out, const struct decoder_stored_tensor *t,
                           enum nn_dtype dtype, struct error *error) {
    size_t count = t->rows * t->columns, bytes = count * nn_dtype_bytes(dtype);
    float *values = malloc(count * sizeof *values);
    void *stored = malloc(bytes), *to = NULL;
    enum status status = out_of_memory(t->rows, t->columns, error);
    if (values != NULL && stored != NULL) {
        nn_dtype_load(values, t->data, count, t->dtype);
        nn_dtype_store(stored, values, count, dtype);
        status = device_alloc(&to, bytes, error);
    }
    *out = to;
    if (status == STATUS_OK) {
        status = device_write(to, stored, bytes, NULL, error);
    }
    free(values);
    free(stored);
    return status;
}

static enum status load_layer(struct loaded *l, struct decoder_layer *to,
                              const struct llama2_stored_layer *from, struct error *error) {
    const struct source qkv = {{&from->wq, &from->wk, &from->wv}, false};
    const struct source out = {{&from->wo}, false}, down = {{&from->w2}, false};
    const struct source gate_up = {{&from->w1, &from->w3}, true};
    TRY(load_as((const void **)&to->attention_norm, &from->attention_norm, NN_F32, error));
    TRY(load_as((const void **)&to->ffn_norm, &from->ffn_norm, NN_F32, error));
    TRY(load_matrix(l, &qkv, &to->qkv, error));
    TRY(load_matrix(l, &out, &to->out, error));
    TRY(load_matrix(l, &gate_up, &to->gate_up, error));
    return load_matrix(l, &down, &to->down, error);
}

static enum status fill(struct loaded *l, const struct llama2_decoder_model *whole,
                        struct error *error) {
    const struct llama2_config *c = whole->config;
    const struct llama2_stored_weights *w = whole->weights;
    const struct source classifier = {{&w->classifier}, false};
    struct decoder_model *m = &l->model.sizes;
    l->model.type = l->stage->type;
    l->model.group = l->stage->group;
    TRY(choose_scales(l, &w->layers[0], error));
    *m = decoder_sizes_of(c, NN_BF16);
    l->layers = calloc(c->L, sizeof *l->layers);
    if (l->layers == NULL) {
        return error_set(error, STATUS_OUT_OF_MEMORY, "out of memory for %zu layers", c->L);
    }
    m->layers = l->layers;
    for (size_t i = 0; i < c->L; i++) {
        TRY(load_layer(l, &l->layers[i], &w->layers[i], error));
    }
    TRY(load_as(&m->embedding, &w->embedding, NN_BF16, error));
    TRY(load_as((const void **)&m->final_norm, &w->final_norm, NN_F32, error));
    return load_matrix(l, &classifier, &m->classifier, error);
}

static void unload(void *loaded) {
    struct loaded *l = loaded;
    const struct decoder_model *m = &l->model.sizes;
    for (size_t i = 0; i < m->L && l->layers != NULL; i++) {
        const struct decoder_layer *w = &l->layers[i];
        const void *const all[] = {w->attention_norm, w->qkv,     w->out,
                                   w->ffn_norm,       w->gate_up, w->down};
        for (int j = 0; j < 6; j++) {
            device_free((void *)all[j]);
        }
    }
    device_free((void *)m->embedding);
    device_free((void *)m->final_norm);
    device_free((void *)m->classifier);
    free(l->layers);
    free(l);
}

static enum status load(void *context, const struct llama2_decoder_model *whole,
                        struct decoder_model *model, void **loaded, struct error *error) {
    struct loaded *l = calloc(1, sizeof *l);
    if (l == NULL) {
        return error_set(error, STATUS_OUT_OF_MEMORY, "out of memory for a low-bit model");
    }
    l->stage = context;
    enum status status = fill(l, whole, error);
    if (status != STATUS_OK) {
        unload(l);
        return status;
    }
    if (l->kept > 0) {
        fprintf(stderr,
                "%zu of %zu matrices keep the numbers that the checkpoint has; the others are "
                "rounded to nearest\n",
                l->kept, l->matrices);
    }
    *model = l->model.sizes;
    *loaded = l;
    return STATUS_OK;
}

/* ---- The engine ---- */

static enum status create(void *loaded, struct decoder **decoder, const struct decoder_model *model,
                          const struct decoder_io *io, size_t batch, device_stream stream,
                          struct error *error) {
    const struct loaded *l = loaded;
    struct low_bit_decoder *made = NULL;
    (void)model; /* that of `loaded` */
    (void)batch; /* tokens are fed one by one */
    enum status status = low_bit_decoder_create(&made, &l->model, io, stream, error);
    *decoder = (struct decoder *)made;
    return status;
}

static enum status prefill(struct decoder *decoder, const int32_t *tokens, size_t count,
                           size_t position, struct error *error) {
    return low_bit_decoder_prefill((struct low_bit_decoder *)decoder, tokens, count, position,
                                   error);
}

static enum status step(struct decoder *decoder, size_t position, struct error *error) {
    return low_bit_decoder_step((struct low_bit_decoder *)decoder, position, error);
}

static void free_decoder(struct decoder *decoder) {
    low_bit_decoder_free((struct low_bit_decoder *)decoder);
}

enum status engine_low_bit_create(struct engine *engine, const struct low_bit_stage *stage,
                                  struct error *error) {
    const struct decoder_functions functions = {NULL, prefill, step, free_decoder};
    const struct decoder_loading loading = {(void *)stage, load, unload, create};
    return engine_decoder_create_loading(engine, &functions, &loading, error);
}

/* ---- The stages ---- */

#define STAGE(create, TYPE, GROUP)                                                       \
    static enum status create(struct engine *engine, int threads, struct error *error) { \
        static const struct low_bit_stage stage = {TYPE, GROUP};                         \
        (void)threads;                                                                   \
        return engine_low_bit_create(engine, &stage, error);                             \
    }

STAGE(create_int4_32, LOW_BIT_INT4, 32)
STAGE(create_int4_128, LOW_BIT_INT4, 128)
STAGE(create_fp8, LOW_BIT_FP8, 0)
STAGE(create_int8, LOW_BIT_INT8, 0)

static enum status create_16_bits(struct engine *engine, int threads, struct error *error) {
    (void)threads;
    return engine_decoder_create(engine, error);
}

static const struct decoder_stage table[] = {
    {"10_llama2_decoder", true, create_16_bits},
    {"13_int4_32", true, create_int4_32},
    {"13_int4_128", true, create_int4_128},
    {"13_fp8", true, create_fp8},
    {"13_int8", true, create_int8},
};

static const struct decoder_stages stages = {
    .table = table,
    .count = sizeof table / sizeof *table,
    .relatives = "10_llama2_decoder",
    .open_device = program_device_open,
    .device_now = device_now,
};

const struct decoder_stages *low_bit_stages(void) {
    return &stages;
}
