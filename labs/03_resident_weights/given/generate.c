/* Writes text with a Llama2 checkpoint on the engine of this stage. */
#include "common/programs/decoder/generate.h"
#include "common/device/device.h"
#include "common/programs/program.h"
#include "labs/03_resident_weights/given/engine.h"

/* The host only launches and samples, so one thread is enough. */
static enum status create(struct engine *engine, int threads, struct error *error) {
    (void)threads;
    return engine_resident_create(engine, error);
}

int main(int argc, char **argv) {
    const struct decoder_stage table[] = {{"03_resident_weights", true, create}};
    const struct decoder_stages stages = {
        .table = table, .count = 1, .open_device = program_device_open, .device_now = device_now};
    return generate_main(argc, argv, &stages);
}
