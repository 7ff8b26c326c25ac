/* Writes text with a Llama2 on one GPU or several: lab 10's solved decoder, cut by this lab's. */
#include "common/programs/decoder/generate.h"
#include "common/device/device.h"
#include "common/programs/program.h"
#include "common/ranks/process_comm.h"
#include "labs/10_llama2_decoder/given/engine.h"
#include "labs/15_many_gpus/given/part_engine.h"

static enum status choose(void *comm, struct ranks *ranks, struct error *error) {
    return process_comm_create(comm, ranks, error);
}

static enum status create_part(void *comm, struct engine *engine, struct error *error) {
    return engine_part_create(engine, comm, error);
}

static enum status create_whole(struct engine *engine, int threads, struct error *error) {
    (void)threads; /* the host only launches */
    return engine_decoder_create(engine, error);
}

int main(int argc, char **argv) {
    struct comm comm = {.rank = 0};
    const struct decoder_cut cut = {&comm, choose, create_part};
    static const struct decoder_stage table[] = {{"15_many_gpus", true, create_whole}};
    const struct decoder_stages stages = {
        .table = table,
        .count = 1,
        .open_device = program_device_open,
        .device_now = device_now,
        .cut = &cut,
    };
    int status = generate_main(argc, argv, &stages);
    process_comm_free(&comm);
    return status;
}
