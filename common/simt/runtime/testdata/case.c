/*
 * One program, many endings: case NAME does one thing whose message, output or
 * exit status a test looks at from outside. Exits with 3 when CUDA returned
 * the error it prints, 0 else.
 */
#include <stdbool.h>
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

enum { HALVES = 1024 };

/* Two streams write the same memory, or each its half, or one after the other by an event. */
static cudaError_t two_streams(int offset, bool ordered, unsigned flags) {
    int *data = NULL;
    cudaStream_t streams[2] = {NULL, NULL};
    cudaEvent_t event = NULL;
    if (cudaMalloc((void **)&data, 2 * HALVES * sizeof *data) != cudaSuccess ||
        cudaMemset(data, 0, 2 * HALVES * sizeof *data) != cudaSuccess ||
        cudaStreamCreateWithFlags(&streams[0], flags) != cudaSuccess ||
        cudaStreamCreateWithFlags(&streams[1], flags) != cudaSuccess ||
        cudaEventCreate(&event) != cudaSuccess) {
        return cudaErrorMemoryAllocation;
    }
    launch_scale(data, data, 2, 1, HALVES, HALVES / 128, 128, streams[0]);
    if (ordered) {
        cudaEventRecord(event, streams[0]);
        cudaStreamWaitEvent(streams[1], event, 0);
    }
    launch_scale(data + offset, data + offset, 3, 1, HALVES, HALVES / 128, 128, streams[1]);
    cudaMemsetAsync(data, 0, HALVES * sizeof *data, NULL); /* after both where they block */
    cudaError_t error = cudaDeviceSynchronize();
    cudaStreamDestroy(streams[0]);
    cudaStreamDestroy(streams[1]);
    cudaEventDestroy(event);
    cudaFree(data);
    return error;
}

static cudaError_t streams_meet(void) {
    return two_streams(HALVES - 8, false, cudaStreamDefault);
}

static cudaError_t streams_apart(void) {
    return two_streams(HALVES, false, cudaStreamDefault);
}

static cudaError_t streams_ordered(void) {
    return two_streams(HALVES - 8, true, cudaStreamDefault);
}

/* The default stream does not wait for them. */
static cudaError_t streams_not_blocking(void) {
    return two_streams(HALVES - 8, true, cudaStreamNonBlocking);
}

static volatile int seen; /* what the host reads */

/* A kernel writes the first half of managed memory and reads the second half. */
static int *start_on_managed(cudaStream_t *stream) {
    int *data = NULL;
    if (cudaMallocManaged((void **)&data, 2 * HALVES * sizeof *data, cudaMemAttachGlobal) !=
            cudaSuccess ||
        (stream != NULL && cudaStreamCreate(stream) != cudaSuccess)) {
        printf("no memory\n");
        return NULL;
    }
    for (int i = 0; i < 2 * HALVES; i++) {
        data[i] = i;
    }
    launch_scale(data, data + HALVES, 2, 1, HALVES, HALVES / 128, 128,
                 stream != NULL ? *stream : NULL);
    return data;
}

static cudaError_t end_of_managed(int *data) {
    cudaError_t error = cudaDeviceSynchronize();
    cudaFree(data);
    return error;
}

static cudaError_t early_read(void) {
    int *data = start_on_managed(NULL);
    seen = data[3];
    return end_of_managed(data);
}

static cudaError_t early_write(void) {
    int *data = start_on_managed(NULL);
    data[HALVES + 5] = 0;
    return end_of_managed(data);
}

/* A managed variable; an event of before the kernel has been waited for. */
static cudaError_t early_variable(void) {
    cudaEvent_t event = NULL;
    launch_managed(1);
    cudaError_t error = cudaEventCreate(&event);
    if (error == cudaSuccess) {
        error = cudaEventRecord(event, NULL);
    }
    launch_managed(2);
    if (error == cudaSuccess) {
        error = cudaEventSynchronize(event);
    }
    seen = managed_get();
    cudaEventDestroy(event);
    return error != cudaSuccess ? error : cudaDeviceSynchronize();
}

/* The wrong stream is waited for. */
static cudaError_t early_stream(void) {
    cudaStream_t other = NULL, stream = NULL;
    cudaStreamCreate(&other);
    int *data = start_on_managed(&stream);
    cudaStreamSynchronize(other);
    seen = data[0];
    cudaStreamDestroy(stream);
    cudaStreamDestroy(other);
    return end_of_managed(data);
}

/* Reads what the kernel reads, too. */
static cudaError_t early_neighbour(void) {
    int *data = start_on_managed(NULL);
    seen = data[HALVES + 5];
    return end_of_managed(data);
}

static void read_one(void *data) {
    seen = *(int *)data;
}

/* Each way to wait; memory that no kernel has touched needs none. */
static cudaError_t waited(void) {
    cudaStream_t stream = NULL;
    cudaEvent_t event = NULL;
    int *untouched = NULL, host = 0;
    cudaMallocManaged((void **)&untouched, 64, cudaMemAttachHost);
    cudaEventCreate(&event);
    int *data = start_on_managed(&stream);
    *untouched = 1;
    cudaEventRecord(event, stream);
    cudaEventSynchronize(event);
    seen = data[0];
    launch_scale(data, data + HALVES, 2, 1, HALVES, HALVES / 128, 128, stream);
    cudaStreamSynchronize(stream);
    seen = data[0];
    launch_scale(data, data + HALVES, 2, 1, HALVES, HALVES / 128, 128, stream);
    cudaLaunchHostFunc(stream, read_one, data);
    cudaMemcpy(&host, data, sizeof host, cudaMemcpyDefault); /* in the default stream: waits */
    seen = data[1];
    cudaMemset(data, 0, HALVES * sizeof *data);
    seen = data[2];
    int *device = device_ints();
    launch_scale(data, data + HALVES, 2, 1, HALVES, HALVES / 128, 128, stream);
    cudaMemcpyAsync(&host, device, sizeof host, cudaMemcpyDeviceToHost, stream); /* pageable */
    seen = data[3];
    cudaFree(device);
    cudaStreamDestroy(stream);
    cudaEventDestroy(event);
    cudaFree(untouched);
    return end_of_managed(data);
}

/* Waits for the host, which does not get its turn. */
static cudaError_t handshake(void) {
    int *flag = NULL;
    if (cudaHostAlloc((void **)&flag, sizeof *flag, cudaHostAllocMapped) != cudaSuccess) {
        return cudaErrorMemoryAllocation;
    }
    *flag = 0;
    launch_endless(flag);
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
    cudaError_t first = cudaDeviceFlushGPUDirectRDMAWrites(
        cudaFlushGPUDirectRDMAWritesTargetCurrentDevice, cudaFlushGPUDirectRDMAWritesToOwner);
    cudaError_t second = cudaDeviceFlushGPUDirectRDMAWrites(
        cudaFlushGPUDirectRDMAWritesTargetCurrentDevice, cudaFlushGPUDirectRDMAWritesToOwner);
    return first == second ? first : cudaErrorUnknown;
}

/* Refused twice and told once; what is not freed is not told. */
static cudaError_t instruction(void) {
    int *memory = device_ints();
    launch_video(memory);
    launch_video(memory);
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
                 {"handshake", handshake},
                 {"streams_meet", streams_meet},
                 {"streams_apart", streams_apart},
                 {"streams_ordered", streams_ordered},
                 {"streams_not_blocking", streams_not_blocking},
                 {"early_read", early_read},
                 {"early_write", early_write},
                 {"early_variable", early_variable},
                 {"early_stream", early_stream},
                 {"early_neighbour", early_neighbour},
                 {"waited", waited},
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
