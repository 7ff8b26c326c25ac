/**
 * @file classifier_stages.h
 * @brief The engines that the classifier's programs may run on: a table that a lab fills in.
 */
#ifndef WARPBOOK_COMMON_MODEL_CLASSIFIER_STAGES_H_
#define WARPBOOK_COMMON_MODEL_CLASSIFIER_STAGES_H_

#include <stdbool.h>
#include <stddef.h>

#include "common/base/status.h"
#include "common/model/engine.h"

#ifdef __cplusplus
extern "C" {
#endif

/** One stage of the course. */
struct classifier_stage {
    const char *name; /**< "04_sgemm" */
    bool on_device;   /**< on the GPU or simt; else on the CPU */
    /** Makes the engine. @param threads most CPU threads, at least 1; a GPU stage ignores it */
    enum status (*create)(struct engine *engine, int threads, struct error *error);
};

/** The GPU that stages run on, or simt. */
struct classifier_device {
    char name[300]; /**< as records show it: "NVIDIA H200", or "simt:h200" */
    bool modelled;  /**< simt: times are modelled, not measured */
};

struct classifier_stages {
    const struct classifier_stage *table; /**< in the order of the course */
    size_t count;
    /** Opens the GPU or simt; NULL where the build has neither. */
    enum status (*open_device)(struct classifier_device *device, struct error *error);
    /** The device's clock in seconds, after it has finished all work; NULL as open_device. */
    double (*device_now)(void);
};

#ifdef __cplusplus
}
#endif

#endif
