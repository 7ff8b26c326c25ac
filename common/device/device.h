/**
 * @file device.h
 * @brief A plain C interface to the CUDA runtime: buffers, streams, events, properties.
 *
 * The same calls serve a real GPU and simt (common/simt), whichever the program
 * was linked with; device_properties.modelled says which, and whether times are
 * modelled. Nothing here exits or prints. A failure of CUDA becomes
 * STATUS_DEVICE, STATUS_NO_DEVICE or STATUS_OUT_OF_MEMORY with CUDA's own
 * message in the error.
 *
 * Device pointers are ordinary pointers that the host must not dereference.
 * Stream NULL is the default stream. Only one thread at a time may use a stream.
 */
#ifndef WARPBOOK_COMMON_DEVICE_DEVICE_H_
#define WARPBOOK_COMMON_DEVICE_DEVICE_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/status.h"

#ifdef __cplusplus
extern "C" {
#endif

/** The same types as cudaStream_t and cudaEvent_t, so that kernels' files may use either. */
typedef struct CUstream_st *device_stream;
typedef struct CUevent_st *device_event;

/** Properties of a GPU. */
struct device_properties {
    char name[256];          /**< "NVIDIA H200" */
    char record_name[300];   /**< name in records: "NVIDIA H200", or "simt:h200" on simt */
    bool modelled;           /**< simt: times are modelled, not measured */
    int major, minor;        /**< compute capability */
    int code;                /**< the one that the code which runs was compiled for: 75, 80, ... */
    int multiprocessors;     /**< SMs */
    int clock_khz;           /**< boost clock of the SMs, from the driver */
    int memory_clock_khz;    /**< from the driver; 0 if it does not report it */
    int bus_bits;            /**< width of the memory bus */
    int driver, runtime;     /**< versions, 13000 for 13.0; driver 0 for simt */
    size_t memory_bytes;     /**< of the device */
    size_t l2_bytes;         /**< of the L2 cache */
    size_t shared_bytes;     /**< shared memory a block may ask for */
    double peak_flops;       /**< of fp32 FMA at clock_khz, in FLOP/s */
    double memory_bandwidth; /**< from memory clock and bus width, in bytes/s; 0: not known */
};

/**
 * @brief Selects the GPU, and checks that it can run the program's kernels.
 *
 * Call once, before any other function here. The GPU is the calling thread's current device: device
 * 0, the first of CUDA_VISIBLE_DEVICES, unless cudaSetDevice() has chosen another one.
 *
 * @return STATUS_OK; STATUS_NO_DEVICE with a message that says what is missing and what to do: no
 *         driver, no GPU, a driver too old for the runtime, a GPU for which this build has no code;
 *         STATUS_DEVICE or STATUS_OUT_OF_MEMORY for another failure of the first kernel
 */
MUST_CHECK enum status device_open(struct error *error);

/** Properties of the GPU. device_open() must have succeeded. */
MUST_CHECK enum status device_properties(struct device_properties *properties, struct error *error);

/** @name Buffers
 * @{ */

/**
 * @brief Allocates device memory, at least 256-byte aligned, contents undefined.
 * @param memory receives the device pointer; NULL if @p bytes is 0
 * @return STATUS_OK, STATUS_DEVICE, or STATUS_OUT_OF_MEMORY with the bytes asked for and free
 */
MUST_CHECK enum status device_alloc(void **memory, size_t bytes, struct error *error);
/** Frees device memory; NULL is allowed. Waits for work that uses it. */
void device_free(void *memory);
/** Allocates page-locked host memory: copies run faster and beside kernels. */
MUST_CHECK enum status device_alloc_host(void **memory, size_t bytes, struct error *error);
/** Frees page-locked host memory; NULL is allowed. */
void device_free_host(void *memory);
/** Copies host memory to the device, in stream order; returns when the copy is done. */
MUST_CHECK enum status device_write(void *to, const void *from, size_t bytes, device_stream stream,
                                    struct error *error);
/** Waits for the stream's work, then copies device memory to the host. */
MUST_CHECK enum status device_read(void *to, const void *from, size_t bytes, device_stream stream,
                                   struct error *error);
/** Copies on the device, in stream order; does not wait. */
MUST_CHECK enum status device_copy(void *to, const void *from, size_t bytes, device_stream stream,
                                   struct error *error);
/** Sets every byte of device memory to @p value, in stream order; does not wait. */
MUST_CHECK enum status device_set(void *memory, int value, size_t bytes, device_stream stream,
                                  struct error *error);
/** @} */

/** @name Streams and events
 * @{ */

/** Creates a stream that does not wait for the default stream. */
MUST_CHECK enum status device_stream_create(device_stream *stream, struct error *error);
/** Destroys a stream; NULL is allowed. */
void device_stream_destroy(device_stream stream);
/** Waits for a stream's work; reports a kernel's failure. */
MUST_CHECK enum status device_synchronize(device_stream stream, struct error *error);
/** Checks the launch just before: bad configuration, no code for this GPU. @p what names the kernel
 *  in the message. */
MUST_CHECK enum status device_launched(const char *what, struct error *error);

MUST_CHECK enum status device_event_create(device_event *event, struct error *error);
void device_event_destroy(device_event event);
MUST_CHECK enum status device_event_record(device_event event, device_stream stream,
                                           struct error *error);
/** Waits for @p stop. @p ms receives the milliseconds between the events, measured on a GPU,
 *  modelled on simt. @return also STATUS_INVALID_ARGUMENT if @p stop was recorded first */
MUST_CHECK enum status device_event_elapsed(device_event start, device_event stop, double *ms,
                                            struct error *error);
/** @} */

/** @name Cost of copies and allocations
 * @{ */

/** Counts since the program began; subtract two of them to measure an interval. */
struct device_traffic {
    uint64_t copies_to_device, bytes_to_device;
    uint64_t copies_to_host, bytes_to_host;
    uint64_t allocations;
    uint64_t releases;    /**< device_free() of memory that was allocated */
    double copy_seconds;  /**< in device_write() and device_read(); only while tracing */
    double alloc_seconds; /**< in device_alloc() and device_free(); only while tracing */
};

/** @return copies, allocations and times of this process since the program began. */
struct device_traffic device_traffic(void);

/**
 * @brief Starts or ends tracing: copies and allocations wait for the device and are timed.
 *
 * This prevents overlap, so a program takes longer than without tracing.
 */
void device_trace(bool on);

/**
 * @brief Waits for the device and reads its clock.
 * @return seconds: wall time on a GPU; on simt the modelled time of the device's work, without the
 *         host's
 */
double device_now(void);
/** @} */

#ifdef __cplusplus
}
#endif

#endif
