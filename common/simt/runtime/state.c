#include "common/simt/runtime/state.h"

#include <malloc.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/base/file.h"
#include "common/simt/memory/space/host_fault.h"
#include "common/simt/runtime/array/array.h"
#include "common/simt/runtime/collective/communicator.h"
#include "common/simt/runtime/error/error_exit.h"
#include "common/simt/runtime/kernel/modules.h"
#include "common/simt/runtime/memory/host_memory.h"
#include "common/simt/runtime/memory/mirror.h"
#include "common/simt/runtime/memory/pool.h"
#include "common/simt/runtime/stream/stream.h"
#include "common/simt/runtime/xray/xray_page.h"

static struct runtime *the_runtime(void) {
    static struct runtime runtime = {
        .lock = PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP,
        .mirror_lock = PTHREAD_MUTEX_INITIALIZER,
        .flights = {.lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER},
        .next_id = 1};
    return &runtime;
}

cudaError_t *runtime_last_error(void) {
    static _Thread_local cudaError_t last = cudaSuccess;
    return &last;
}

int *runtime_thread_device(void) {
    static _Thread_local int device;
    return &device;
}

uint64_t *runtime_thread(void) {
    static _Thread_local uint64_t thread;
    if (thread == 0) {
        thread = (uint64_t)pthread_self();
    }
    return &thread;
}

void runtime_give_up(const char *line) {
    fflush(NULL);
    fprintf(stderr, "simt: %s\n", line);
    if (the_runtime()->gives_up != NULL) {
        the_runtime()->gives_up();
    }
    _exit(1);
}

/** @return how much cudaMalloc() may hand out: the GPU's memory, or the machine's if it has less.
 */
static size_t device_bytes(const struct simt_gpu *gpu) {
    long pages = sysconf(_SC_PHYS_PAGES);
    long page = sysconf(_SC_PAGESIZE);
    size_t machine = pages > 0 && page > 0 ? (size_t)pages * (size_t)page : gpu->memory_bytes;
    return machine < gpu->memory_bytes ? machine : gpu->memory_bytes;
}

/** The program in this process uses managed memory that the device has. */
static bool repair(void *context, const void *address, bool writes) {
    struct runtime *runtime = context;
    pthread_mutex_lock(&runtime->lock);
    bool repaired = runtime->memory != NULL && mirror_fault(runtime, address, writes);
    pthread_mutex_unlock(&runtime->lock);
    return repaired;
}

static bool looks_for_races(const struct simt_settings *settings) {
    return (settings->check & (SIMT_CHECK_RACES | SIMT_CHECK_SAMPLED)) != 0;
}

static void create_memory(struct runtime *runtime) {
    enum { LEAST = 1 << 26 };
    int devices = runtime->settings.devices;
    size_t bytes = device_bytes(runtime->settings.gpu) / (size_t)devices;
    enum status status = simt_memory_create_for(&runtime->memory, bytes, devices);
    while (status != STATUS_OK && bytes > LEAST) {
        bytes /= 2; /* a limit on address space */
        status = simt_memory_create_for(&runtime->memory, bytes, devices);
    }
    if (status == STATUS_OK && looks_for_races(&runtime->settings)) {
        status = simt_global_shadow_create(&runtime->shadow, runtime->memory);
    }
    runtime->textures = simt_textures_create();
    if (runtime->textures == NULL) {
        runtime_give_up("out of memory");
    }
    if (status == STATUS_OK) {
        status = simt_host_fault_install(runtime->memory);
        simt_host_fault_repair(repair, runtime);
        simt_host_fault_status(error_exit_status);
    }
    if (status != STATUS_OK) {
        runtime_give_up("no address space for the memory of the emulated GPU");
    }
}

/** Exchanges what the selected device has with what another one has. */
static void keep_state(const struct runtime *runtime, struct device_state *kept) {
    *kept = (struct device_state){.shadow = runtime->shadow,
                                  .default_stream = runtime->default_stream,
                                  .pools = runtime->pools,
                                  .pool = runtime->pool,
                                  .clock = runtime->clock,
                                  .pending = runtime->pending,
                                  .sticky = runtime->sticky,
                                  .device_flags = runtime->device_flags};
    memcpy(kept->limits, runtime->limits, sizeof kept->limits);
}

static void take_state(struct runtime *runtime, const struct device_state *kept) {
    runtime->shadow = kept->shadow;
    runtime->default_stream = kept->default_stream;
    runtime->pools = kept->pools;
    runtime->pool = kept->pool;
    runtime->clock = kept->clock;
    runtime->pending = kept->pending;
    runtime->sticky = kept->sticky;
    runtime->device_flags = kept->device_flags;
    memcpy(runtime->limits, kept->limits, sizeof runtime->limits);
}

void runtime_select(struct runtime *runtime, int device) {
    if (runtime->device == device) {
        return;
    }
    keep_state(runtime, &runtime->others[runtime->device]);
    modules_select(runtime, runtime->device, device);
    runtime->device = device;
    take_state(runtime, &runtime->others[device]);
    simt_memory_select(runtime->memory, device);
}

static void keep_program(const struct runtime *runtime, struct program_state *kept) {
    kept->modules = runtime->modules;
    kept->host_blocks = runtime->host_blocks;
    kept->arrays = runtime->arrays;
    kept->object_descs = runtime->object_descs;
    kept->streams = runtime->streams;
    kept->events = runtime->events;
    kept->graphs = runtime->graphs;
    kept->executables = runtime->executables;
    kept->captures = runtime->captures;
    kept->program = runtime->program;
    kept->refused = runtime->refused;
    kept->keeps_pieces = runtime->keeps_pieces;
    memcpy(kept->devices, runtime->others, sizeof kept->devices);
    keep_state(runtime, &kept->devices[runtime->device]);
}

/** Clocks and shadows are the devices', whoever uses them. */
static void take_devices(struct runtime *runtime, struct program_state *taken) {
    for (int d = 0; d < runtime->settings.devices; d++) {
        taken->devices[d].clock = runtime_clock_of(runtime, d);
        taken->devices[d].shadow =
            d == runtime->device ? runtime->shadow : runtime->others[d].shadow;
    }
    memcpy(runtime->others, taken->devices, sizeof runtime->others);
    take_state(runtime, &taken->devices[runtime->device]);
}

static void take_program(struct runtime *runtime, struct program_state *taken) {
    runtime->modules = taken->modules;
    runtime->host_blocks = taken->host_blocks;
    runtime->arrays = taken->arrays;
    runtime->object_descs = taken->object_descs;
    runtime->streams = taken->streams;
    runtime->events = taken->events;
    runtime->graphs = taken->graphs;
    runtime->executables = taken->executables;
    runtime->captures = taken->captures;
    runtime->program = taken->program;
    runtime->refused = taken->refused;
    runtime->keeps_pieces = taken->keeps_pieces;
    take_devices(runtime, taken);
}

static void make_device(struct runtime *runtime);

void runtime_select_program(struct runtime *runtime, struct program_state *state) {
    if (runtime->selected == state) {
        return;
    }
    runtime_select(runtime, 0);
    if (runtime->selected != NULL) {
        keep_program(runtime, runtime->selected);
    }
    runtime->selected = state;
    if (state == NULL) {
        return; /* the last one has ended, and left nothing */
    }
    take_program(runtime, state);
    simt_memory_select_program(runtime->memory, state->number);
    bool fresh = runtime->default_stream == NULL;
    for (int d = 0; fresh && d < runtime->settings.devices; d++) {
        runtime_select(runtime, d);
        make_device(runtime);
        runtime->device_flags = 0;
    }
    runtime_select(runtime, 0);
}

void runtime_end_program(struct runtime *runtime) {
    communicators_leave(runtime);
    flights_abandon(runtime);
    communicators_sweep(runtime);
    for (int d = 0; d < runtime->settings.devices; d++) {
        runtime_select(runtime, d);
        modules_unload(runtime);
        simt_memory_release_all(runtime->memory, d);
        pools_free(runtime);
    }
    runtime_select(runtime, 0);
    while (runtime->modules != NULL) {
        module_remove(runtime, runtime->modules);
    }
    host_blocks_free(runtime);
    streams_free(runtime);
    simt_memory_end_program(runtime->memory);
    order_end_program(runtime);
}

double runtime_clock_of(const struct runtime *runtime, int device) {
    return device == runtime->device ? runtime->clock : runtime->others[device].clock;
}

void runtime_meet(struct runtime *runtime, double clock) {
    if (runtime->host_clock < clock) {
        runtime->host_clock = clock;
    }
}

double runtime_longest_clock(const struct runtime *runtime) {
    double longest = runtime->clock;
    for (int d = 0; d < runtime->settings.devices; d++) {
        double clock = runtime_clock_of(runtime, d);
        longest = clock > longest ? clock : longest;
    }
    return longest;
}

static void free_memory(struct runtime *runtime) {
    arrays_free(runtime);
    texture_objects_free(runtime);
    simt_host_fault_remove();
    simt_global_shadow_free(runtime->shadow);
    simt_memory_free(runtime->memory);
    runtime->shadow = NULL;
    runtime->memory = NULL;
}

static void set_limits(struct runtime *runtime) {
    runtime->limits[cudaLimitStackSize] = 1024;
    runtime->limits[cudaLimitPrintfFifoSize] = 8650752;
    runtime->limits[cudaLimitMallocHeapSize] = 8388608;
    runtime->limits[cudaLimitDevRuntimePendingLaunchCount] = 2048;
    runtime->limits[cudaLimitMaxL2FetchGranularity] = 64;
    runtime->limits[cudaLimitPersistingL2CacheSize] = 0;
}

/* Every launch takes memory for its warps and gives it back. The C library would hand that to the
   system and have it zeroed again page by page: of short launches, that is most of their time. */
static void keep_freed_memory(void) {
    enum { KEPT = 1 << 30, LARGEST = 1 << 25 }; /* glibc's limit for M_MMAP_THRESHOLD */
    (void)mallopt(M_TRIM_THRESHOLD, KEPT);
    (void)mallopt(M_MMAP_THRESHOLD, LARGEST);
}

/** Gives the selected device its limits and its default stream. */
static void make_device(struct runtime *runtime) {
    set_limits(runtime);
    runtime->default_stream = stream_new(runtime, cudaStreamDefault, 0);
    if (runtime->default_stream == NULL) {
        runtime_give_up("out of memory");
    }
    if (runtime->shadow == NULL && looks_for_races(&runtime->settings) &&
        simt_global_shadow_create(&runtime->shadow, runtime->memory) != STATUS_OK) {
        runtime_give_up("no address space for the checks of several emulated GPUs: take fewer "
                        "(SIMT_DEVICES), or leave out the check of races");
    }
}

static void make_ready(struct runtime *runtime) {
    struct error error = {0};
    keep_freed_memory();
    if (simt_settings_read(&runtime->settings, &error) != STATUS_OK) {
        runtime_give_up(error.message);
    }
    create_memory(runtime);
    for (int d = 0; d < runtime->settings.devices; d++) {
        runtime_select(runtime, d);
        make_device(runtime);
    }
    runtime->ready = true;
}

struct runtime *runtime_lock(void) {
    struct runtime *runtime = the_runtime();
    pthread_mutex_lock(&runtime->lock);
    return runtime;
}

void runtime_unlock(struct runtime *runtime) {
    pthread_mutex_unlock(&runtime->lock);
}

struct runtime *runtime_enter(void) {
    struct runtime *runtime = runtime_lock();
    if (!runtime->ready) {
        make_ready(runtime);
    }
    runtime_select(runtime, *runtime_thread_device());
    return runtime;
}

cudaError_t runtime_leave(struct runtime *runtime, cudaError_t error) {
    if (error == SIMT_ERROR_AGAIN) {
        runtime_unlock(runtime);
        return error;
    }
    /* "Not yet" is an answer, not a failure. */
    runtime->refused = runtime->refused || error == cudaErrorNotSupported ||
                       error == cudaErrorNoKernelImageForDevice;
    if (error != cudaSuccess && error != cudaErrorNotReady) {
        *runtime_last_error() = error;
    }
    runtime_unlock(runtime);
    return error;
}

void runtime_synchronize(struct runtime *runtime) {
    if (runtime->sticky == cudaSuccess) {
        runtime->sticky = runtime->pending;
    }
    runtime->pending = cudaSuccess;
}

/** One of several devices: what it has allocated goes, the others' stays. */
static void reset_one(struct runtime *runtime) {
    order_waited_for_device(runtime);
    modules_unload(runtime);
    simt_memory_release_all(runtime->memory, runtime->device);
    pools_free(runtime);
    runtime->pending = cudaSuccess;
    runtime->sticky = cudaSuccess;
    set_limits(runtime);
}

void runtime_reset(struct runtime *runtime) {
    if (runtime->settings.devices > 1) {
        reset_one(runtime);
        return;
    }
    leaks_report(runtime);
    order_free(runtime);
    modules_unload(runtime);
    host_blocks_free(runtime);
    free_memory(runtime);
    pools_free(runtime);
    runtime->pending = cudaSuccess;
    runtime->sticky = cudaSuccess;
    create_memory(runtime);
    runtime->graph_memory.count = 0;
    set_limits(runtime);
}

static void print_line(const char *format, va_list args) {
    fflush(stdout);
    fputs("simt: ", stderr);
    vfprintf(stderr, format, args);
    fputc('\n', stderr);
}

void runtime_say(const char *format, ...) {
    va_list args;
    va_start(args, format);
    print_line(format, args);
    va_end(args);
}

void runtime_explain(const struct runtime *runtime, const char *format, ...) {
    if (runtime->settings.check == SIMT_CHECK_OFF) {
        return;
    }
    the_runtime()->findings++;
    va_list args;
    va_start(args, format);
    print_line(format, args);
    va_end(args);
}

cudaError_t runtime_error_of(enum status status) {
    switch (status) {
    case STATUS_OK:
        return cudaSuccess;
    case STATUS_OUT_OF_MEMORY:
    case STATUS_OVERFLOW:
        return cudaErrorMemoryAllocation;
    case STATUS_UNSUPPORTED:
        return cudaErrorNotSupported;
    case STATUS_BAD_FORMAT:
    case STATUS_TRUNCATED:
        return cudaErrorInvalidPtx;
    case STATUS_NOT_FOUND:
        return cudaErrorInvalidDeviceFunction;
    case STATUS_INVALID_ARGUMENT:
        return cudaErrorInvalidValue;
    default:
        return cudaErrorUnknown;
    }
}

static void write_xray(const struct runtime *runtime) {
    const char *path = runtime->settings.xray;
    size_t count = runtime->xray.launch_count;
    struct error error = {0};
    if (path[0] == '\0') {
        return;
    }
    enum status status = xray_write(&runtime->xray, runtime->settings.gpu, path, &error);
    if (status == STATUS_OK) {
        runtime_say("x-ray of %zu launch%s: %s", count, count == 1 ? "" : "es", path);
    } else {
        runtime_say("no x-ray: %s", error_text(&error, status));
    }
}

/** Prints the report on stderr, or into the file that the settings name. */
static void give_report(const struct runtime *runtime) {
    const struct simt_settings *settings = &runtime->settings;
    char *text = NULL;
    size_t size = 0;
    FILE *stream = settings->report_file[0] != '\0' ? open_memstream(&text, &size) : stderr;
    struct error error = {0};
    if (stream == NULL) {
        runtime_say("no report: out of memory");
        return;
    }
    report_print(&runtime->report, settings, runtime_longest_clock(runtime), stream);
    if (stream == stderr) {
        return;
    }
    fclose(stream);
    enum status status =
        text != NULL ? file_write(settings->report_file, text, size, &error) : STATUS_OUT_OF_MEMORY;
    if (status != STATUS_OK) {
        runtime_say("no report: %s", error_text(&error, status));
    }
    free(text);
}

void runtime_finish(void) {
    struct runtime *runtime = runtime_lock();
    if (runtime->ready && !runtime->finished) {
        fflush(stdout);
        flights_finish(runtime);
        leaks_report(runtime);
        give_report(runtime);
        write_xray(runtime);
        runtime->finished = true;
    }
    runtime_unlock(runtime);
}

__attribute__((destructor)) static void finish(void) {
    runtime_finish();
    if (the_runtime()->findings > 0) {
        error_exit();
    }
}
