#include "common/device/testdata/fake_runtime.h"

#include <stdbool.h>
#include <string.h>

#include "common/device/probe.h"

/* Globals are allowed in test data: the machine, and the number of errors that were cleared. */
static struct fake_machine machine;
static int errors_taken;

void fake_machine_set(const struct fake_machine *m) {
    machine = *m;
    errors_taken = 0;
}

int fake_errors_taken(void) {
    return errors_taken;
}

int device_probe(void) {
    return machine.probe_error;
}

int device_code(void) {
    return 10 * machine.major + machine.minor;
}

cudaError_t cudaGetDeviceCount(int *count) {
    *count = machine.count;
    return machine.count_error;
}

cudaError_t cudaSetDevice(int device) {
    return device == 0 ? machine.set_error : cudaErrorInvalidDevice;
}

cudaError_t cudaGetDevice(int *device) {
    *device = 0;
    return machine.count_error;
}

cudaError_t cudaGetDeviceProperties(struct cudaDeviceProp *properties, int device) {
    memset(properties, 0, sizeof *properties);
    strcpy(properties->name, "Fake GPU");
    properties->major = machine.major;
    properties->minor = machine.minor;
    properties->multiProcessorCount = 10;
    properties->memoryBusWidth = 256;
    properties->totalGlobalMem = (size_t)1 << 30;
    return device == 0 ? machine.properties_error : cudaErrorInvalidDevice;
}

cudaError_t cudaDeviceGetAttribute(int *value, enum cudaDeviceAttr attribute, int device) {
    *value = attribute == cudaDevAttrClockRate ? 1000000 : 0;
    bool known = attribute == cudaDevAttrClockRate && device == 0;
    return known ? cudaSuccess : cudaErrorNotSupported;
}

cudaError_t cudaDriverGetVersion(int *version) {
    *version = machine.driver;
    return cudaSuccess;
}

cudaError_t cudaRuntimeGetVersion(int *version) {
    *version = machine.runtime;
    return cudaSuccess;
}

cudaError_t cudaGetLastError(void) {
    errors_taken++;
    return cudaSuccess;
}

const char *cudaGetErrorString(cudaError_t error) {
    return error == cudaErrorSystemNotReady ? "system not yet initialized" : "an error";
}

const char *cudaGetErrorName(cudaError_t error) {
    switch ((int)error) {
    case cudaErrorNoKernelImageForDevice:
        return "cudaErrorNoKernelImageForDevice";
    case cudaErrorUnsupportedPtxVersion:
        return "cudaErrorUnsupportedPtxVersion";
    default:
        return "cudaErrorOther";
    }
}
