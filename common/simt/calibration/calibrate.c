/*
 * calibrate [fit|more|uneven|priced] [--once|--twice]
 *
 * Runs the kernels the model was fitted to, those it is judged on, those whose blocks differ, or
 * those that use what a model may forget to price, and prints one JSON line each: name and the
 * median time of CUDA events. On a GPU that is measured time; on simt, which this program knows
 * nothing of, modelled time. `--once` runs each once, for a profiler; `--twice` once more, before
 * it is timed, so that caches hold what they can.
 */
#include <cuda_runtime_api.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/simt/calibration/kernels.h"

/* One of the sets of kernels. */
struct set {
    const struct calibration_kernel *kernels;
    size_t count;
};

enum { RUNS = 21, WARM_UPS = 3 };

static void check(cudaError_t error, const char *what) {
    if (error != cudaSuccess) {
        fprintf(stderr, "calibrate: %s: %s\n", what, cudaGetErrorString(error));
        exit(1);
    }
}

static int compare_floats(const void *left, const void *right) {
    float a = *(const float *)left;
    float b = *(const float *)right;
    return (a > b) - (a < b);
}

/* How often a kernel is run. */
struct effort {
    int warm_ups, runs;
};

/* Median of some runs, in ms, after those that warm up. */
static float time_kernel(const struct calibration_kernel *kernel, float *out, const float *x,
                         const float *y, struct effort effort) {
    cudaEvent_t start, stop;
    float ms[RUNS];
    check(cudaEventCreate(&start), "event");
    check(cudaEventCreate(&stop), "event");
    for (int run = -effort.warm_ups; run < effort.runs; run++) {
        check(cudaEventRecord(start, 0), "event");
        kernel->launch(out, x, y);
        check(cudaEventRecord(stop, 0), "event");
        check(cudaEventSynchronize(stop), kernel->name);
        check(cudaEventElapsedTime(&ms[run < 0 ? 0 : run], start, stop), "event");
    }
    check(cudaGetLastError(), kernel->name);
    cudaEventDestroy(start);
    cudaEventDestroy(stop);
    qsort(ms, (size_t)effort.runs, sizeof *ms, compare_floats);
    return ms[effort.runs / 2];
}

static void run_set(const struct set *set, struct effort effort) {
    size_t bytes = calibration_floats() * sizeof(float);
    float *host = malloc(bytes);
    float *out, *x, *y;
    if (host == NULL) {
        fprintf(stderr, "calibrate: out of memory\n");
        exit(1);
    }
    for (size_t i = 0; i < calibration_floats(); i++) {
        host[i] = (float)(i * 2654435761u % 1024) / 512.0f - 1.0f;
    }
    check(cudaMalloc((void **)&out, bytes), "cudaMalloc");
    check(cudaMalloc((void **)&x, bytes), "cudaMalloc");
    check(cudaMalloc((void **)&y, bytes), "cudaMalloc");
    check(cudaMemset(out, 0, bytes), "cudaMemset");
    check(cudaMemcpy(x, host, bytes, cudaMemcpyHostToDevice), "cudaMemcpy");
    check(cudaMemcpy(y, host, bytes, cudaMemcpyHostToDevice), "cudaMemcpy");
    for (size_t number = 0; number < set->count; number++) {
        float ms = time_kernel(&set->kernels[number], out, x, y, effort);
        printf("{\"kernel\": \"%s\", \"ms\": %.6f}\n", set->kernels[number].name, (double)ms);
    }
    check(cudaFree(out), "cudaFree");
    check(cudaFree(x), "cudaFree");
    check(cudaFree(y), "cudaFree");
    free(host);
}

int main(int argc, char **argv) {
    const struct set fit = {calibration_fit, CALIBRATION_FIT};
    const struct set more = {calibration_more, CALIBRATION_MORE};
    const struct set uneven = {calibration_uneven, CALIBRATION_UNEVEN};
    const struct set priced = {calibration_priced, CALIBRATION_PRICED};
    const struct set *set = &fit;
    struct effort effort = {WARM_UPS, RUNS};
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--once") == 0) {
            effort = (struct effort){0, 1};
        } else if (strcmp(argv[i], "--twice") == 0) {
            effort = (struct effort){1, 1};
        } else if (strcmp(argv[i], "more") == 0) {
            set = &more;
        } else if (strcmp(argv[i], "uneven") == 0) {
            set = &uneven;
        } else if (strcmp(argv[i], "priced") == 0) {
            set = &priced;
        } else if (strcmp(argv[i], "fit") != 0) {
            fprintf(stderr,
                    "calibrate: what is %s? Usage: calibrate [fit|more|uneven|priced] "
                    "[--once|--twice]\n",
                    argv[i]);
            return 2;
        }
    }
    run_set(set, effort);
    return 0;
}
