#include "labs/15_many_gpus/given/engine.h"

enum status engine_many_gpus_create(struct engine *engine, struct error *error) {
    return engine_decoder_create(engine, error);
}
