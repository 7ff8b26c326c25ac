/*
 * hopper [products|units|peers|exchanges|conflicts] [--kernel=NAME] [--once] [--cube=N]
 *
 * Runs kernels of Hopper's instructions and prints one JSON line each: name and the median time of
 * CUDA events, measured on a GPU, modelled on simt. `--once` runs each twice and times the second
 * run. `--cube=N` gives all products M = N = K. A product's results are compared, some of them,
 * with sums of the host's; one that is wrong ends the program with status 1.
 */
#include <cuda_runtime_api.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/simt/calibration/hopper/hopper.h"

enum { RUNS = 21, WARM_UPS = 3, COMPARED = 64 };

static void check(cudaError_t error, const char *what) {
    if (error != cudaSuccess) {
        fprintf(stderr, "hopper: %s: %s\n", what, cudaGetErrorString(error));
        exit(1);
    }
}

static int compare_floats(const void *left, const void *right) {
    float a = *(const float *)left;
    float b = *(const float *)right;
    return (a > b) - (a < b);
}

static float float_of(uint16_t bf16) {
    uint32_t bits = (uint32_t)bf16 << 16;
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

/* Element i of an input: a multiple of 1/8 from -1 to 7/8, so that sums of 4096 products are exact
 * in fp32. */
static uint16_t element(size_t i, uint32_t salt) {
    uint32_t mixed = ((uint32_t)i + salt) * 2654435761u;
    float value = (float)(mixed >> 28) / 8.0f - 1.0f;
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return (uint16_t)(bits >> 16);
}

static void fill(void *to, uint16_t *host, uint32_t salt) {
    for (size_t i = 0; i < HOPPER_ELEMENTS; i++) {
        host[i] = element(i, salt);
    }
    check(cudaMemcpy(to, host, HOPPER_ELEMENTS * 2, cudaMemcpyHostToDevice), "cudaMemcpy");
}

enum { SALT_A = 1, SALT_B = 77 };

/* Compares some elements of a product. */
static void check_product(const struct hopper_kernel *kernel, const uint16_t *out) {
    const struct hopper_product *p = &kernel->product;
    for (size_t n = 0; n < COMPARED; n++) {
        size_t at = n * 2654435761u % (p->M * p->N);
        size_t row = at / p->N, column = at % p->N;
        double sum = 0;
        for (size_t k = 0; k < p->K; k++) {
            sum += (double)float_of(element(row * p->K + k, SALT_A)) *
                   (double)float_of(element(column * p->K + k, SALT_B));
        }
        double got = float_of(out[at]);
        if (!(fabs(got - sum) <= fabs(sum) / 256)) {
            fprintf(stderr, "hopper: %s: element (%zu, %zu) is %g, not %g\n", kernel->name, row,
                    column, got, sum);
            exit(1);
        }
    }
}

/* Median of some runs, in ms, after those that warm up. */
static float time_kernel(const struct hopper_kernel *kernel, const struct hopper_buffers *buffers,
                         int warm_ups, int runs) {
    cudaEvent_t start, stop;
    float ms[RUNS];
    check(cudaEventCreate(&start), "event");
    check(cudaEventCreate(&stop), "event");
    for (int run = -warm_ups; run < runs; run++) {
        check(cudaEventRecord(start, 0), "event");
        if (!kernel->launch(buffers, &kernel->product)) {
            cudaError_t error = cudaGetLastError();
            fprintf(stderr, "hopper: %s: not launched: %s\n", kernel->name,
                    error == cudaSuccess ? "no tensor map" : cudaGetErrorString(error));
            exit(1);
        }
        check(cudaEventRecord(stop, 0), "event");
        check(cudaEventSynchronize(stop), kernel->name);
        check(cudaEventElapsedTime(&ms[run < 0 ? 0 : run], start, stop), "event");
    }
    check(cudaDeviceSynchronize(), kernel->name);
    cudaEventDestroy(start);
    cudaEventDestroy(stop);
    qsort(ms, (size_t)runs, sizeof *ms, compare_floats);
    return ms[runs / 2];
}

/* @param only NULL: all of them @param cube the size of products; 0: their own */
static void run_set(const struct hopper_kernel *kernels, size_t count, bool once, const char *only,
                    size_t cube) {
    struct hopper_buffers buffers;
    uint16_t *host = malloc(HOPPER_ELEMENTS * 2);
    if (host == NULL) {
        fprintf(stderr, "hopper: out of memory\n");
        exit(1);
    }
    check(cudaMalloc(&buffers.a, HOPPER_ELEMENTS * 2), "cudaMalloc");
    check(cudaMalloc(&buffers.b, HOPPER_ELEMENTS * 2), "cudaMalloc");
    check(cudaMalloc(&buffers.out, HOPPER_ELEMENTS * 2), "cudaMalloc");
    fill(buffers.a, host, SALT_A);
    fill(buffers.b, host, SALT_B);
    for (size_t n = 0; n < count; n++) {
        struct hopper_kernel sized = kernels[n];
        const struct hopper_kernel *kernel = &sized;
        if (cube > 0 && sized.product.M > 0) {
            sized.product = (struct hopper_product){cube, cube, cube};
        }
        size_t results = kernel->product.M * kernel->product.N;
        if (only != NULL && strcmp(only, kernel->name) != 0) {
            continue;
        }
        check(cudaMemset(buffers.out, 0, HOPPER_ELEMENTS * 2), "cudaMemset");
        float ms = once ? time_kernel(kernel, &buffers, 1, 1)
                        : time_kernel(kernel, &buffers, WARM_UPS, RUNS);
        if (results > 0) {
            check(cudaMemcpy(host, buffers.out, results * 2, cudaMemcpyDeviceToHost), "cudaMemcpy");
            check_product(kernel, host);
        }
        printf("{\"kernel\": \"%s\", \"ms\": %.6f}\n", kernel->name, (double)ms);
        fflush(stdout);
    }
    check(cudaFree(buffers.a), "cudaFree");
    check(cudaFree(buffers.b), "cudaFree");
    check(cudaFree(buffers.out), "cudaFree");
    free(host);
}

/* @return 0: no size that all products have */
static size_t cube_of(const char *text) {
    char *end;
    unsigned long value = strtoul(text, &end, 10);
    return *end == '\0' && value % 256 == 0 && value <= 4096 ? value : 0;
}

static const struct {
    const char *name;
    const struct hopper_kernel *kernels;
    size_t count;
} sets[] = {{"products", hopper_products, HOPPER_PRODUCTS},
            {"units", hopper_units, HOPPER_UNITS},
            {"peers", hopper_peers, HOPPER_PEERS},
            {"exchanges", hopper_exchanges, HOPPER_EXCHANGES},
            {"conflicts", hopper_conflicts, HOPPER_CONFLICTS}};
enum { SETS = sizeof sets / sizeof *sets, ALL_SETS = (1 << SETS) - 1, PRODUCTS = 1 };

/* @return the set's bit; 0: there is none of that name */
static unsigned set_of(const char *name) {
    for (size_t n = 0; n < SETS; n++) {
        if (strcmp(name, sets[n].name) == 0) {
            return 1u << n;
        }
    }
    return 0;
}

int main(int argc, char **argv) {
    bool once = false;
    unsigned chosen = ALL_SETS;
    const char *only = NULL;
    size_t cube = 0;
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--once") == 0) {
            once = true;
        } else if (set_of(argv[i]) != 0) {
            chosen = set_of(argv[i]);
        } else if (strncmp(argv[i], "--kernel=", 9) == 0) {
            only = argv[i] + 9;
        } else if (strncmp(argv[i], "--cube=", 7) == 0 && (cube = cube_of(argv[i] + 7)) > 0) {
            chosen = PRODUCTS;
        } else {
            fprintf(stderr,
                    "hopper: what is %s? Usage: hopper [products|units|peers|exchanges|conflicts] "
                    "[--kernel=NAME] [--once] [--cube=N, a multiple of 256 up to 4096]\n",
                    argv[i]);
            return 2;
        }
    }
    for (size_t n = 0; n < SETS; n++) {
        if ((chosen >> n & 1) != 0) {
            run_set(sets[n].kernels, sets[n].count, once, only, cube);
        }
    }
    return 0;
}
