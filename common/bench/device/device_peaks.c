#include "common/bench/device/device_peaks.h"

#include <math.h>

#include "common/bench/device/device_bench.h"
#include "common/bench/device/device_kernels.h"
#include "common/device/device.h"

/* Memory and sizes of the two probes, arithmetic and copy. */
struct probe {
    int multiprocessors;
    double flops; /* of one run of the arithmetic probe */
    void *from, *to;
    size_t bytes;
};

static enum status run_arithmetic(void *argument, device_stream stream, struct error *error) {
    struct probe *p = argument;
    return device_multiply_add(p->to, p->multiprocessors, &p->flops, stream, error);
}

static enum status run_copy(void *argument, device_stream stream, struct error *error) {
    struct probe *p = argument;
    return device_stream_copy(p->to, p->from, p->bytes, stream, error);
}

/* How much runs differ. */
static double spread_of(const struct bench_timing *timing) {
    return timing->median_ms / timing->min_ms;
}

/* An idle GPU saves power, and takes up to half a second to its full clock: arithmetic until it no
   longer gets faster. */
static enum status raise_clock(struct probe *p, struct error *error) {
    const struct device_bench_options some = {
        .warmup = 3, .min_runs = 3, .max_runs = 1000, .min_seconds = 0.03};
    const double faster = 0.98, begun = bench_now(), seconds = 0.5;
    double before_ms, now_ms = INFINITY;
    do {
        struct bench_timing timing;
        before_ms = now_ms;
        TRY(device_bench_run(&some, run_arithmetic, p, NULL, &timing, error));
        now_ms = timing.min_ms;
    } while (now_ms < faster * before_ms && bench_now() - begun < seconds);
    return STATUS_OK;
}

/* A peak is the time of the fastest run: everything else that happens can only slow a run. */
static enum status measure(struct probe *p, struct roofline *roofs, double *spread,
                           struct error *error) {
    struct device_bench_options options = device_bench_probe();
    struct bench_timing timing;
    TRY(device_alloc(&p->from, p->bytes, error));
    TRY(device_alloc(&p->to, p->bytes, error));
    TRY(device_set(p->from, 0, p->bytes, NULL, error));
    TRY(raise_clock(p, error));
    TRY(device_bench_run(&options, run_arithmetic, p, NULL, &timing, error));
    roofs->flops_per_s = 1e3 * p->flops / timing.min_ms;
    *spread = spread_of(&timing);
    TRY(device_bench_run(&options, run_copy, p, NULL, &timing, error));
    roofs->bytes_per_s = 1e3 * 2.0 * (double)p->bytes / timing.min_ms;
    return STATUS_OK;
}

enum status device_peaks(struct roofline *roofs, double *spread, struct error *error) {
    enum { MOST = 512 << 20 };
    struct device_properties gpu;
    double ignored;
    *roofs = (struct roofline){0};
    spread = spread != NULL ? spread : &ignored;
    *spread = 1.0;
    TRY(device_properties(&gpu, error));
    roofs->modelled = gpu.modelled;
    if (gpu.modelled) {
        roofs->flops_per_s = gpu.peak_flops;
        roofs->bytes_per_s = gpu.memory_bandwidth;
        return STATUS_OK;
    }
    struct probe p = {.multiprocessors = gpu.multiprocessors,
                      .bytes = gpu.memory_bytes / 8 < MOST ? gpu.memory_bytes / 8 / 16 * 16 : MOST};
    enum status status = measure(&p, roofs, spread, error);
    device_free(p.from);
    device_free(p.to);
    return status;
}

/* ---- Read bandwidth ---- */

struct reading {
    void *from;
    float *sink;
    size_t bytes;
    int multiprocessors;
    enum device_read_shape shape;
};

static enum status run_read(void *argument, device_stream stream, struct error *error) {
    struct reading *r = argument;
    return device_stream_read(r->sink, r->from, r->bytes, r->shape, r->multiprocessors, stream,
                              error);
}

static enum status measure_read(struct reading *r, double *bytes_per_s, double *spread,
                                struct error *error) {
    struct device_bench_options options = device_bench_probe();
    TRY(device_alloc(&r->from, r->bytes, error));
    TRY(device_alloc((void **)&r->sink, sizeof *r->sink, error));
    TRY(device_set(r->from, 0x3c, r->bytes, NULL,
                   error)); /* finite positive numbers in fp32 and fp16 */
    for (int shape = 0; shape < DEVICE_READ_SHAPES; shape++) {
        struct bench_timing timing;
        r->shape = (enum device_read_shape)shape;
        TRY(device_bench_run(&options, run_read, r, NULL, &timing, error));
        double speed = 1e3 * (double)r->bytes / timing.min_ms;
        if (speed > *bytes_per_s) {
            *bytes_per_s = speed;
            *spread = spread_of(&timing);
        }
    }
    return STATUS_OK;
}

enum status device_read_bandwidth(double *bytes_per_s, double *spread, struct error *error) {
    const size_t most = (size_t)2 << 30, tile = DEVICE_READ_TILE_BYTES;
    struct device_properties gpu;
    double ignored;
    *bytes_per_s = 0.0;
    spread = spread != NULL ? spread : &ignored;
    *spread = 1.0;
    TRY(device_properties(&gpu, error));
    if (gpu.modelled) {
        *bytes_per_s = gpu.memory_bandwidth;
        return STATUS_OK;
    }
    size_t eighth = gpu.memory_bytes / 8 / tile * tile;
    struct reading reading = {.bytes = eighth < most ? eighth : most,
                              .multiprocessors = gpu.multiprocessors};
    enum status status = measure_read(&reading, bytes_per_s, spread, error);
    device_free(reading.from);
    device_free(reading.sink);
    return status;
}
