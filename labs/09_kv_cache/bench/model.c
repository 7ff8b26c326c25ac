/* The model of the bench, and the stages that it runs on. */
#include <math.h>

#include "common/bench/models/compare_logits.h"
#include "labs/03_resident_weights/given/engine.h"
#include "labs/04_sgemm/given/engine.h"
#include "labs/07_attention/given/engine.h"
#include "labs/09_kv_cache/bench/bench_internal.h"
#include "labs/09_kv_cache/given/engine.h"

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
                            struct stored_model *model, const struct bench_setup *setup,
                            size_t batch, struct error *error) {
    *lane = (struct bench_lane){0};
    TRY(stage->create(&lane->engine, error));
    return stored_model_create_llama2(model, &lane->engine, stage->stored ? setup->dtype : NN_F32,
                                      batch, &lane->llama2, error);
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

struct bench_record bench_record_of(const struct bench_gpu *gpu, const char *stage, const char *op,
                                    const char *shape, enum nn_dtype dtype) {
    return (struct bench_record){
        .lab = "09_kv_cache",
        .subject = WARPBOOK_SUBJECT,
        .stage = stage,
        .op = op,
        .shape = shape,
        .dtype = nn_dtype_name(dtype),
        .threads = 1,
        .gpu = gpu,
        .bytes = NAN,
        .flops = NAN,
        .peer_ratio = NAN,
    };
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
