/**
 * @file classifier_stages.h
 * @brief The stages that the classifier's programs can run on: a table that a lab fills in.
 */
#ifndef WARPBOOK_COMMON_PROGRAMS_CLASSIFIER_CLASSIFIER_STAGES_H_
#define WARPBOOK_COMMON_PROGRAMS_CLASSIFIER_CLASSIFIER_STAGES_H_

#include <stdbool.h>
#include <stddef.h>

#include "common/base/status.h"
#include "common/models/engine.h"
#include "common/nn/dtype.h"
#include "common/programs/program.h"

/** One stage of the course. */
struct classifier_stage {
    const char *name; /**< "04_sgemm" */
    bool on_device;   /**< true: on the GPU or simt; false: on the CPU */
    /** Makes the engine. @param threads most CPU threads, at least 1; a GPU stage ignores it */
    enum status (*create)(struct engine *engine, int threads, struct error *error);
    /** Makes an engine whose matmul inputs are fp16 or bf16; NULL: the stage has only fp32. */
    enum status (*create16)(struct engine *engine, enum nn_dtype dtype, struct error *error);
};

/**
 * The functions of common/bench/device/kernel_times.h, which time the launches of an operator. (A
 * build without nvcc does not have them.)
 */
struct classifier_kernels {
    /** @return STATUS_UNSUPPORTED, with the reason, when the engine's launches cannot be recorded
     */
    enum status (*create)(void **times, const struct engine *engine, struct error *error);
    void (*free)(void *times);
    enum status (*begin)(void *times, struct error *error);
    /** @return STATUS_UNSUPPORTED: no work was done, observe was not called */
    enum status (*end)(void *times, enum status called,
                       void (*observe)(void *observer, const char *name, double ms), void *observer,
                       struct error *error);
    enum status (*start)(void *times, struct error *error);
    enum status (*stop)(void *times, double *ms, struct error *error);
};

struct classifier_stages {
    const struct classifier_stage *table; /**< in the order of the course */
    size_t count;
    const struct classifier_kernels *kernels; /**< NULL if open_device is */
    /** Opens the GPU or simt: program_device_open(); NULL if the build has neither. */
    enum status (*open_device)(struct program_device *device, struct error *error);
    /** The device's clock in seconds, after it has finished all work; NULL if open_device is. */
    double (*device_now)(void);
};

#endif
