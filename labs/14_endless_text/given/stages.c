#include "labs/14_endless_text/given/stages.h"

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
#include "labs/14_endless_text/given/engine.h"

/* The host only launches, so the number of CPU threads does not matter. */
static enum status create_endless(struct engine *engine, int threads, struct error *error) {
    (void)threads;
    return engine_endless_create(engine, error);
}

static const struct decoder_stage table[] = {
    {"01_cpu_matmul", false, create_cpu},
    {"14_endless_text", true, create_endless},
};

static const struct decoder_stages stages = {
    .table = table,
    .count = sizeof table / sizeof *table,
    .open_device = program_device_open,
    .device_now = device_now,
};

#endif

const struct decoder_stages *endless_stages(void) {
    return &stages;
}
