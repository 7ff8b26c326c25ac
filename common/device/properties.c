#include <cuda_runtime_api.h>
#include <stdio.h>
#include <string.h>

#include "common/device/device.h"
#include "common/device/fail.h"
#include "common/device/probe.h"
#include "common/simt/simt.h"

/* fp32 fused multiply-adds that one multiprocessor starts each cycle (CUDA C++ Programming Guide,
 * throughput of arithmetic instructions). GPUs newer than the table are assumed to start 128. */
static int lanes_of(int major, int minor) {
    bool half = (major == 7) || (major == 8 && minor == 0) || (major == 6 && minor == 0);
    return half ? 64 : 128;
}

/* An attribute of the device; 0 if the driver does not report it. */
static int attribute(enum cudaDeviceAttr which, int device) {
    int value = 0;
    if (cudaDeviceGetAttribute(&value, which, device) != cudaSuccess) {
        (void)cudaGetLastError();
        return 0;
    }
    return value;
}

static void set_names(struct device_properties *p, const char *name) {
    struct simt_api simt;
    p->modelled = simt_find(&simt);
    /* simt's name is "NVIDIA H200 (simt)"; `modelled` replaces the suffix. */
    const char *suffix = p->modelled ? strstr(name, " (simt)") : NULL;
    size_t length = suffix != NULL ? (size_t)(suffix - name) : strlen(name);
    snprintf(p->name, sizeof p->name, "%.*s", (int)length, name);
    if (p->modelled) {
        snprintf(p->record_name, sizeof p->record_name, "simt:%s", simt.gpu_key());
    } else {
        snprintf(p->record_name, sizeof p->record_name, "%s", p->name);
    }
}

/* Computes the peaks from clocks and widths. */
static void set_peaks(struct device_properties *p) {
    double lanes = (double)p->multiprocessors * lanes_of(p->major, p->minor);
    p->peak_flops = 2.0 * lanes * 1e3 * p->clock_khz;
    /* Double data rate: two transfers a clock. */
    p->memory_bandwidth = 2.0 * 1e3 * p->memory_clock_khz * p->bus_bits / 8.0;
}

static void set_versions(struct device_properties *p) {
    if (cudaDriverGetVersion(&p->driver) != cudaSuccess || p->modelled) {
        (void)cudaGetLastError();
        p->driver = 0;
    }
    if (cudaRuntimeGetVersion(&p->runtime) != cudaSuccess) {
        (void)cudaGetLastError();
        p->runtime = 0;
    }
}

enum status device_properties(struct device_properties *properties, struct error *error) {
    struct cudaDeviceProp cuda;
    int device = 0;
    *properties = (struct device_properties){0};
    cudaError_t code = cudaGetDevice(&device);
    if (code == cudaSuccess) {
        code = cudaGetDeviceProperties(&cuda, device);
    }
    if (code != cudaSuccess) {
        return device_fail(error, code, "asking the GPU for its properties");
    }
    struct device_properties p = {.major = cuda.major,
                                  .minor = cuda.minor,
                                  .code = device_code(),
                                  .multiprocessors = cuda.multiProcessorCount,
                                  .bus_bits = cuda.memoryBusWidth,
                                  .memory_bytes = cuda.totalGlobalMem,
                                  .l2_bytes = (size_t)cuda.l2CacheSize,
                                  .shared_bytes = cuda.sharedMemPerBlockOptin};
    /* CUDA 13's struct has no clocks any more. */
    p.clock_khz = attribute(cudaDevAttrClockRate, device);
    p.memory_clock_khz = attribute(cudaDevAttrMemoryClockRate, device);
    set_names(&p, cuda.name);
    set_versions(&p);
    set_peaks(&p);
    *properties = p;
    return STATUS_OK;
}
