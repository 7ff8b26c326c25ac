#include <stdlib.h>
#include <string.h>

#include "common/simt/control.h"
#include "common/simt/memory/access/late.h"
#include "common/simt/runtime/gpu/link.h"
#include "common/simt/runtime/gpu/model.h"
#include "common/simt/runtime/kernel/modules.h"
#include "common/simt/runtime/state.h"
#include "common/simt/runtime/stream/dependent.h"
#include "common/simt/runtime/stream/stream.h"

enum { MAX_THREADS = 1024, MAX_Z = 64, MAX_GRID_YZ = 65535, DEFAULT_SHARED = 48 * 1024 };

static bool shape_is_good(const struct kernel_work *launch) {
    const dim3 *grid = &launch->grid;
    const dim3 *block = &launch->block;
    if (grid->x == 0 || grid->y == 0 || grid->z == 0 || block->x == 0 || block->y == 0 ||
        block->z == 0) {
        return false;
    }
    return grid->x <= INT32_MAX && grid->y <= MAX_GRID_YZ && grid->z <= MAX_GRID_YZ &&
           block->x <= MAX_THREADS && block->y <= MAX_THREADS && block->z <= MAX_Z &&
           (uint64_t)block->x * block->y * block->z <= MAX_THREADS;
}

static cudaError_t check_shared(const struct runtime *runtime, const struct kernel_work *launch) {
    const struct kernel *kernel = launch->kernel;
    size_t fixed = kernel->info.static_shared_bytes;
    size_t limit = kernel->dynamic_limit;
    if (limit == 0) {
        limit = fixed < DEFAULT_SHARED ? DEFAULT_SHARED - fixed : 0;
    }
    if (launch->shared <= limit) {
        return cudaSuccess;
    }
    runtime_explain(runtime,
                    "the launch of %s asks for %zu bytes of dynamic shared memory, %zu are "
                    "allowed; cudaFuncSetAttribute(cudaFuncAttributeMaxDynamicSharedMemorySize) "
                    "allows up to %zu",
                    kernel->readable, launch->shared, limit,
                    runtime->settings.gpu->shared_optin - fixed);
    return cudaErrorInvalidValue;
}

/** A cooperative launch needs all its blocks on the GPU at the same time. */
static cudaError_t check_cooperative(struct runtime *runtime, const struct kernel_work *launch) {
    uint64_t blocks = (uint64_t)launch->grid.x * launch->grid.y * launch->grid.z;
    int threads = (int)(launch->block.x * launch->block.y * launch->block.z);
    int resident = occupancy_blocks(runtime->settings.gpu, launch->kernel, threads, launch->shared);
    uint64_t most = (uint64_t)resident * (uint64_t)runtime->settings.gpu->multiprocessors;
    return blocks <= most ? cudaSuccess : cudaErrorCooperativeLaunchTooLarge;
}

cudaError_t launch_check(struct runtime *runtime, const struct kernel_work *launch) {
    const struct kernel *kernel = launch->kernel;
    /* Again for a graph that outlived cudaDeviceReset(). */
    CUDA_TRY(kernel_prepare(runtime, launch->kernel));
    if (!shape_is_good(launch)) {
        runtime_explain(runtime,
                        "the launch of %s has a grid of %ux%ux%u blocks of %ux%ux%u threads; "
                        "blocks have 1 to %d threads, at most %d in z, grids at most %d blocks "
                        "in y and z",
                        kernel->readable, launch->grid.x, launch->grid.y, launch->grid.z,
                        launch->block.x, launch->block.y, launch->block.z, MAX_THREADS, MAX_Z,
                        MAX_GRID_YZ);
        return cudaErrorInvalidValue;
    }
    uint32_t threads = launch->block.x * launch->block.y * launch->block.z;
    if (kernel->info.max_threads != 0 && threads > kernel->info.max_threads) {
        runtime_explain(runtime,
                        "the launch of %s has %u threads a block; __launch_bounds__ says %u",
                        kernel->readable, threads, kernel->info.max_threads);
        return cudaErrorInvalidValue;
    }
    CUDA_TRY(cluster_check(runtime, launch));
    cudaError_t error = check_shared(runtime, launch);
    if (error == cudaSuccess && launch->cooperative) {
        error = check_cooperative(runtime, launch);
    }
    return error;
}

static cudaError_t error_of_fault(enum simt_fault_kind kind) {
    switch (kind) {
    case SIMT_FAULT_NONE:
        return cudaSuccess;
    case SIMT_FAULT_OUT_OF_BOUNDS:
    case SIMT_FAULT_FREED:
    case SIMT_FAULT_STACK:
        return cudaErrorIllegalAddress;
    case SIMT_FAULT_MISALIGNED:
        return cudaErrorMisalignedAddress;
    case SIMT_FAULT_ASSERT:
        return cudaErrorAssert;
    case SIMT_FAULT_ENDLESS:
        return cudaErrorLaunchTimeout;
    case SIMT_FAULT_UNSUPPORTED:
        return cudaErrorNotSupported;
    default: /* a GPU would not notice these, or reports an unspecified failure */
        return cudaErrorLaunchFailure;
    }
}

/** Here a debugger stops when a kernel has gone wrong: `break simt_fault_found`, see
 * tools/debug.sh. */
void simt_fault_found(const struct simt_fault *fault);

__attribute__((noinline)) void simt_fault_found(const struct simt_fault *fault) {
    __asm__ volatile("" ::"r"(fault) : "memory"); /* else there is nothing to call */
}

void runtime_take_fault(struct runtime *runtime, const struct simt_fault *fault) {
    fflush(stdout);
    simt_fault_print(fault, stderr);
    if (runtime->settings.report == SIMT_REPORT_SARIF) {
        sarif_add(&runtime->report.findings, fault);
    }
    simt_fault_found(fault);
    runtime->faults++;
    runtime->findings++;
    runtime->pending = error_of_fault(fault->kind);
}

/** What a block has of L1 when the GPU is as full as the launch makes it, and the rest of it. */
static void set_caches(const struct simt_gpu *gpu, const struct kernel_work *launch,
                       struct simt_launch *request) {
    uint64_t blocks = (uint64_t)launch->grid.x * launch->grid.y * launch->grid.z;
    int threads = (int)(launch->block.x * launch->block.y * launch->block.z);
    int fitting = occupancy_blocks(gpu, launch->kernel, threads, launch->shared);
    uint64_t processors = (uint64_t)gpu->multiprocessors;
    uint64_t resident = fitting > 0 ? (uint64_t)fitting : 1;
    uint64_t wanted = (blocks + processors - 1) / processors;
    size_t shared =
        launch->kernel->info.static_shared_bytes + launch->shared + gpu->shared_reserved;
    resident = wanted < resident ? wanted : resident;
    request->l1_bytes =
        shared * resident < gpu->l1_and_shared ? gpu->l1_and_shared / resident - shared : 0;
    request->l2_bytes = gpu->l2_bytes;
    request->resident_blocks = resident * processors;
}

/** What one launch leaves beside its results. */
struct outcome {
    struct simt_counters counters;
    struct simt_block_costs costs;
    struct simt_sites sites;
    struct simt_xray xray;
    struct simt_fault fault;
    uint64_t waited; /**< as of struct simt_cost */
};

/** @return the launch as the model of time sees it. */
static struct simt_cost cost_of(const struct runtime *runtime, const struct kernel_work *launch,
                                bool graph, const struct outcome *outcome) {
    const struct simt_gpu *gpu = runtime->settings.gpu;
    uint64_t blocks = (uint64_t)launch->grid.x * launch->grid.y * launch->grid.z;
    int threads = (int)(launch->block.x * launch->block.y * launch->block.z);
    int resident = occupancy_blocks(gpu, launch->kernel, threads, launch->shared);
    return (struct simt_cost){.kind = SIMT_COST_LAUNCH,
                              .graph = graph,
                              .blocks = blocks,
                              .threads = (uint32_t)threads,
                              .resident = (uint32_t)resident,
                              .counters = &outcome->counters,
                              .costs = &outcome->costs,
                              .waited = outcome->waited};
}

static void free_outcome(struct outcome *outcome) {
    simt_block_costs_free(&outcome->costs);
    simt_sites_free(&outcome->sites);
    simt_xray_free(&outcome->xray);
}

/** Arguments may carry data: see control.h. */
static size_t sent_by(const struct kernel_work *launch) {
    size_t bytes = launch->kernel->info.parameter_bytes;
    return bytes > SIMT_PLAIN_ARGUMENTS ? bytes - SIMT_PLAIN_ARGUMENTS : 0;
}

/** Adds a finished launch to the clock, the report and the x-ray. @param facts NULL: no x-ray */
static void account(struct runtime *runtime, const struct kernel_work *launch, bool graph,
                    struct xray_facts *facts, const struct outcome *outcome) {
    const struct simt_gpu *gpu = runtime->settings.gpu;
    bool xray = facts != NULL && outcome->fault.kind == SIMT_FAULT_NONE;
    struct simt_cost cost = cost_of(runtime, launch, graph, outcome);
    struct simt_explanation time;
    simt_model_explain(&time, gpu, &cost, xray ? &facts->placement : NULL);
    runtime->clock += time.nanoseconds;
    runtime->sent += sent_by(launch);
    report_launch(&runtime->report, launch->kernel->readable, time.nanoseconds, &outcome->counters,
                  &outcome->sites);
    profile_note(runtime, launch, &cost, &time);
    if (xray) {
        facts->time = time;
        xray_add(&runtime->xray, facts, &outcome->counters, &outcome->sites, &outcome->xray);
    }
}

static bool yield(void *runtime, bool progress, bool waits) {
    return flight_yield(runtime, progress, waits);
}

static bool has_others(void *runtime) {
    return flights_are_begun(runtime);
}

static void order_system(void *runtime, unsigned how, uint64_t address, uint32_t bytes) {
    order_of_system(runtime, how, address, bytes);
}

static cudaError_t run_with(struct runtime *runtime, const struct kernel_work *launch, bool graph,
                            struct simt_global_shadow *shadow, struct simt_yield *turns) {
    const struct simt_settings *settings = &runtime->settings;
    struct outcome outcome = {.fault = {.kind = SIMT_FAULT_NONE}};
    struct xray_facts facts;
    bool xray = launch_facts(runtime, launch, &facts) && xray_wants(&runtime->xray, &facts);
    const dim3 cluster = cluster_of(launch);
    const struct simt_alone alone = simt_model_alone(settings->gpu);
    struct simt_launch request = {
        .module = launch->kernel->module->core,
        .textures = runtime->textures,
        .conditions = &runtime->conditions.values,
        .kernel = launch->kernel->name,
        .grid = {launch->grid.x, launch->grid.y, launch->grid.z},
        .threads = {launch->block.x, launch->block.y, launch->block.z},
        .cluster = {cluster.x, cluster.y, cluster.z},
        .dynamic_shared_bytes = launch->shared,
        .parameters = launch->parameters,
        .cooperative = launch->cooperative,
        .check = settings->check,
        .global_shadow = shadow,
        .yield = turns,
        .footprint = &runtime->order.footprint,
        .host_threads = settings->threads,
        .instruction_limit = settings->instruction_limit,
        .start_nanoseconds = (uint64_t)runtime->clock,
        .clock_khz = (uint64_t)settings->gpu->clock_khz,
        .processors = (uint32_t)settings->gpu->multiprocessors,
        .tensor_code = (uint32_t)(settings->gpu->major * 10 + settings->gpu->minor),
        .stack_bytes = runtime->limits[cudaLimitStackSize],
        .seed = settings->seed,
        .number = runtime->launches++,
        .costs = &outcome.costs,
        .alone = &alone,
        .waited = &outcome.waited,
        .sites = settings->report != SIMT_REPORT_NONE || xray ? &outcome.sites : NULL,
        .xray = xray ? &outcome.xray : NULL,
    };
    set_caches(settings->gpu, launch, &request);
    dependent_begin(runtime, launch, graph, &request);
    if (request.trace != NULL) {
        request.sites = &outcome.sites;
    }
    struct error error = {0};
    enum status status = simt_launch_run(&request, &outcome.counters, &outcome.fault, &error);
    if (status != STATUS_OK) {
        dependent_drop(&request);
        simt_trace_free(request.trace);
        free_outcome(&outcome);
        runtime_say("%s", error_text(&error, status));
        return runtime_error_of(status);
    }
    account(runtime, launch, graph, xray ? &facts : NULL, &outcome);
    dependent_end(runtime, launch, &request);
    free_outcome(&outcome);
    if (outcome.fault.kind != SIMT_FAULT_NONE) {
        snprintf(outcome.fault.kernel, sizeof outcome.fault.kernel, "%s", launch->kernel->readable);
        runtime_take_fault(runtime, &outcome.fault);
    }
    return cudaSuccess;
}

/** What has crossed the links to other devices. */
static void account_link(struct runtime *runtime, uint64_t before) {
    const struct simt_link *link = simt_gpu_link(runtime->settings.gpu);
    uint64_t bytes = order_peer_bytes(runtime) - before;
    if (bytes > 0) {
        runtime->clock += link->latency + (double)bytes / link->bandwidth;
    }
}

cudaError_t launch_run(struct runtime *runtime, const struct kernel_work *launch, bool graph) {
    uint64_t before = order_peer_bytes(runtime);
    if (!flight_runs(runtime)) {
        cudaError_t error = run_with(runtime, launch, graph, runtime->shadow, NULL);
        account_link(runtime, before);
        return error;
    }
    struct simt_yield turns = {.function = yield,
                               .has_others = has_others,
                               .order = order_system,
                               .context = runtime,
                               .patience = runtime->settings.wait_seconds,
                               .late = simt_late_create(flight_way(runtime))};
    struct simt_global_shadow *shadow = flight_take_shadow(runtime);
    cudaError_t error = run_with(runtime, launch, graph, shadow, &turns);
    flight_give_shadow(runtime, shadow);
    simt_late_free(turns.late);
    account_link(runtime, before);
    return error;
}

/** Copies arguments to where the kernel declares its parameters. */
static cudaError_t gather(const struct simt_kernel_info *info, void **arguments,
                          unsigned char **block) {
    if (info->parameter_count > 0 && arguments == NULL) {
        return cudaErrorInvalidValue;
    }
    *block = calloc(1, info->parameter_bytes + 1);
    if (*block == NULL) {
        return cudaErrorMemoryAllocation;
    }
    for (size_t i = 0; i < info->parameter_count; i++) {
        memcpy(*block + info->parameter_offsets[i], arguments[i], info->parameter_sizes[i]);
    }
    return cudaSuccess;
}

cudaError_t launch_make(struct runtime *runtime, const void *function,
                        const struct kernel_work *shape, void **arguments, struct work *work) {
    struct kernel *kernel = kernel_find(runtime, function);
    if (kernel == NULL) {
        return cudaErrorInvalidResourceHandle;
    }
    cudaError_t error = kernel_prepare(runtime, kernel);
    *work = (struct work){.kind = WORK_KERNEL, .call = "launch", .kernel = *shape};
    work->kernel.kernel = kernel;
    work->kernel.parameters = NULL;
    return error != cudaSuccess ? error
                                : gather(&kernel->info, arguments, &work->kernel.parameters);
}

static cudaError_t launch(struct runtime *runtime, const void *function,
                          const struct kernel_work *shape, void **arguments, cudaStream_t stream) {
    struct work work = {.kind = WORK_EMPTY};
    cudaError_t error = launch_make(runtime, function, shape, arguments, &work);
    if (error == cudaSuccess) {
        error = stream_submit(runtime, stream, &work);
    }
    work_free(&work);
    return error;
}

cudaError_t cudaLaunchKernel(const void *function, dim3 grid, dim3 block, void **arguments,
                             size_t shared, cudaStream_t stream) {
    struct kernel_work shape = {.grid = grid, .block = block, .shared = shared};
    DEVICE_CALL(runtime, launch(runtime, function, &shape, arguments, stream));
}

cudaError_t cudaLaunchCooperativeKernel(const void *function, dim3 grid, dim3 block,
                                        void **arguments, size_t shared, cudaStream_t stream) {
    struct kernel_work shape = {
        .grid = grid, .block = block, .shared = shared, .cooperative = true};
    DEVICE_CALL(runtime, launch(runtime, function, &shape, arguments, stream));
}

/** Takes an attribute. Most are hints; what would change results is refused by name. */
static cudaError_t take_attribute(const cudaLaunchAttribute *attribute, struct kernel_work *shape) {
    const char *refused = NULL;
    switch (attribute->id) {
    case cudaLaunchAttributeCooperative:
        shape->cooperative = attribute->val.cooperative != 0;
        break;
    case cudaLaunchAttributeClusterDimension:
        return cluster_take(&attribute->val, shape);
    case cudaLaunchAttributeProgrammaticStreamSerialization:
        shape->dependent = attribute->val.programmaticStreamSerializationAllowed != 0;
        break;
    case cudaLaunchAttributeProgrammaticEvent:
    case cudaLaunchAttributeLaunchCompletionEvent:
        refused = "events of a launch's progress";
        break;
    default:
        break;
    }
    if (refused == NULL) {
        return cudaSuccess;
    }
    runtime_say("cudaLaunchKernelExC: %s are not supported", refused);
    return cudaErrorNotSupported;
}

static cudaError_t launch_with(struct runtime *runtime, const cudaLaunchConfig_t *config,
                               const void *function, void **arguments) {
    if (config == NULL || (config->numAttrs > 0 && config->attrs == NULL)) {
        return cudaErrorInvalidValue;
    }
    struct kernel_work shape = {
        .grid = config->gridDim, .block = config->blockDim, .shared = config->dynamicSmemBytes};
    for (unsigned i = 0; i < config->numAttrs; i++) {
        CUDA_TRY(take_attribute(&config->attrs[i], &shape));
    }
    return launch(runtime, function, &shape, arguments, config->stream);
}

cudaError_t cudaLaunchKernelExC(const cudaLaunchConfig_t *config, const void *function,
                                void **arguments) {
    DEVICE_CALL(runtime, launch_with(runtime, config, function, arguments));
}
