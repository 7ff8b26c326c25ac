#include "common/simt/runtime/kernel/modules.h"
#include "common/simt/runtime/state.h"

static void set_occupancy(struct xray_facts *facts, const struct simt_gpu *gpu,
                          const struct kernel_work *launch) {
    int threads = (int)(launch->block.x * launch->block.y * launch->block.z);
    struct occupancy limits;
    occupancy_limits(&limits, gpu, launch->kernel, threads, launch->shared);
    facts->fits = (size_t)occupancy_blocks(gpu, launch->kernel, threads, launch->shared);
    facts->by_blocks = limits.blocks;
    facts->by_threads = limits.threads;
    facts->by_shared = limits.shared;
    facts->by_registers = limits.registers;
}

bool launch_facts(const struct runtime *runtime, const struct kernel_work *launch,
                  struct xray_facts *facts) {
    const struct simt_kernel_info *info = &launch->kernel->info;
    if (runtime->settings.xray[0] == '\0') {
        return false;
    }
    *facts = (struct xray_facts){
        .kernel = launch->kernel->readable,
        .grid = {launch->grid.x, launch->grid.y, launch->grid.z},
        .block = {launch->block.x, launch->block.y, launch->block.z},
        .static_shared = info->static_shared_bytes,
        .dynamic_shared = launch->shared,
        .local_bytes = info->local_bytes,
        .registers = info->registers,
    };
    set_occupancy(facts, runtime->settings.gpu, launch);
    return true;
}
