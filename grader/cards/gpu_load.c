/*
 * Keeps the GPU busy, as another program beside a graded test does.
 * usage: gpu_load memory|arithmetic|tensor SECONDS
 *
 * memory copies all the time, arithmetic multiplies and adds in registers, tensor multiplies
 * matrices, which takes most power. The GPU's queue is never empty: launches are some hundreds
 * ahead.
 */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/status.h"
#include "common/bench/bench.h"
#include "common/bench/device/device_kernels.h"
#include "common/device/device.h"

enum { BYTES = 256 << 20, AHEAD = 128 /* launches between two looks at the clock */ };

struct load {
    const char *kind;
    int multiprocessors;
    size_t bytes;
    void *from, *to;
    device_event halves[2]; /* of the queue */
    double flops;           /* of the last launch; nobody asks */
};

static enum status launch(struct load *load, device_stream stream, struct error *error) {
    if (strcmp(load->kind, "memory") == 0) {
        return device_stream_copy(load->to, load->from, load->bytes, stream, error);
    }
    if (strcmp(load->kind, "arithmetic") == 0) {
        return device_multiply_add(load->to, load->multiprocessors, &load->flops, stream, error);
    }
    return device_multiply_matrices(load->to, load->multiprocessors, &load->flops, stream, error);
}

/* While the GPU works on one half of the queue, the other is filled. */
static enum status run(struct load *load, double seconds, size_t *launches, struct error *error) {
    const double end = bench_now() + seconds;
    const int ahead = seconds > 0.0 ? AHEAD : 1;
    device_event *halves = load->halves;
    TRY(device_event_record(halves[1], NULL, error));
    for (int half = 0; *launches == 0 || bench_now() < end; half = 1 - half) {
        double ignored;
        for (int i = 0; i < ahead; i++) {
            TRY(launch(load, NULL, error));
            ++*launches;
        }
        TRY(device_event_record(halves[half], NULL, error));
        TRY(device_event_elapsed(halves[1 - half], halves[1 - half], &ignored, error));
    }
    return device_synchronize(NULL, error);
}

static enum status start(struct load *load, struct error *error) {
    struct device_properties gpu;
    TRY(device_open(error));
    TRY(device_properties(&gpu, error));
    load->multiprocessors = gpu.multiprocessors;
    load->bytes = gpu.modelled ? BYTES >> 12 : BYTES;
    TRY(device_event_create(&load->halves[0], error));
    TRY(device_event_create(&load->halves[1], error));
    TRY(device_alloc(&load->from, load->bytes, error));
    TRY(device_alloc(&load->to, load->bytes, error));
    return device_set(load->from, 0, load->bytes, NULL, error);
}

static void end(const struct load *load) {
    device_event_destroy(load->halves[0]);
    device_event_destroy(load->halves[1]);
    device_free(load->from);
    device_free(load->to);
}

static bool is_kind(const char *text) {
    return strcmp(text, "memory") == 0 || strcmp(text, "arithmetic") == 0 ||
           strcmp(text, "tensor") == 0;
}

int main(int argc, char **argv) {
    struct error error = {0};
    size_t launches = 0;
    char *rest = NULL;
    double seconds = argc == 3 ? strtod(argv[2], &rest) : -1.0;
    if (argc != 3 || !is_kind(argv[1]) || *rest != '\0' || !(seconds >= 0.0)) {
        fprintf(stderr, "usage: gpu_load memory|arithmetic|tensor SECONDS\n");
        return 2;
    }
    struct load load = {.kind = argv[1]};
    enum status status = start(&load, &error);
    if (status == STATUS_OK) {
        printf("loading the GPU: %s\n", load.kind);
        fflush(stdout);
        status = run(&load, seconds, &launches, &error);
    }
    end(&load);
    if (status != STATUS_OK) {
        fprintf(stderr, "gpu_load: %s\n", error_text(&error, status));
        return 1;
    }
    printf("%zu launches\n", launches);
    return 0;
}
