#include "labs/08_bert_classifier/stages.h"

#include "labs/01_cpu_matmul/engine.h"

static enum status create_cpu(struct engine *engine, int threads, struct error *error) {
    enum status status = engine_cpu_matmul_create(engine, threads);
    return status == STATUS_OK ? STATUS_OK : error_set(error, status, "%s", status_message(status));
}

#ifdef WARPBOOK_NO_NVCC

static const struct classifier_stage table[] = {
    {"01_cpu_matmul", false, create_cpu},
};

static const struct classifier_stages stages = {.table = table,
                                                .count = sizeof table / sizeof *table};

#else

#include <stdio.h>

#include "common/device/device.h"
#include "labs/02_gpu_matmul/engine.h"
#include "labs/03_resident_weights/engine.h"
#include "labs/04_sgemm/engine.h"
#include "labs/05_layernorm_softmax/engine.h"
#include "labs/06_fused_epilogues/engine.h"
#include "labs/07_attention/engine.h"

static enum status create_gpu_matmul(struct engine *engine, int threads, struct error *error) {
    (void)threads;
    return engine_gpu_matmul_create(engine, error);
}

static enum status create_resident(struct engine *engine, int threads, struct error *error) {
    (void)threads;
    return engine_resident_create(engine, error);
}

static enum status create_sgemm(struct engine *engine, int threads, struct error *error) {
    (void)threads;
    return engine_sgemm_create(engine, error);
}

static enum status create_layernorm_softmax(struct engine *engine, int threads,
                                            struct error *error) {
    (void)threads;
    return engine_layernorm_softmax_create(engine, error);
}

static enum status create_fused(struct engine *engine, int threads, struct error *error) {
    (void)threads;
    return engine_fused_create(engine, error);
}

static enum status create_attention(struct engine *engine, int threads, struct error *error) {
    (void)threads;
    return engine_attention_create(engine, error);
}

/* The last row is what the programs run on: a new stage of the course is one more row here. */
static const struct classifier_stage table[] = {
    {"01_cpu_matmul", false, create_cpu},
    {"02_gpu_matmul", true, create_gpu_matmul},
    {"03_resident_weights", true, create_resident},
    {"04_sgemm", true, create_sgemm},
    {"05_layernorm_softmax", true, create_layernorm_softmax},
    {"06_fused_epilogues", true, create_fused},
    {"07_attention", true, create_attention},
};

static enum status open_device(struct classifier_device *device, struct error *error) {
    struct device_properties properties;
    TRY(device_open(error));
    TRY(device_properties(&properties, error));
    snprintf(device->name, sizeof device->name, "%s", properties.record_name);
    device->modelled = properties.modelled;
    return STATUS_OK;
}

static const struct classifier_stages stages = {
    .table = table,
    .count = sizeof table / sizeof *table,
    .open_device = open_device,
    .device_now = device_now,
};

#endif

const struct classifier_stages *stages_of_the_course(void) {
    return &stages;
}
