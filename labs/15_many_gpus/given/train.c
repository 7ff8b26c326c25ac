/* Trains a model on one GPU or several: lab 11's solved engine, and this lab's all-reduce. */
#include <stdio.h>

#include "common/device/device.h"
#include "common/ranks/process_comm.h"
#include "common/train/program/train_program.h"
#include "labs/11_training/given/engine.h"
#include "labs/15_many_gpus/given/peers.h"

static enum status create_gpu(struct train_engine *engine, enum nn_dtype dtype,
                              struct train_where *where, struct error *error) {
    struct device_properties properties;
    TRY(device_open(error));
    TRY(device_properties(&properties, error));
    snprintf(where->name, sizeof where->name, "%s", properties.record_name);
    where->modelled = properties.modelled;
    where->now = device_now;
    return training_engine_create(engine, dtype, error);
}

static enum status connect(struct train_peers *peers, void *comm, const struct train_engine *engine,
                           struct error *error) {
    size_t count;
    const struct many_step *steps = many_ladder(&count);
    return many_peers_create(peers, comm, &steps[count - 1], training_engine_stream(engine), error);
}

static enum status choose(void *comm, struct ranks *ranks, struct error *error) {
    return process_comm_create(comm, ranks, error);
}

int main(int argc, char **argv) {
    struct comm comm = {.rank = 0};
    const struct train_exchange exchange = {&comm, choose, connect};
    static const struct train_place table[] = {{"gpu", create_gpu}, TRAIN_PLACES_CPU};
    const struct train_places places = {table, sizeof table / sizeof *table, &exchange};
    int status = train_main(argc, argv, &places);
    process_comm_free(&comm);
    return status;
}
