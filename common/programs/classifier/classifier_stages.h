/**
 * @file classifier_stages.h
 * @brief The engines that the classifier's programs may run on: a table that a lab fills in.
 */
#ifndef WARPBOOK_COMMON_PROGRAMS_CLASSIFIER_CLASSIFIER_STAGES_H_
#define WARPBOOK_COMMON_PROGRAMS_CLASSIFIER_CLASSIFIER_STAGES_H_

#include <stdbool.h>
#include <stddef.h>

#include "common/base/status.h"
#include "common/models/engine.h"
#include "common/nn/dtype.h"

#ifdef __cplusplus
extern "C" {
#endif

/** One stage of the course. */
struct classifier_stage {
    const char *name; /**< "04_sgemm" */
    bool on_device;   /**< on the GPU or simt; else on the CPU */
    /** Makes the engine. @param threads most CPU threads, at least 1; a GPU stage ignores it */
    enum status (*create)(struct engine *engine, int threads, struct error *error);
    /** Makes one that computes products of 16-bit numbers, fp16 or bf16; NULL: fp32 alone. */
    enum status (*create16)(struct engine *engine, enum nn_dtype dtype, struct error *error);
};

/** The GPU that stages run on, or simt. */
struct classifier_device {
    char name[300]; /**< as records show it: "NVIDIA H200", or "simt:h200" */
    bool modelled;  /**< simt: times are modelled, not measured */
};

/**
 * What looks inside operators of an engine on the device: common/bench/device/kernel_times.h, whose
 * functions these are. (A build without nvcc has none of it.)
 */
struct classifier_kernels {
    /** @return STATUS_UNSUPPORTED, with the reason: not on this engine */
    enum status (*create)(void **times, const struct engine *engine, struct error *error);
    void (*free)(void *times);
    enum status (*begin)(void *times, struct error *error);
    /** @return STATUS_UNSUPPORTED: nothing was done, nobody was told */
    enum status (*end)(void *times, enum status called,
                       void (*observe)(void *observer, const char *name, double ms), void *observer,
                       struct error *error);
    enum status (*start)(void *times, struct error *error);
    enum status (*stop)(void *times, double *ms, struct error *error);
};

struct classifier_stages {
    const struct classifier_stage *table; /**< in the order of the course */
    size_t count;
    const struct classifier_kernels *kernels; /**< NULL as open_device */
    /** Opens the GPU or simt; NULL where the build has neither. */
    enum status (*open_device)(struct classifier_device *device, struct error *error);
    /** The device's clock in seconds, after it has finished all work; NULL as open_device. */
    double (*device_now)(void);
};

#ifdef __cplusplus
}
#endif

#endif
