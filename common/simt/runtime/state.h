/**
 * @file state.h
 * @brief The one process-wide context of the runtime library, and how an API function enters it.
 *
 * A runtime library has process state by nature: registrations of the program's
 * kernels, device memory, the last error. All of it lies in one struct behind
 * runtime_enter(). One recursive lock guards it; an API call holds it from
 * beginning to end, launches included, as there is one device.
 *
 * The struct exists from the start, for registrations; memory and settings come
 * with the first call that needs a device.
 *
 * Errors: the fault of a kernel is `pending` until a call that synchronises
 * reports it; from then on it is `sticky`, and every call on the device returns it.
 */
#ifndef WARPBOOK_COMMON_SIMT_RUNTIME_STATE_H_
#define WARPBOOK_COMMON_SIMT_RUNTIME_STATE_H_

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>

#include <cuda_runtime_api.h>

#include "common/simt/memory/race/shadow.h"
#include "common/simt/memory/space/memory.h"
#include "common/simt/runtime/graph/condition.h"
#include "common/simt/runtime/graph/memory_nodes.h"
#include "common/simt/runtime/remote/names.h"
#include "common/simt/runtime/report/report.h"
#include "common/simt/runtime/settings.h"
#include "common/simt/runtime/stream/flight.h"
#include "common/simt/runtime/stream/order.h"
#include "common/simt/runtime/xray/xray_record.h"

struct module;
struct host_block;
struct object_desc;
struct order_piece;
struct flag_table;
struct simt_textures;
struct program;

/** Which work comes before which; see stream/order.h. */
struct runtime_order {
    struct order_piece *pieces;       /**< that the host has not waited for, newest first */
    struct order_clock host;          /**< what it has waited for */
    struct flag_table *flags;         /**< words by which kernels of devices order their work */
    struct simt_footprint *footprint; /**< of the work that runs; NULL: not noted */
    bool has_dependent;               /**< a launch did not wait for the one before */
    struct CUstream_st *stream;       /**< whose work runs */
    const char *name;                 /**< of a flight that runs, for messages; or NULL */
    size_t streams;                   /**< numbers given to streams so far */
    uint64_t peer_bytes; /**< of other devices, that the work that runs touched in pieces before */
    unsigned host_functions; /**< that run now, in the order of their streams */
};

/** Work that others run beside; see stream/flight.h. */
struct runtime_flights {
    pthread_mutex_t lock;      /**< guards `turn` */
    pthread_cond_t changed;    /**< of `turn` */
    struct flight *turn;       /**< whose thread runs; NULL: that of the call */
    uint64_t serial;           /**< of the newest one */
    size_t count, started;     /**< that are not done; of these, that have a thread */
    double quiet;              /**< seconds of the host's clock: when something happened last */
    uint64_t vain;             /**< how often all have had their turn since then */
    uint64_t slept;            /**< turns so far that ended in waiting */
    size_t launches;           /**< so far, of flights */
    unsigned ahead;            /**< rounds since one that waits was woken */
    struct shadow_list *spare; /**< shadows for launches that run beside others */
};

/** What each device has of its own. That of the selected device lies in struct runtime. */
struct device_state {
    struct simt_global_shadow *shadow;
    struct CUstream_st *default_stream;
    struct CUmemPoolHandle_st *pools, *pool;
    double clock;
    cudaError_t pending, sticky;
    unsigned device_flags;
    size_t limits[cudaLimitPersistingL2CacheSize + 1];
};

/** What each program has of its own that shares a device process. That of the selected program lies
 *  in struct runtime. */
struct program_state {
    int number; /**< below SIMT_MOST_PROGRAMS */
    struct module *modules;
    struct host_block *host_blocks;
    struct cudaArray *arrays;
    struct object_desc *object_descs;
    struct CUstream_st *streams;
    struct CUevent_st *events;
    struct CUgraph_st *graphs;
    struct CUgraphExec_st *executables;
    struct capture *captures;
    struct program *program;
    struct device_state devices[SIMT_MOST_DEVICES];
    bool refused, keeps_pieces;
};

struct runtime {
    pthread_mutex_t lock;
    bool ready;    /**< settings read, memory there */
    bool finished; /**< the program has ended, and leaks and the report were told */
    struct simt_settings settings;
    struct simt_memory *memory;
    int device;                                    /**< the selected one: see runtime_select() */
    struct device_state others[SIMT_MOST_DEVICES]; /**< all but the selected one are valid */
    struct simt_global_shadow *shadow;             /**< for races alone, else NULL */
    struct module *modules;                        /**< newest first */
    struct host_block *host_blocks;                /**< pinned, registered, managed */
    struct cudaArray *arrays;
    struct simt_textures *textures;   /**< and surfaces */
    struct object_desc *object_descs; /**< what the program said of each of them */
    struct CUstream_st *streams;      /**< all but the default stream */
    struct CUstream_st *default_stream;
    struct CUmemPoolHandle_st *pools; /**< newest first; the last is the default one */
    struct CUmemPoolHandle_st *pool;  /**< of cudaMallocAsync(); NULL: the default one */
    struct runtime_order order;
    struct runtime_flights flights;
    struct program_state *selected;     /**< program; NULL: there is but one */
    struct CUevent_st *shared_events;   /**< that other programs may open */
    uint64_t key[2];                    /**< in handles for other processes */
    struct communicator *communicators; /**< of libnccl.so.2 */
    uint64_t communicator_count;        /**< so far */
    uint64_t launches;                  /**< so far, of all devices */
    struct CUevent_st *events;
    struct CUgraph_st *graphs;
    struct CUgraphExec_st *executables;
    struct conditions conditions; /**< of graphs */
    struct graph_memory graph_memory;
    bool recording; /**< work is checked that becomes a node of a graph */
    struct capture *captures;
    unsigned long long next_id; /**< of streams and captures */
    double clock;               /**< of the device: modelled nanoseconds since the first call */
    double host_clock;          /**< until when the host has waited for a device */
    cudaError_t pending, sticky;
    struct simt_profile longest; /**< launch since simt_take_longest(); no time: none */
    unsigned device_flags;
    size_t limits[cudaLimitPersistingL2CacheSize + 1];
    struct report report;
    struct xray xray; /**< only with SIMT_XRAY */
    bool refused;     /**< a call was: what the program did not free may be because of that */

    void (*gives_up)(void);      /**< called before the process ends with a line; or NULL */
    struct program *program;     /**< that the device serves; NULL: it is in this process */
    pthread_mutex_t mirror_lock; /**< guards host_blocks and what follows while a kernel runs */
    struct simt_profile controller_longest; /**< the same for a controller */
    bool controlled;                        /**< a controller makes the call that runs */
    bool has_controller;                    /**< there is one: programs are not believed */
    double controller_nanoseconds;          /**< of the clock, for its calls */
    uint64_t calls, faults;                 /**< of programs; of kernels */
    uint64_t sent, fetched; /**< bytes from programs to the device, and back: see control.h */
    uint64_t findings;  /**< faults, misuse of calls that was explained, leaks: see error_exit.h */
    size_t moved, used; /**< bytes of managed, of other host memory: see mirror.h */
    bool keeps_pieces;  /**< of host memory, for kernels that are not done */
};

/**
 * @brief Locks the context, for registrations and questions that need no device.
 * @return the context; never NULL
 */
struct runtime *runtime_lock(void);

void runtime_unlock(struct runtime *runtime);

/**
 * @brief Locks the context with memory and settings in place.
 *
 * A bad variable of the environment, or no memory for the device, ends the
 * program with one line: nothing that follows could be right.
 */
struct runtime *runtime_enter(void);

/** Makes a device the one that calls work on: its memory, streams, clock and errors. */
void runtime_select(struct runtime *runtime, int device);

/** Makes a program the one whose calls are served: its streams, modules and the like, device 0.
 *  @param state of a number that no other program has, zeros else at first; NULL: none, after
 *               runtime_end_program() */
void runtime_select_program(struct runtime *runtime, struct program_state *state);

/** The selected program has ended: all that it had goes, and others learn it. */
void runtime_end_program(struct runtime *runtime);

/** @return whether programs share the devices; else a line says how they would */
bool runtime_is_shared(const struct runtime *runtime, const char *call);

/** @return the device of the calling thread's calls: cudaSetDevice() */
int *runtime_thread_device(void);

/** @return modelled nanoseconds of a device. */
double runtime_clock_of(const struct runtime *runtime, int device);

/** The host, or a stream of the selected device, has waited until then: what is submitted from
 * there on begins no earlier on any device. */
void runtime_meet(struct runtime *runtime, double clock);

/** @return modelled nanoseconds of the device that has worked longest. */
double runtime_longest_clock(const struct runtime *runtime);

/** Records the thread's last error, unlocks. @return @p error */
cudaError_t runtime_leave(struct runtime *runtime, cudaError_t error);

/** At the end of the program: prints leaks and the report, writes the x-ray page. */
void runtime_finish(void);

/** What a synchronising call does first: finds the fault of an earlier kernel. */
void runtime_synchronize(struct runtime *runtime);

/** Prints a fault, keeps it for the report, and makes it the pending error. */
void runtime_take_fault(struct runtime *runtime, const struct simt_fault *fault);

/** Makes the device's memory anew, as cudaDeviceReset() does. Modules load again when used. */
void runtime_reset(struct runtime *runtime);

/** The calling thread's last error. */
cudaError_t *runtime_last_error(void);

/** @return the program's thread that makes the call; a device process sets it. */
uint64_t *runtime_thread(void);

/** Prints one line on stderr about a feature that simt lacks, at every level of checks. */
void runtime_say(const char *format, ...) __attribute__((format(printf, 1, 2)));

/** Explains a refused call on stderr, in one line; silent with SIMT_CHECK=off. */
void runtime_explain(const struct runtime *runtime, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/** Ends the program with status 1: the line says why. Buffers are flushed, exit handlers do not
 *  run. */
void runtime_give_up(const char *line) __attribute__((noreturn));

/** @return the CUDA error that a status of the core is reported as. */
cudaError_t runtime_error_of(enum status status);

/** A function that is always done in the program, and exported as it is: it has no row in
 *  remote/calls.h. */
#define EXPORTED __attribute__((visibility("default")))

/** Returns from the function with the error of a call that fails. */
#define CUDA_TRY(call)               \
    do {                             \
        cudaError_t error_ = (call); \
        if (error_ != cudaSuccess) { \
            return error_;           \
        }                            \
    } while (0)

/** Body of an API function that works on the device: `call` runs unless an error is sticky. */
#define DEVICE_CALL(runtime, call)             \
    struct runtime *runtime = runtime_enter(); \
    return runtime_leave(runtime, runtime->sticky != cudaSuccess ? runtime->sticky : (call))

/** The same for a call that waits for something on the device first. @param waits gives
 *  cudaSuccess, or what the call returns in place of going on */
#define WAITING_CALL(runtime, waits, call)      \
    struct runtime *runtime = runtime_enter();  \
    cudaError_t waited_ = (waits);              \
    if (waited_ != cudaSuccess) {               \
        return runtime_leave(runtime, waited_); \
    }                                           \
    runtime_synchronize(runtime);               \
    return runtime_leave(runtime, runtime->sticky != cudaSuccess ? runtime->sticky : (call))

/** The same for a call that waits for the default stream of the device. */
#define SYNCHRONOUS_CALL(runtime, call) \
    WAITING_CALL(runtime, flights_wait_for(runtime, runtime->default_stream), call)

/** The same for a question that an error on the device does not touch. */
#define QUERY_CALL(runtime, call)              \
    struct runtime *runtime = runtime_enter(); \
    return runtime_leave(runtime, (call))

#endif
