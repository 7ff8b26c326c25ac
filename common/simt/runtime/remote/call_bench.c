/*
 * What a call costs the program, as the fastest of many: run it with SIMT_DEVICE=inside and with
 * SIMT_DEVICE=process, the difference is what the way to the device's process costs.
 */
#include <stdio.h>
#include <time.h>

#include <cuda_runtime_api.h>

#include "common/simt/runtime/testdata/kernels.h"

enum { CALLS = 20000, COUNT = 32 };

static int host[COUNT], *d_in, *d_out;

static void query(void) {
    (void)cudaStreamQuery(NULL);
}

static void write_little(void) {
    (void)cudaMemcpy(d_in, host, sizeof host, cudaMemcpyHostToDevice);
}

static void read_little(void) {
    (void)cudaMemcpy(host, d_in, sizeof host, cudaMemcpyDeviceToHost);
}

static void launch(void) {
    launch_scale(d_out, d_in, 1, 1, COUNT, 1, COUNT, NULL);
}

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return 1e6 * (double)t.tv_sec + 1e-3 * (double)t.tv_nsec;
}

int main(void) {
    static const struct {
        const char *name;
        void (*call)(void);
    } CASES[] = {{"cudaStreamQuery", query},
                 {"cudaMemcpy, 128 bytes to the device", write_little},
                 {"cudaMemcpy, 128 bytes to the host", read_little},
                 {"launch of one warp", launch}};
    if (cudaMalloc((void **)&d_in, sizeof host) != cudaSuccess ||
        cudaMalloc((void **)&d_out, sizeof host) != cudaSuccess) {
        fprintf(stderr, "call_bench: no device\n");
        return 1;
    }
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        double least = 1e9, begun = now();
        for (int n = 0; n < CALLS; n++) {
            double start = now();
            CASES[i].call();
            double took = now() - start;
            least = took < least ? took : least;
        }
        printf("%-36s %8.2f us, mean %8.2f us\n", CASES[i].name, least, (now() - begun) / CALLS);
    }
    return cudaFree(d_in) == cudaSuccess && cudaFree(d_out) == cudaSuccess ? 0 : 1;
}
