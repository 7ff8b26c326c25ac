#include "common/bench/models/decode_model.h"

#include <stdio.h>
#include <string.h>

#include "common/bench/bench_program.h"

enum status decode_shape_parse(const char *text, enum llama2_shape *shape, struct error *error) {
    bool known = llama2_shape_parse(text, shape, NULL) == STATUS_OK;
    if (known && *shape >= LLAMA2_SHAPE_15M && *shape <= LLAMA2_SHAPE_1B) {
        return STATUS_OK;
    }
    return error_set(error, STATUS_INVALID_ARGUMENT, "--shape is 15m, 110m or 1.1b, not '%s'",
                     text);
}

double decode_layer_numbers(const struct llama2_config *c) {
    double attention = (double)c->C * (double)c->HS * (2.0 * (double)c->NH + 2.0 * (double)c->KVH);
    return (double)c->L * (attention + 3.0 * (double)c->C * (double)c->hidden);
}

double decode_token_bytes(const struct llama2_config *c, enum nn_dtype dtype) {
    return (double)nn_dtype_bytes(dtype) * (decode_layer_numbers(c) + (double)c->V * (double)c->C);
}

int32_t decode_text_token(size_t i, size_t V) {
    return (int32_t)((1 + 977 * i) % V);
}

double decode_shape_bytes(enum llama2_shape shape) {
    struct llama2_config config = llama2_shape_config(shape);
    return decode_token_bytes(&config, NN_F32);
}

enum status decode_model_open(struct decode_model *m, const char *path, enum llama2_shape shape,
                              struct error *error) {
    *m = (struct decode_model){0};
    if (path != NULL) {
        const char *slash = strrchr(path, '/');
        snprintf(m->name, sizeof m->name, "%s", slash != NULL ? slash + 1 : path);
        m->config = &m->checkpoint.config;
        m->weights = &m->checkpoint.weights;
        return llama2c_open(&m->checkpoint, path, error);
    }
    snprintf(m->name, sizeof m->name, "%s shape, random weights", llama2_shape_name(shape));
    struct llama2_config config = llama2_shape_config(shape);
    m->config = &m->random.config;
    m->weights = &m->random.weights;
    enum status status = llama2_random_create(&m->random, &config, 1);
    return status == STATUS_OK
               ? STATUS_OK
               : error_set(error, status, "%s: %s", m->name, status_message(status));
}

void decode_model_close(struct decode_model *m) {
    llama2c_close(&m->checkpoint);
    llama2_random_free(&m->random);
}

enum status decode_checkpoint_check(const char *path, struct error *error) {
    struct llama2c_checkpoint checkpoint = {0};
    enum status status = llama2c_open(&checkpoint, path, error);
    llama2c_close(&checkpoint);
    return status;
}

enum status decode_options_check(struct decode_options *o, struct error *error) {
    TRY(bench_program_check_threads(o->threads, error));
    if (o->steps < 0) {
        return error_set(error, STATUS_INVALID_ARGUMENT, "--steps %d: at least 1, or 0", o->steps);
    }
    if (o->shape_text != NULL) {
        TRY(decode_shape_parse(o->shape_text, &o->shape, error));
    }
    return o->checkpoint != NULL ? decode_checkpoint_check(o->checkpoint, error) : STATUS_OK;
}
