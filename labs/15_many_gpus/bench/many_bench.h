/**
 * @file many_bench.h
 * @brief Parts of lab 15's bench: all-reduces, decoding, and NCCL beside them.
 */
#ifndef WARPBOOK_LABS_15_MANY_GPUS_BENCH_MANY_BENCH_H_
#define WARPBOOK_LABS_15_MANY_GPUS_BENCH_MANY_BENCH_H_

#include "common/bench/bench.h"
#include "common/device/device.h"
#include "labs/15_many_gpus/given/rig.h"

/** The command line, and what was found. */
struct many_setup {
    int ranks;         /**< --ranks */
    const char *model; /**< --model, or NULL: all that fit */
    bool quick;        /**< --quick */
    bool sums;         /**< --sums: all-reduces alone */
    struct device_properties gpu;
    bool nccl; /**< the library was found */
};

enum { MANY_MOST_STEPS = 16 };

/** The ladder's steps, and NCCL last if there is one. @return how many */
size_t many_bench_steps(const struct many_setup *setup, struct many_step steps[MANY_MOST_STEPS]);

/** @return whether a step is NCCL. */
bool many_bench_is_nccl(const struct many_step *step);

/** COLLECTIVE, as comm_function: connects the ranks by NCCL, or leaves it. */
enum status many_bench_open_nccl(struct comm *comm, void *context, struct error *error);
enum status many_bench_close_nccl(struct comm *comm, void *context, struct error *error);

/** The tables. */
MUST_CHECK enum status many_bench_sums(const struct many_setup *setup, struct error *error);
MUST_CHECK enum status many_bench_decode(const struct many_setup *setup, struct error *error);

#endif
