/**
 * @file open.c
 * @brief Opens the GPU; each reason why that can fail has its own message.
 */
#include <cuda_runtime_api.h>
#include <stdlib.h>

#include "common/device/device.h"
#include "common/device/fail.h"
#include "common/device/probe.h"

/* The end of most messages: the course can go on without a GPU. */
#define WITHOUT_GPU "build with --config=simt to run without a GPU"

/* Versions are 1000 * major + 10 * minor. */
#define VERSION(v) (v) / 1000, (v) % 1000 / 10

static enum status describe_driver(int driver, int runtime, struct error *error) {
    if (driver == 0) {
        return error_set(error, STATUS_NO_DEVICE,
                         "no NVIDIA driver here (libcuda.so.1 was not found); install the driver, "
                         "or " WITHOUT_GPU);
    }
    return error_set(error, STATUS_NO_DEVICE,
                     "the NVIDIA driver is too old: it is for CUDA %d.%d, this program needs a "
                     "driver for CUDA %d.%d or newer; update the driver, or " WITHOUT_GPU,
                     VERSION(driver), VERSION(runtime));
}

static enum status describe_absence(struct error *error) {
    const char *visible = getenv("CUDA_VISIBLE_DEVICES");
    if (visible != NULL) {
        return error_set(error, STATUS_NO_DEVICE,
                         "no GPU is visible: CUDA_VISIBLE_DEVICES is '%s'; unset it or name a GPU "
                         "of `nvidia-smi -L`, or " WITHOUT_GPU,
                         visible);
    }
    return error_set(error, STATUS_NO_DEVICE,
                     "there is an NVIDIA driver but no GPU that it can use; see what `nvidia-smi` "
                     "says, or " WITHOUT_GPU);
}

/* Says why the runtime finds no GPU. */
static enum status describe_count(cudaError_t code, struct error *error) {
    int driver = 0, runtime = 0;
    (void)cudaGetLastError();
    if (cudaDriverGetVersion(&driver) != cudaSuccess ||
        cudaRuntimeGetVersion(&runtime) != cudaSuccess) {
        (void)cudaGetLastError();
        driver = 0;
    }
    if (code == cudaErrorInsufficientDriver || (code == cudaErrorNoDevice && driver == 0)) {
        return describe_driver(driver, runtime, error);
    }
    if (code == cudaErrorNoDevice) {
        return describe_absence(error);
    }
    if (code == cudaErrorMemoryAllocation) {
        return error_set(error, STATUS_NO_DEVICE,
                         "the GPU has too little free memory to start; end the other programs on "
                         "it, which `nvidia-smi` lists, or " WITHOUT_GPU);
    }
    return error_set(error, STATUS_NO_DEVICE,
                     "the GPU cannot be used: %s (%s); see what `nvidia-smi` says, or " WITHOUT_GPU,
                     cudaGetErrorString(code), cudaGetErrorName(code));
}

static bool lacks_code(cudaError_t code) {
    return code == cudaErrorNoKernelImageForDevice || code == cudaErrorUnsupportedPtxVersion ||
           code == cudaErrorInvalidPtx || code == cudaErrorInvalidKernelImage ||
           code == cudaErrorJitCompilerNotFound || code == cudaErrorJitCompilationDisabled;
}

/* Says why the GPU does not run the program's kernels. */
static enum status describe_probe(cudaError_t code, struct error *error) {
    struct device_properties gpu;
    enum { OLDEST = 75 }; /* the oldest compute capability that CUDA 13's nvcc supports */
    if (!lacks_code(code) || device_properties(&gpu, NULL) != STATUS_OK) {
        return device_fail(error, code, "a first kernel on the GPU");
    }
    (void)cudaGetLastError();
    int capability = 10 * gpu.major + gpu.minor;
    if (capability < OLDEST) {
        return error_set(error, STATUS_NO_DEVICE,
                         "%s is too old: its compute capability is %d.%d, at least 7.5 is needed; "
                         "use a newer GPU, or " WITHOUT_GPU,
                         gpu.name, gpu.major, gpu.minor);
    }
    return error_set(error, STATUS_NO_DEVICE,
                     "this build has no code for %s, compute capability %d.%d (%s); build with "
                     "--config=gpu, or for this GPU alone with "
                     "--@rules_cuda//cuda:archs=compute_%d:sm_%d",
                     gpu.name, gpu.major, gpu.minor, cudaGetErrorName(code), capability,
                     capability);
}

enum status device_open(struct error *error) {
    int count = 0;
    cudaError_t code = cudaGetDeviceCount(&count);
    if (code == cudaSuccess && count == 0) {
        code = cudaErrorNoDevice;
    }
    if (code != cudaSuccess) {
        return describe_count(code, error);
    }
    int device = 0;
    code = cudaGetDevice(&device); /* 0, if nobody has chosen another one */
    code = code == cudaSuccess ? cudaSetDevice(device) : code;
    if (code != cudaSuccess) {
        return describe_count(code, error);
    }
    code = (cudaError_t)device_probe();
    return code == cudaSuccess ? STATUS_OK : describe_probe(code, error);
}
