/* Trains on the CPU. */
#include "common/train/program/train_program.h"

int main(int argc, char **argv) {
    static const struct train_place table[] = {TRAIN_PLACES_CPU};
    static const struct train_places places = {table, sizeof table / sizeof *table, NULL};
    return train_main(argc, argv, &places);
}
