/* What a program is told of its longest launches. */
#include <stdio.h>

#include "common/simt/runtime/gpu/model.h"
#include "common/simt/runtime/kernel/modules.h"
#include "common/simt/runtime/state.h"

static void describe(struct simt_profile *profile, const struct simt_gpu *gpu,
                     const struct kernel_work *launch, const struct simt_cost *cost) {
    const struct kernel *kernel = launch->kernel;
    *profile = (struct simt_profile){
        .modelled = true,
        .grid = {launch->grid.x, launch->grid.y, launch->grid.z},
        .block = {launch->block.x, launch->block.y, launch->block.z},
        .registers = kernel->info.registers,
        .shared = kernel->info.static_shared_bytes + launch->shared,
        .blocks = cost->blocks,
        .counters = *cost->counters,
    };
    snprintf(profile->gpu, sizeof profile->gpu, "%s", gpu->name);
    snprintf(profile->kernel, sizeof profile->kernel, "%s", kernel->readable);
}

static void make_profile(struct simt_profile *profile, const struct simt_gpu *gpu,
                         const struct kernel_work *launch, const struct simt_cost *cost,
                         const struct simt_explanation *time) {
    const struct simt_processor processor = {.threads = (uint32_t)gpu->threads_per_multiprocessor,
                                             .blocks = (uint32_t)gpu->blocks_per_multiprocessor,
                                             .registers = OCCUPANCY_REGISTERS};
    describe(profile, gpu, launch, cost);
    simt_profile_set_occupancy(profile, &processor, (uint32_t)gpu->multiprocessors, cost->resident);
    simt_model_profile(profile, time);
}

void profile_note(struct runtime *runtime, const struct kernel_work *launch,
                  const struct simt_cost *cost, const struct simt_explanation *time) {
    double nanoseconds = time->nanoseconds;
    struct simt_profile *of_kernel = report_longest(&runtime->report, launch->kernel->readable);
    bool longest = nanoseconds > runtime->longest.nanoseconds;
    bool longest_of_kernel = of_kernel != NULL && nanoseconds > of_kernel->nanoseconds;
    if (longest || longest_of_kernel) {
        struct simt_profile profile;
        make_profile(&profile, runtime->settings.gpu, launch, cost, time);
        runtime->longest = longest ? profile : runtime->longest;
        if (longest_of_kernel) {
            *of_kernel = profile;
        }
    }
}
