/**
 * @file decoder_stages.h
 * @brief The stages of the course that a program with a Llama2 can run on.
 */
#ifndef WARPBOOK_COMMON_PROGRAMS_DECODER_DECODER_STAGES_H_
#define WARPBOOK_COMMON_PROGRAMS_DECODER_DECODER_STAGES_H_

#include <stdbool.h>
#include <stddef.h>

#include "common/base/status.h"
#include "common/models/engine.h"
#include "common/programs/program.h"
#include "common/ranks/processes.h"

struct decoder_stage {
    const char *name; /**< "10_llama2_decoder" */
    bool on_device;
    /** Makes the engine. @param threads most CPU threads, at least 1; a GPU stage ignores it */
    enum status (*create)(struct engine *engine, int threads, struct error *error);
};

/** Functions of a rank of several GPUs. */
struct decoder_cut {
    void *context;
    /** COLLECTIVE: chooses the rank's GPU, before all else is done on it. */
    enum status (*choose)(void *context, struct ranks *ranks, struct error *error);
    /** Behind it: makes the engine of the last stage that works together with the other ranks'. */
    enum status (*create)(void *context, struct engine *engine, struct error *error);
};

struct decoder_stages {
    const struct decoder_stage *table; /**< in the order of the course */
    size_t count;                      /**< at least 1 */
    /** The stage on the device for relatives of Llama2 without --stage; NULL: the last. */
    const char *relatives;
    /** Opens the GPU or simt: program_device_open(); NULL if no stage is on the device. */
    enum status (*open_device)(struct program_device *device, struct error *error);
    /** The device's clock, device_now(); NULL if open_device is. */
    double (*device_now)(void);
    const struct decoder_cut *cut; /**< for several GPUs; NULL: one GPU only */
};

/**
 * @param name a stage's name or the beginning of one ("10_llama"), or its number ("1" means
 *             01_cpu_matmul)
 * @return the stage; NULL if there is none, or if several names begin so
 */
const struct decoder_stage *decoder_stage_find(const struct decoder_stages *stages,
                                               const char *name);

#endif
