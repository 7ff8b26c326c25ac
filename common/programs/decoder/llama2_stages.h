/**
 * @file llama2_stages.h
 * @brief The stages of the course that a program with a Llama2 can run on.
 */
#ifndef WARPBOOK_COMMON_PROGRAMS_DECODER_LLAMA2_STAGES_H_
#define WARPBOOK_COMMON_PROGRAMS_DECODER_LLAMA2_STAGES_H_

#include <stdbool.h>
#include <stddef.h>

#include "common/base/status.h"
#include "common/models/engine.h"

#ifdef __cplusplus
extern "C" {
#endif

struct llama2_stage {
    const char *name; /**< "10_llama2_decoder" */
    bool on_device;
    /** @param threads of the CPU, at least 1 @param error may say why not */
    enum status (*create)(struct engine *engine, int threads, struct error *error);
};

/** The GPU that stages run on, or simt. */
struct llama2_place {
    char name[300]; /**< as records show it: "NVIDIA H200", or "simt:h200" */
    bool modelled;  /**< simt: times are modelled, not measured */
};

struct llama2_stages {
    const struct llama2_stage *table; /**< in the order of the course */
    size_t count;                     /**< at least 1 */
    /** Opens the GPU or simt: llama2_place_open(); NULL where no stage is on the device. */
    enum status (*open_place)(struct llama2_place *place, struct error *error);
    /** The device's clock, device_now(); NULL as open_place. */
    double (*place_now)(void);
};

/**
 * @param name a stage's name or how it begins ("10_llama"), or its number ("1" is 01_cpu_matmul)
 * @return NULL: there is none, or more than one begins so
 */
const struct llama2_stage *llama2_stage_find(const struct llama2_stages *stages, const char *name);

#ifdef __cplusplus
}
#endif

#endif
