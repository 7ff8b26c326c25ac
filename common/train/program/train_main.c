/* Trains on the CPU reference: tiny models, without a GPU. */
#include "common/train/program/train_program.h"

int main(int argc, char **argv) {
    static const struct train_place table[] = {{"cpu", train_place_cpu}};
    static const struct train_places places = {table, sizeof table / sizeof *table};
    return train_main(argc, argv, &places);
}
