/**
 * @file train_engine.c
 * @brief What all training engines share.
 */
#include "common/train/train_engine.h"

void train_engine_destroy(struct train_engine *engine) {
    if (engine->destroy != NULL) {
        engine->destroy(engine->context);
    }
    *engine = (struct train_engine){0};
}
