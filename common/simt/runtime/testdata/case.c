/*
 * One program, many endings: case NAME does one thing whose message, output or
 * exit status a test looks at from outside. Exits with 3 when CUDA returned
 * the error it prints, 0 else.
 */
#include <stdio.h>
#include <string.h>

#include <cuda_runtime_api.h>

#include "common/simt/runtime/testdata/kernels.h"

enum { COUNT = 100 };

static int *device_ints(void) {
    int *memory = NULL;
    if (cudaMalloc((void **)&memory, COUNT * sizeof(int)) != cudaSuccess ||
        cudaMemset(memory, 0, COUNT * sizeof(int)) != cudaSuccess) {
        printf("no device memory\n");
    }
    return memory;
}

/* All the time, until something goes wrong. */
static cudaError_t work(void) {
    int host[COUNT] = {0};
    cudaError_t error = cudaSuccess;
    while (error == cudaSuccess) {
        int *memory = device_ints();
        int *pinned = NULL;
        launch_scale(memory, memory, 1, 1, COUNT, 1, COUNT, NULL);
        error = cudaMallocHost((void **)&pinned, sizeof host);
        if (error == cudaSuccess) {
            launch_scale(pinned, memory, 1, 1, COUNT, 1, COUNT, NULL);
            error = cudaMemcpy(host, pinned, sizeof host, cudaMemcpyDefault);
        }
        cudaFreeHost(pinned);
        cudaFree(memory);
    }
    return error;
}

static cudaError_t nothing(void) {
    int count = 0;
    return cudaGetDeviceCount(&count);
}

static cudaError_t dereference(void) {
    int *memory = device_ints();
    memory[3] = 1;
    return cudaSuccess;
}

static cudaError_t out_of_bounds(void) {
    launch_out_of_bounds(device_ints(), COUNT);
    cudaError_t at_once = cudaGetLastError();
    printf("at once %s\n", cudaGetErrorName(at_once));
    return cudaDeviceSynchronize();
}

static cudaError_t sticky(void) {
    int *memory = device_ints();
    int host = 0;
    launch_out_of_bounds(memory, COUNT);
    cudaError_t copied = cudaMemcpy(&host, memory, sizeof host, cudaMemcpyDeviceToHost);
    cudaError_t freed = cudaFree(memory);
    printf("copied %s, freed %s", cudaGetErrorName(copied), cudaGetErrorName(freed));
    printf(", device %s", cudaGetErrorName(cudaGetDevice(&host)));
    printf(", last %s\n", cudaGetErrorName(cudaGetLastError()));
    return cudaDeviceSynchronize();
}

static cudaError_t assertion(void) {
    launch_assert(-1);
    return cudaDeviceSynchronize();
}

static cudaError_t trap(void) {
    launch_trap();
    return cudaDeviceSynchronize();
}

static cudaError_t endless(void) {
    launch_endless(device_ints());
    return cudaDeviceSynchronize();
}

static cudaError_t print(void) {
    printf("before\n");
    launch_print(3);
    cudaError_t error = cudaDeviceSynchronize();
    printf("after\n");
    return error;
}

static cudaError_t leak(void) {
    void *pinned = NULL;
    launch_scale(device_ints(), device_ints(), 1, 1, COUNT, 1, COUNT, NULL);
    cudaError_t error = cudaMallocHost(&pinned, 64);
    return error != cudaSuccess ? error : cudaDeviceSynchronize();
}

static cudaError_t reset(void) {
    int *memory = device_ints();
    launch_out_of_bounds(memory, COUNT);
    printf("first %s\n", cudaGetErrorName(cudaDeviceSynchronize()));
    cudaError_t error = cudaDeviceReset();
    memory = device_ints();
    launch_scale(memory, memory, 0, 8, COUNT, 1, COUNT, NULL);
    int host = 0;
    if (error == cudaSuccess) {
        error = cudaMemcpy(&host, memory, sizeof host, cudaMemcpyDeviceToHost);
    }
    printf("then %d\n", host);
    cudaFree(memory);
    return error;
}

static cudaError_t unsupported(void) {
    cudaMemPool_t pool = NULL;
    cudaError_t first = cudaDeviceGetDefaultMemPool(&pool, 0);
    cudaError_t second = cudaDeviceGetDefaultMemPool(&pool, 0);
    return first == second ? first : cudaErrorUnknown;
}

static cudaError_t instruction(void) {
    launch_video(device_ints());
    return cudaGetLastError();
}

static cudaError_t overrun(void) {
    int host[COUNT + 1] = {0};
    return cudaMemcpy(device_ints(), host, sizeof host, cudaMemcpyHostToDevice);
}

/* What was never written is not written when it has been copied. */
static cudaError_t uninitialised_copy(void) {
    int *empty = NULL;
    int *memory = device_ints();
    cudaError_t error = cudaMalloc((void **)&empty, COUNT * sizeof(int));
    if (error == cudaSuccess) {
        error = cudaMemcpy(memory, empty, COUNT * sizeof(int), cudaMemcpyDeviceToDevice);
    }
    launch_scale(device_ints(), memory, 1, 1, COUNT, 1, COUNT, NULL);
    return error != cudaSuccess ? error : cudaDeviceSynchronize();
}

/* The second of two rows of eight ints was never written: fine until it is read. */
static cudaError_t uninitialised_rows(void) {
    enum { WIDTH = 8 };
    size_t row = WIDTH * sizeof(int), pitch = 16 * sizeof(int);
    int *empty = NULL;
    int *memory = device_ints();
    cudaError_t error = cudaMalloc((void **)&empty, COUNT * sizeof(int));
    if (error == cudaSuccess) {
        error = cudaMemset(empty, 0, row);
    }
    if (error == cudaSuccess) {
        error = cudaMemcpy2D(memory, pitch, empty, pitch, row, 2, cudaMemcpyDeviceToDevice);
    }
    launch_scale(device_ints(), memory, 1, 1, 2 * WIDTH, 1, 2 * WIDTH, NULL);
    cudaError_t first = cudaDeviceSynchronize();
    printf("first %s\n", cudaGetErrorName(first));
    launch_scale(device_ints(), memory, 1, 1, 3 * WIDTH, 1, 3 * WIDTH, NULL);
    return error != cudaSuccess ? error : cudaDeviceSynchronize();
}

int main(int argc, char **argv) {
    static const struct {
        const char *name;
        cudaError_t (*run)(void);
    } CASES[] = {{"nothing", nothing},
                 {"work", work},
                 {"dereference", dereference},
                 {"out_of_bounds", out_of_bounds},
                 {"sticky", sticky},
                 {"assertion", assertion},
                 {"trap", trap},
                 {"endless", endless},
                 {"print", print},
                 {"leak", leak},
                 {"reset", reset},
                 {"unsupported", unsupported},
                 {"instruction", instruction},
                 {"overrun", overrun},
                 {"uninitialised_copy", uninitialised_copy},
                 {"uninitialised_rows", uninitialised_rows}};
    for (size_t i = 0; argc == 2 && i < sizeof CASES / sizeof *CASES; i++) {
        if (strcmp(CASES[i].name, argv[1]) == 0) {
            cudaError_t error = CASES[i].run();
            printf("%s\n", cudaGetErrorName(error));
            return error == cudaSuccess ? 0 : 3;
        }
    }
    fprintf(stderr, "usage: case NAME\n");
    return 2;
}
