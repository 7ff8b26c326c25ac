/**
 * @file find_gpu.c
 * @brief Asks the driver for GPUs that can run code of CUDA 13's nvcc.
 *
 * Needs no CUDA headers: cc find_gpu.c -ldl. Prints one line per GPU with its compute capability,
 * the driver's CUDA version and its name, "90 13000 NVIDIA H200", and exits with 0; or says on
 * standard error why programs would not run, and exits with 1. Used by cuda_configure.bzl and
 * setup.sh.
 */
#include <dlfcn.h>
#include <stdio.h>

enum { DRIVER_NEEDED = 13000, OLDEST_CAPABILITY = 75, MAJOR = 75, MINOR = 76 };

/** The driver's functions, as cuda.h declares them. */
struct driver {
    int (*init)(unsigned flags);
    int (*version)(int *version);
    int (*count)(int *count);
    int (*get)(int *device, int ordinal);
    int (*attribute)(int *value, int attribute, int device);
    int (*name)(char *name, int size, int device);
};

static int no_gpu(const char *reason) {
    fprintf(stderr, "%s\n", reason);
    return 1;
}

/** @return 0 if the driver's library exists and has all functions */
static int load(struct driver *driver) {
    void *library = dlopen("libcuda.so.1", RTLD_NOW);
    if (library == NULL) {
        return no_gpu("no NVIDIA driver here");
    }
    *(void **)&driver->init = dlsym(library, "cuInit");
    *(void **)&driver->version = dlsym(library, "cuDriverGetVersion");
    *(void **)&driver->count = dlsym(library, "cuDeviceGetCount");
    *(void **)&driver->get = dlsym(library, "cuDeviceGet");
    *(void **)&driver->attribute = dlsym(library, "cuDeviceGetAttribute");
    *(void **)&driver->name = dlsym(library, "cuDeviceGetName");
    if (driver->init == NULL || driver->version == NULL || driver->count == NULL ||
        driver->get == NULL || driver->attribute == NULL || driver->name == NULL) {
        return no_gpu("libcuda.so.1 is not NVIDIA's driver");
    }
    return 0;
}

/** Prints one GPU. @return 0, or 1 if it is too old or does not answer */
static int print(const struct driver *driver, int ordinal, int version) {
    int device = 0, major = 0, minor = 0;
    char name[256] = "";
    if (driver->get(&device, ordinal) != 0 || driver->attribute(&major, MAJOR, device) != 0 ||
        driver->attribute(&minor, MINOR, device) != 0 ||
        driver->name(name, sizeof name, device) != 0) {
        return no_gpu("the GPU does not answer");
    }
    if (10 * major + minor < OLDEST_CAPABILITY) {
        fprintf(stderr, "%s has compute capability %d.%d, 7.5 is needed\n", name, major, minor);
        return 1;
    }
    printf("%d %d %s\n", 10 * major + minor, version, name);
    return 0;
}

int main(void) {
    struct driver driver = {0};
    int version = 0, count = 0;
    if (load(&driver) != 0) {
        return 1;
    }
    if (driver.version(&version) != 0 || version < DRIVER_NEEDED) {
        fprintf(stderr, "the driver is for CUDA %d.%d, CUDA 13.0 is needed\n", version / 1000,
                version % 1000 / 10);
        return 1;
    }
    if (driver.init(0) != 0 || driver.count(&count) != 0 || count == 0) {
        return no_gpu("no NVIDIA GPU here");
    }
    for (int ordinal = 0; ordinal < count; ordinal++) {
        if (print(&driver, ordinal, version) != 0) {
            return 1;
        }
    }
    return 0;
}
