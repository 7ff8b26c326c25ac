/*
 * Times everything but kernels: copies, memory sets, launches that do nothing. One
 * JSON line each: name, bytes, median time of CUDA events, in ms. Measured on a GPU, modelled on
 * simt.
 */
#include <cuda_runtime_api.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/simt/calibration/kernels.h"

enum { RUNS = 11 };
static const int LAUNCHES[] = {1, 2, 5, 10, 20, 100};
static const size_t SIZES[] = {4, 1 << 16, 1 << 20, 1 << 24, 1 << 26};
enum { SIZE_COUNT = sizeof SIZES / sizeof *SIZES };

static void check(cudaError_t error, const char *what) {
    if (error != cudaSuccess) {
        fprintf(stderr, "transfers: %s: %s\n", what, cudaGetErrorString(error));
        exit(1);
    }
}

struct buffers {
    void *pageable, *pinned, *device, *other;
    cudaStream_t stream;
    cudaGraphExec_t graph;
    int launches;
};

typedef void action(const struct buffers *buffers, size_t bytes);

static void to_device(const struct buffers *b, size_t bytes) {
    check(cudaMemcpyAsync(b->device, b->pageable, bytes, cudaMemcpyHostToDevice, b->stream),
          "copy");
}

static void to_device_pinned(const struct buffers *b, size_t bytes) {
    check(cudaMemcpyAsync(b->device, b->pinned, bytes, cudaMemcpyHostToDevice, b->stream), "copy");
}

static void to_host(const struct buffers *b, size_t bytes) {
    check(cudaMemcpyAsync(b->pageable, b->device, bytes, cudaMemcpyDeviceToHost, b->stream),
          "copy");
}

static void to_host_pinned(const struct buffers *b, size_t bytes) {
    check(cudaMemcpyAsync(b->pinned, b->device, bytes, cudaMemcpyDeviceToHost, b->stream), "copy");
}

static void on_device(const struct buffers *b, size_t bytes) {
    check(cudaMemcpyAsync(b->other, b->device, bytes, cudaMemcpyDeviceToDevice, b->stream), "copy");
}

static void set(const struct buffers *b, size_t bytes) {
    check(cudaMemsetAsync(b->device, 1, bytes, b->stream), "set");
}

static void nothing(const struct buffers *b, size_t bytes) {
    (void)b;
    (void)bytes;
}

static void launch_often(const struct buffers *b, size_t bytes) {
    (void)bytes;
    for (int i = 0; i < b->launches; i++) {
        more_kernels_empty(b->stream);
    }
    check(cudaGetLastError(), "launch");
}

static int compare_floats(const void *left, const void *right) {
    float a = *(const float *)left;
    float b = *(const float *)right;
    return (a > b) - (a < b);
}

static void time_events(const struct buffers *b, const char *name, action *act, size_t bytes) {
    cudaEvent_t start, stop;
    float ms[RUNS];
    check(cudaEventCreate(&start), "event");
    check(cudaEventCreate(&stop), "event");
    for (int run = -2; run < RUNS; run++) {
        check(cudaEventRecord(start, b->stream), "event");
        act(b, bytes);
        check(cudaEventRecord(stop, b->stream), "event");
        check(cudaEventSynchronize(stop), name);
        check(cudaEventElapsedTime(&ms[run < 0 ? 0 : run], start, stop), "event");
    }
    check(cudaEventDestroy(start), "event");
    check(cudaEventDestroy(stop), "event");
    qsort(ms, RUNS, sizeof *ms, compare_floats);
    printf("{\"transfer\": \"%s\", \"bytes\": %zu, \"ms\": %.6f}\n", name, bytes,
           (double)ms[RUNS / 2]);
}

static void launch_graph(const struct buffers *b, size_t bytes) {
    (void)bytes;
    check(cudaGraphLaunch(b->graph, b->stream), "graph");
}

/* A graph behind a launch that nobody waits for. */
static void launch_and_graph(const struct buffers *b, size_t bytes) {
    more_kernels_empty(b->stream);
    launch_graph(b, bytes);
}

static void name_launches(char *name, size_t size, int launches, const char *what) {
    snprintf(name, size, "%d launch%s%s", launches, launches == 1 ? "" : "es", what);
}

/* So many launches one after the other, as a graph, and as a graph behind another launch. */
static void time_launches(struct buffers *b, int launches) {
    cudaGraph_t graph;
    char name[64];
    b->launches = launches;
    name_launches(name, sizeof name, launches, "");
    time_events(b, name, launch_often, 0);
    check(cudaStreamBeginCapture(b->stream, cudaStreamCaptureModeGlobal), "capture");
    launch_often(b, 0);
    check(cudaStreamEndCapture(b->stream, &graph), "capture");
    check(cudaGraphInstantiate(&b->graph, graph, 0), "graph");
    name_launches(name, sizeof name, launches, " in a graph");
    time_events(b, name, launch_graph, 0);
    name_launches(name, sizeof name, launches, " in a graph behind one");
    time_events(b, name, launch_and_graph, 0);
    check(cudaGraphExecDestroy(b->graph), "graph");
    check(cudaGraphDestroy(graph), "graph");
}

int main(void) {
    size_t most = SIZES[SIZE_COUNT - 1];
    struct buffers b = {.pageable = malloc(most)};
    if (b.pageable == NULL) {
        fprintf(stderr, "transfers: out of memory\n");
        return 1;
    }
    memset(b.pageable, 1, most);
    check(cudaMallocHost(&b.pinned, most), "cudaMallocHost");
    memset(b.pinned, 1, most);
    check(cudaMalloc(&b.device, most), "cudaMalloc");
    check(cudaMalloc(&b.other, most), "cudaMalloc");
    check(cudaStreamCreate(&b.stream), "stream");
    check(cudaMemset(b.device, 0, most), "set");
    for (size_t i = 0; i < SIZE_COUNT; i++) {
        time_events(&b, "pageable to device", to_device, SIZES[i]);
        time_events(&b, "pinned to device", to_device_pinned, SIZES[i]);
        time_events(&b, "device to pageable", to_host, SIZES[i]);
        time_events(&b, "device to pinned", to_host_pinned, SIZES[i]);
        time_events(&b, "device to device", on_device, SIZES[i]);
        time_events(&b, "set", set, SIZES[i]);
    }
    time_events(&b, "nothing", nothing, 0);
    for (size_t i = 0; i < sizeof LAUNCHES / sizeof *LAUNCHES; i++) {
        time_launches(&b, LAUNCHES[i]);
    }
    check(cudaStreamDestroy(b.stream), "stream");
    check(cudaFree(b.device), "cudaFree");
    check(cudaFree(b.other), "cudaFree");
    check(cudaFreeHost(b.pinned), "cudaFreeHost");
    free(b.pageable);
    return 0;
}
