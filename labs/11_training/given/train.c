/* Trains a BERT or a Llama2 on this lab's engine, or on the CPU. */
#include "common/train/program/train_program.h"

#ifdef WARPBOOK_NO_NVCC

static const struct train_place table[] = {TRAIN_PLACES_CPU};

#else

#include <stdio.h>

#include "common/device/device.h"
#include "labs/11_training/given/engine.h"

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

static const struct train_place table[] = {{"gpu", create_gpu}, TRAIN_PLACES_CPU};

#endif

int main(int argc, char **argv) {
    static const struct train_places places = {table, sizeof table / sizeof *table, NULL};
    return train_main(argc, argv, &places);
}
