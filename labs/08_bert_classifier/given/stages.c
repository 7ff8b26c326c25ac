#include "labs/08_bert_classifier/given/stages.h"

#include "labs/01_cpu_matmul/given/engine.h"

static enum status create_cpu(struct engine *engine, int threads, struct error *error) {
    enum status status = engine_cpu_matmul_create(engine, threads);
    return status == STATUS_OK ? STATUS_OK : error_set(error, status, "%s", status_message(status));
}

#ifdef WARPBOOK_NO_NVCC

static const struct classifier_stage table[] = {
    {"01_cpu_matmul", false, create_cpu, NULL},
};

static const struct classifier_stages stages = {.table = table,
                                                .count = sizeof table / sizeof *table};

#else

#include <string.h>

#include "common/bench/device/kernel_times.h"
#include "common/device/device.h"
#include "labs/02_gpu_matmul/given/engine.h"
#include "labs/03_resident_weights/given/engine.h"
#include "labs/04_sgemm/given/engine.h"
#include "labs/05_layernorm_softmax/given/engine.h"
#include "labs/06_fused_epilogues/given/engine.h"
#include "labs/07_attention/given/engine.h"
#include "labs/08_bert_classifier/given/engine.h"
#include "labs/08_bert_classifier/given/engine16.h"

/* The host only launches: threads of the CPU are no matter. */
#define ON_DEVICE(create, stage_create)                                                  \
    static enum status create(struct engine *engine, int threads, struct error *error) { \
        (void)threads;                                                                   \
        return stage_create(engine, error);                                              \
    }

ON_DEVICE(create_gpu_matmul, engine_gpu_matmul_create)
ON_DEVICE(create_resident, engine_resident_create)
ON_DEVICE(create_sgemm, engine_sgemm_create)
ON_DEVICE(create_layernorm_softmax, engine_layernorm_softmax_create)
ON_DEVICE(create_fused, engine_fused_create)
ON_DEVICE(create_attention, engine_attention_create)
ON_DEVICE(create_encoder, engine_encoder_create)

/* The programs run on the last row by default; a new stage of the course adds one row. */
static const struct classifier_stage table[] = {
    {"01_cpu_matmul", false, create_cpu, NULL},
    {"02_gpu_matmul", true, create_gpu_matmul, NULL},
    {"03_resident_weights", true, create_resident, NULL},
    {"04_sgemm", true, create_sgemm, NULL},
    {"05_layernorm_softmax", true, create_layernorm_softmax, NULL},
    {"06_fused_epilogues", true, create_fused, NULL},
    {"07_attention", true, create_attention, NULL},
    {"08_bert_classifier", true, create_encoder, engine_encoder16_create},
};

/* ---- Times of the kernels behind an operator ---- */

/* From stage 03 on, all work runs on the stream of the engine at the bottom of the stack. */
static enum status create_kernel_times(void **times, const struct engine *engine,
                                       struct error *error) {
    static const char below[] = "03_resident_weights";
    device_stream stream = NULL;
    struct kernel_times *made = NULL;
    *times = NULL;
    if (strcmp(engine->name, below) < 0) {
        return error_set(error, STATUS_UNSUPPORTED,
                         "it copies and waits in every operator, so no launch is seen by itself");
    }
    TRY(engine_resident_stream(engine_resident_of(engine), &stream, error));
    enum status status = kernel_times_create(&made, stream, error);
    *times = made;
    return status;
}

static void free_kernel_times(void *times) {
    kernel_times_free(times);
}

static enum status begin_kernel_times(void *times, struct error *error) {
    return kernel_times_begin(times, error);
}

static enum status end_kernel_times(void *times, enum status called, kernel_times_observer *observe,
                                    void *observer, struct error *error) {
    return kernel_times_end(times, called, observe, observer, error);
}

static enum status start_kernel_times(void *times, struct error *error) {
    return kernel_times_start(times, error);
}

static enum status stop_kernel_times(void *times, double *ms, struct error *error) {
    return kernel_times_stop(times, ms, error);
}

static const struct classifier_kernels kernels = {
    create_kernel_times, free_kernel_times,  begin_kernel_times,
    end_kernel_times,    start_kernel_times, stop_kernel_times,
};

static const struct classifier_stages stages = {
    .table = table,
    .count = sizeof table / sizeof *table,
    .kernels = &kernels,
    .open_device = program_device_open,
    .device_now = device_now,
};

#endif

const struct classifier_stages *stages_of_the_course(void) {
    return &stages;
}
