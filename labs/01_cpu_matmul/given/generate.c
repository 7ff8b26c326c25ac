/* Writes text with a Llama2 checkpoint on the engine of this stage. */
#include "common/programs/decoder/generate.h"
#include "labs/01_cpu_matmul/given/engine.h"

static enum status create(struct engine *engine, int threads, struct error *error) {
    enum status status = engine_cpu_matmul_create(engine, threads);
    return status == STATUS_OK ? STATUS_OK : error_set(error, status, "%s", status_message(status));
}

int main(int argc, char **argv) {
    const struct decoder_stage table[] = {{"01_cpu_matmul", false, create}};
    const struct decoder_stages stages = {.table = table, .count = 1};
    return generate_main(argc, argv, &stages);
}
