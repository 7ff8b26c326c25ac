#include "labs/10_llama2_decoder/given/stages.h"

#include "labs/01_cpu_matmul/given/engine.h"

static enum status create_cpu(struct engine *engine, int threads, struct error *error) {
    enum status status = engine_cpu_matmul_create(engine, threads);
    return status == STATUS_OK ? STATUS_OK : error_set(error, status, "%s", status_message(status));
}

#ifdef WARPBOOK_NO_NVCC

static const struct decoder_stage table[] = {
    {"01_cpu_matmul", false, create_cpu},
};

static const struct decoder_stages stages = {.table = table, .count = sizeof table / sizeof *table};

#else

#include "common/device/device.h"
#include "common/programs/program.h"
#include "labs/02_gpu_matmul/given/engine.h"
#include "labs/03_resident_weights/given/engine.h"
#include "labs/04_sgemm/given/engine.h"
#include "labs/05_layernorm_softmax/given/engine.h"
#include "labs/06_fused_epilogues/given/engine.h"
#include "labs/07_attention/given/engine.h"
#include "labs/09_kv_cache/given/engine.h"
#include "labs/10_llama2_decoder/given/engine.h"

/* The host only launches, so the number of CPU threads does not matter. */
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
ON_DEVICE(create_kv_cache, engine_kv_cache_create)
ON_DEVICE(create_decoder, engine_decoder_create)

/* The programs run on the last row by default; a new stage of the course adds one row. */
static const struct decoder_stage table[] = {
    {"01_cpu_matmul", false, create_cpu},
    {"02_gpu_matmul", true, create_gpu_matmul},
    {"03_resident_weights", true, create_resident},
    {"04_sgemm", true, create_sgemm},
    {"05_layernorm_softmax", true, create_layernorm_softmax},
    {"06_fused_epilogues", true, create_fused},
    {"07_attention", true, create_attention},
    {"09_kv_cache", true, create_kv_cache},
    {"10_llama2_decoder", true, create_decoder},
};

static const struct decoder_stages stages = {
    .table = table,
    .count = sizeof table / sizeof *table,
    .relatives = "09_kv_cache", /* its decoder reads 16-bit weights; stage 10 would convert them */
    .open_device = program_device_open,
    .device_now = device_now,
};

#endif

const struct decoder_stages *decoder_stages_of_the_course(void) {
    return &stages;
}
