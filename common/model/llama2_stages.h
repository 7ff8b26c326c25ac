/**
 * @file llama2_stages.h
 * @brief The stages of the course that a program with a Llama2 can run on.
 */
#ifndef WARPBOOK_COMMON_MODEL_LLAMA2_STAGES_H_
#define WARPBOOK_COMMON_MODEL_LLAMA2_STAGES_H_

#include <stdbool.h>
#include <stddef.h>

#include "common/base/status.h"
#include "common/model/engine.h"

#ifdef __cplusplus
extern "C" {
#endif

struct llama2_stage {
    const char *name; /**< "10_llama2_decoder" */
    bool on_device;
    /** @param threads of the CPU, at least 1 @param error may say why not */
    enum status (*create)(struct engine *engine, int threads, struct error *error);
};

struct llama2_stages {
    const struct llama2_stage *table; /**< in the order of the course; the last is the default */
    size_t count;                     /**< at least 1; with 1 there is no --stage */
};

/** @return the stage of that name, or that whose name begins so ("10"); NULL: there is none. */
const struct llama2_stage *llama2_stage_find(const struct llama2_stages *stages, const char *name);

#ifdef __cplusplus
}
#endif

#endif
