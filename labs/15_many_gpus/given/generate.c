/* Writes text with a Llama2 on one GPU or several: lab 10's solved decoder, cut by this lab's. */
#include "common/programs/decoder/generate.h"
#include "common/device/device.h"
#include "common/programs/program.h"
#include "common/ranks/process_comm.h"
#include "labs/10_llama2_decoder/given/engine.h"
#include "labs/15_many_gpus/given/part_engine.h"

/* Of this rank; a program has one. Zeros: it runs alone. */
static struct comm comm;

static enum status choose(struct ranks *ranks, struct error *error) {
    return process_comm_create(&comm, ranks, error);
}

static enum status create(struct engine *engine, int threads, struct error *error) {
    (void)threads; /* the host only launches */
    return comm.ranks > 1 ? engine_part_create(engine, &comm, error)
                          : engine_decoder_create(engine, error);
}

int main(int argc, char **argv) {
    static const struct decoder_stage table[] = {{"15_many_gpus", true, create}};
    static const struct decoder_stages stages = {
        .table = table,
        .count = 1,
        .open_device = program_device_open,
        .device_now = device_now,
        .choose = choose,
    };
    return generate_main(argc, argv, &stages);
}
