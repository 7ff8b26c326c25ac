/**
 * @file device.h
 * @brief Plain C over the CUDA runtime: buffers, streams, events, properties.
 *
 * The same calls serve a real GPU and simt (common/simt), whichever the program
 * was linked with; device_properties.modelled says which, and whether times are
 * modelled. Nothing here exits or prints. A failure of CUDA becomes
 * STATUS_DEVICE, STATUS_NO_DEVICE or STATUS_OUT_OF_MEMORY with CUDA's own
 * message in the error.
 *
 * Device pointers are ordinary pointers that the host must not dereference.
 * A stream NULL is the default stream. One thread uses a stream at a time.
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

/** What a program may want to know of a GPU. */
struct device_properties {
    char name[256];          /**< "NVIDIA H200" */
    char record_name[300];   /**< as records show it: the name, or "simt:h200" */
    bool modelled;           /**< simt: times are modelled, not measured */
    int major, minor;        /**< compute capability */
    int multiprocessors;     /**< SMs */
    int clock_khz;           /**< boost clock of the SMs, as the driver says it */
    int memory_clock_khz;    /**< 0 where the driver does not say */
    int bus_bits;            /**< width of the memory bus */
    int driver, runtime;     /**< versions, 13000 for 13.0; driver 0 for simt */
    size_t memory_bytes;     /**< of the device */
    size_t l2_bytes;         /**< of the L2 cache */
    size_t shared_bytes;     /**< shared memory a block may ask for */
    double peak_flops;       /**< fp32 FMA, operations a second at clock_khz */
    double memory_bandwidth; /**< bytes a second, from clock and width; 0: not known */
};

/**
 * @brief Finds the GPU this program runs on, and checks that it can run the program's kernels.
 *
 * Call once, before anything else here. Device 0, or the first of CUDA_VISIBLE_DEVICES.
 *
 * @return STATUS_OK; STATUS_NO_DEVICE with a line that says what is missing and what to do: no
 *         driver, no GPU, a driver too old for the runtime, a GPU for which this build has no code
 */
MUST_CHECK enum status device_open(struct error *error);

/** Properties of the GPU. device_open() must have succeeded. */
MUST_CHECK enum status device_properties(struct device_properties *properties, struct error *error);

/** @name Buffers
 * @{ */

/**
 * @brief Allocates device memory, at least 256-byte aligned, contents undefined.
 * @param bytes 0 gives NULL
 * @return STATUS_OUT_OF_MEMORY with the bytes asked for and the bytes free
 */
MUST_CHECK enum status device_alloc(void **memory, size_t bytes, struct error *error);
/** Frees device memory; NULL is allowed. Waits for work that uses it. */
void device_free(void *memory);
/** Allocates page-locked host memory: copies run faster and beside kernels. */
MUST_CHECK enum status device_alloc_host(void **memory, size_t bytes, struct error *error);
/** Frees it; NULL is allowed. */
void device_free_host(void *memory);
/** Copies host memory to the device; returns when the host memory may be changed again. */
MUST_CHECK enum status device_write(void *to, const void *from, size_t bytes, device_stream stream,
                                    struct error *error);
/** Waits for the stream's work, then copies device memory to the host. */
MUST_CHECK enum status device_read(void *to, const void *from, size_t bytes, device_stream stream,
                                   struct error *error);
/** Copies on the device, in order of the stream. */
MUST_CHECK enum status device_copy(void *to, const void *from, size_t bytes, device_stream stream,
                                   struct error *error);
/** Sets every byte, in order of the stream. */
MUST_CHECK enum status device_set(void *memory, int value, size_t bytes, device_stream stream,
                                  struct error *error);
/** @} */

/** @name Streams and events
 * @{ */

/** Makes a stream that does not wait for the default stream. */
MUST_CHECK enum status device_stream_create(device_stream *stream, struct error *error);
/** Destroys it; NULL is allowed. */
void device_stream_destroy(device_stream stream);
/** Waits for a stream's work; reports a kernel's failure. */
MUST_CHECK enum status device_synchronize(device_stream stream, struct error *error);
/** What a launch just before reported: bad configuration, no code for this GPU. @p what names it.
 */
MUST_CHECK enum status device_launched(const char *what, struct error *error);

MUST_CHECK enum status device_event_create(device_event *event, struct error *error);
void device_event_destroy(device_event event);
MUST_CHECK enum status device_event_record(device_event event, device_stream stream,
                                           struct error *error);
/** Waits for @p stop. @return milliseconds between, measured, or modelled on simt, in @p ms */
MUST_CHECK enum status device_event_elapsed(device_event start, device_event stop, double *ms,
                                            struct error *error);
/** @} */

/** @name What copies cost
 * @{ */

/** Counts so far in this process, to be subtracted. */
struct device_traffic {
    uint64_t copies_to_device, bytes_to_device;
    uint64_t copies_to_host, bytes_to_host;
    uint64_t allocations;
    double copy_seconds;  /**< in device_write() and device_read(); counts while tracing only */
    double alloc_seconds; /**< in device_alloc() and device_free(); counts while tracing only */
};

/** @return what device_alloc(), device_write() and device_read() did since the program began. */
struct device_traffic device_traffic(void);

/**
 * @brief Starts or ends tracing: copies and allocations wait for the device and are timed.
 *
 * That takes overlap away, so times without tracing are shorter.
 */
void device_trace(bool on);

/**
 * @brief Waits for the device and reads its clock.
 * @return seconds: wall time on a GPU; on simt modelled time of the device's work alone, without
 *         what the host computes
 */
double device_now(void);
/** @} */

#ifdef __cplusplus
}
#endif

#endif
