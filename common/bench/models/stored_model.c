#include "common/bench/models/stored_model.h"

#include <stdio.h>
#include <string.h>

enum status stored_model_open(struct stored_model *m, const char *path, struct error *error) {
    const char *slash = strrchr(path, '/');
    TRY(llama2_checkpoint_open(&m->checkpoint, path, error));
    m->config = &m->checkpoint.config;
    m->weights = &m->checkpoint.weights;
    m->shared = m->checkpoint.shared_classifier;
    snprintf(m->label, sizeof m->label, "%.60s",
             slash != NULL && slash[1] != '\0' ? slash + 1 : path);
    snprintf(m->name, sizeof m->name, "%s", m->label);
    return STATUS_OK;
}

enum status stored_model_random(struct stored_model *m, const struct llama2_config *config,
                                const char *label, enum nn_dtype dtype, bool shared,
                                struct error *error) {
    enum status status = llama2_random_stored_create(&m->random, config, dtype, shared, 1);
    if (status != STATUS_OK) {
        return error_set(error, status, "random weights of the %s shape: %s", label,
                         status_message(status));
    }
    m->config = &m->random.config;
    m->weights = &m->random.weights;
    m->shared = shared;
    m->checkpoint = (struct llama2_checkpoint){
        .config = *config, .shared_classifier = shared, .weights = m->random.weights};
    snprintf(m->label, sizeof m->label, "%s", label);
    snprintf(m->name, sizeof m->name, "%s shape, random weights", m->label);
    return STATUS_OK;
}

void stored_model_close(struct stored_model *m) {
    llama2_fp32_free(&m->fp32);
    if (m->random.block == NULL) { /* else the checkpoint is a view of it */
        llama2_checkpoint_close(&m->checkpoint);
    }
    llama2_random_stored_free(&m->random);
    *m = (struct stored_model){0};
}

enum status stored_model_create_llama2(struct stored_model *m, const struct engine *engine,
                                       enum nn_dtype dtype, size_t batch, struct llama2 **llama2,
                                       struct error *error) {
    if (engine->decoder_create != NULL) {
        return llama2_create_stored(llama2, m->config, m->weights, dtype, engine, batch, error);
    }
    if (dtype != NN_F32) {
        return error_set(error, STATUS_UNSUPPORTED, "stage %s computes in fp32 alone, not in %s",
                         engine->name, nn_dtype_name(dtype));
    }
    if (!m->has_fp32) {
        TRY(llama2_checkpoint_convert(&m->checkpoint, 0, &m->fp32, error));
        m->has_fp32 = true;
    }
    return llama2_create(llama2, m->config, &m->fp32.weights, engine, batch, error);
}
