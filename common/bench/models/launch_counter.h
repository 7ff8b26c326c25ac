/**
 * @file launch_counter.h
 * @brief Counts what an engine's operators launch: a recorder of common/models/profile.h.
 */
#ifndef WARPBOOK_COMMON_BENCH_MODELS_LAUNCH_COUNTER_H_
#define WARPBOOK_COMMON_BENCH_MODELS_LAUNCH_COUNTER_H_

#include <stdbool.h>
#include <stddef.h>

#include "common/base/status.h"
#include "common/bench/device/kernel_times.h"
#include "common/models/profile.h"

#ifdef __cplusplus
extern "C" {
#endif

/** The caller makes and frees `times`; all else begins as zero. */
struct launch_counter {
    struct kernel_times *times;
    size_t launches; /**< of a graph, each; copies and fills of operators count, too */
    size_t unseen;   /**< calls of operators that could not be recorded: they wait for the device */
    char why[128];   /**< why the last of those could not; "": all could */
    struct error error;
    bool again;         /**< this call repeats one that could not be recorded */
    enum status status; /**< first failure to record */
};

/** @return callbacks for struct profile, to be set once the engine's first run is done. */
struct profile_recorder launch_counter_recorder(struct launch_counter *counter);

#ifdef __cplusplus
}
#endif

#endif
