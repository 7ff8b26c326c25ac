/* The model of the bench, and the stages that it runs on. */
#include <stdlib.h>

#include "common/bench/device/device_bench.h"
#include "common/bench/models/compare_logits.h"
#include "labs/03_resident_weights/given/engine.h"
#include "labs/04_sgemm/given/engine.h"
#include "labs/07_attention/given/engine.h"
#include "labs/09_kv_cache/bench/parts.h"
#include "labs/09_kv_cache/given/engine.h"

/* Stores the address of an fp32 tensor, for the stages that take pointers. */
static enum status note_plain(void *unused, const struct llama2_tensor *tensor) {
    (void)unused;
    *tensor->plain = tensor->stored->data;
    return STATUS_OK;
}

static enum status fill(struct bench_model *model, const struct llama2_config *config) {
    TRY(llama2_random_stored_create(&model->stored, config, NN_F32, true, 1));
    model->plain.layers = calloc(config->L, sizeof *model->plain.layers);
    if (model->plain.layers == NULL) {
        return STATUS_OUT_OF_MEMORY;
    }
    TRY(llama2_tensors_visit(config, true, &model->stored.weights, &model->plain, note_plain,
                             NULL));
    model->plain.classifier = model->plain.embedding;
    return STATUS_OK;
}

enum status bench_model_create(struct bench_model *model, const struct bench_setup *setup,
                               struct error *error) {
    *model = (struct bench_model){0};
    enum status status = fill(model, &setup->config);
    return status == STATUS_OK
               ? STATUS_OK
               : error_set(error, status, "random weights: %s", status_message(status));
}

void bench_model_free(struct bench_model *model) {
    llama2_random_stored_free(&model->stored);
    free(model->plain.layers);
}

const struct bench_stage *bench_stages(void) {
    static const struct bench_stage stages[] = {
        [STAGE_03] = {"03_resident_weights", false, engine_resident_create},
        [STAGE_04] = {"04_sgemm", false, engine_sgemm_create},
        [STAGE_07] = {"07_attention", false, engine_attention_create},
        [STAGE_09] = {"09_kv_cache", true, engine_kv_cache_create},
    };
    return stages;
}

enum status bench_lane_open(struct bench_lane *lane, const struct bench_stage *stage,
                            const struct bench_model *model, const struct bench_setup *setup,
                            size_t batch, struct error *error) {
    const struct llama2_config *c = &setup->config;
    *lane = (struct bench_lane){0};
    TRY(stage->create(&lane->engine, error));
    return stage->stored
               ? llama2_create_stored(&lane->llama2, c, &model->stored.weights, setup->dtype,
                                      &lane->engine, batch, error)
               : llama2_create(&lane->llama2, c, &model->plain, &lane->engine, batch, error);
}

void bench_lane_close(struct bench_lane *lane) {
    llama2_free(lane->llama2);
    engine_destroy(&lane->engine);
}

enum status bench_forward(const struct bench_lane *lane, const int32_t *tokens, size_t count,
                          size_t position, float *logits, double *seconds, struct error *error) {
    double start = device_now();
    enum status status = llama2_forward(lane->llama2, tokens, count, position, logits);
    *seconds = device_now() - start;
    return status == STATUS_OK
               ? STATUS_OK
               : error_set(error, status, "%zu tokens from position %zu on engine %s: %s", count,
                           position, lane->engine.name, status_message(status));
}

int32_t bench_token(const struct bench_setup *setup, size_t i) {
    return (int32_t)((1 + 977 * i) % setup->config.V);
}

double bench_weight_bytes(const struct llama2_config *c, enum nn_dtype dtype) {
    double attention = (double)c->C * (double)c->HS * 2.0 * (double)(c->NH + c->KVH);
    double feed_forward = 3.0 * (double)c->C * (double)c->hidden;
    return (double)nn_dtype_bytes(dtype) *
           ((double)c->L * (attention + feed_forward) + (double)c->V * (double)c->C);
}

enum status bench_check_logits(const struct bench_setup *setup, const float *got, const float *want,
                               const char *what, double *difference, struct error *error) {
    double rounding = setup->dtype == NN_F32 ? 0.0 : nn_dtype_rounding(setup->dtype);
    *difference = largest_difference(got, want, setup->config.V);
    return *difference <= 1e-3 + 16.0 * rounding
               ? STATUS_OK
               : error_set(error, STATUS_MISMATCH,
                           "%s: logits differ from those of stage 07 or 03 by %.3g of the largest",
                           what, *difference);
}
