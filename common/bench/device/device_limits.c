#include "common/bench/device/device_limits.h"

#include <math.h>
#include <stdlib.h>

#include "common/bench/device/device_bench.h"
#include "common/bench/device/device_kernels.h"
#include "common/bench/device/device_launches.h"
#include "common/bench/device/device_peaks.h"
#include "common/device/device.h"
#include "common/simt/simt.h"

enum { CALLS = 64, CHAIN = 64, TINY = 16 /* bytes */, BUS_BYTES = 64 << 20 };

/* What probes work on. */
struct probe {
    struct device_properties gpu;
    void *memory; /* device, of `bytes` */
    size_t bytes;
    double flops; /* of the last run */
    int launches; /* of a chain */
};

/* ---- Rates ---- */

static enum status run_products(void *argument, device_stream stream, struct error *error) {
    struct probe *p = argument;
    return device_multiply_matrices(p->memory, p->gpu.multiprocessors, &p->flops, stream, error);
}

static enum status run_read(void *argument, device_stream stream, struct error *error) {
    struct probe *p = argument;
    for (int i = 0; i < p->launches; i++) {
        TRY(device_stream_read(p->memory, p->memory, p->bytes, DEVICE_READ_WAVE,
                               p->gpu.multiprocessors, stream, error));
    }
    return STATUS_OK;
}

static enum status measure_tensor_cores(struct probe *p, struct device_limits *limits,
                                        struct error *error) {
    struct device_bench_options options = device_bench_probe();
    struct bench_timing timing;
    if (p->gpu.code < 80) {
        return STATUS_OK;
    }
    TRY(device_bench_run(&options, run_products, p, NULL, &timing, error));
    limits->tensor_flops = 1e3 * p->flops / timing.min_ms;
    return STATUS_OK;
}

/* Half of the cache, read again and again. */
static enum status measure_l2(struct probe *p, struct device_limits *limits, struct error *error) {
    struct device_bench_options options = device_bench_probe();
    struct bench_timing timing;
    p->bytes = p->gpu.l2_bytes / 2 / DEVICE_READ_TILE_BYTES * DEVICE_READ_TILE_BYTES;
    p->launches = CHAIN;
    if (p->bytes == 0) {
        limits->l2 = limits->read;
        return STATUS_OK;
    }
    TRY(device_bench_run(&options, run_read, p, NULL, &timing, error));
    limits->l2 = 1e3 * (double)p->bytes * CHAIN / timing.min_ms;
    return STATUS_OK;
}

static enum status measure_bus(const struct probe *p, void *host, struct device_limits *limits,
                               struct error *error) {
    double best = INFINITY;
    for (int i = 0; i < 3; i++) {
        double start = device_now();
        TRY(device_write(p->memory, host, BUS_BYTES, NULL, error));
        best = fmin(best, device_now() - start);
    }
    limits->bus = BUS_BYTES / best;
    return STATUS_OK;
}

static enum status measure_clock(const struct probe *p, struct device_limits *limits,
                                 struct error *error) {
    struct device_clock clock;
    TRY(device_read_clock(p->memory, NULL, error));
    TRY(device_read(&clock, p->memory, sizeof clock, NULL, error));
    limits->clock_khz = 1e6 * (double)clock.cycles / (double)clock.nanoseconds;
    return STATUS_OK;
}

static enum status measure_rates(struct probe *p, struct device_limits *limits,
                                 struct error *error) {
    struct roofline roofs;
    void *host = calloc(BUS_BYTES, 1);
    if (host == NULL) {
        return error_set(error, STATUS_OUT_OF_MEMORY, "out of memory for a copy to the GPU");
    }
    enum status status = measure_bus(p, host, limits, error);
    free(host);
    TRY(status);
    TRY(device_peaks(&roofs, &limits->flops_spread, error));
    limits->fp32_flops = roofs.flops_per_s;
    limits->copy = roofs.bytes_per_s;
    TRY(measure_clock(p, limits, error)); /* just behind work that has raised it */
    TRY(device_read_bandwidth(&limits->read, &limits->read_spread, error));
    TRY(measure_tensor_cores(p, limits, error));
    return measure_l2(p, limits, error);
}

static void look_up_rates(const struct device_properties *gpu, struct device_limits *limits) {
    struct simt_api simt;
    struct simt_limits table = {0};
    if (simt_find(&simt)) {
        simt.read_limits(&table);
    }
    limits->fp32_flops = gpu->peak_flops;
    limits->tensor_flops = gpu->code >= 80 ? table.tensor_flops : 0.0;
    limits->read = limits->copy = table.memory;
    limits->read_spread = limits->flops_spread = 1.0;
    limits->l2 = table.l2;
    limits->bus = table.bus;
}

/* ---- Launches ---- */

static enum status launch_chain(void *argument, device_stream stream, struct error *error) {
    struct probe *p = argument;
    for (int i = 0; i < p->launches; i++) {
        TRY(device_sweep(p->memory, TINY, stream, error));
    }
    return STATUS_OK;
}

/* Milliseconds of a function that is waited for. */
static enum status time_call(device_bench_function *function, void *argument, device_stream stream,
                             double *ms, struct error *error) {
    double start = device_now();
    TRY(function(argument, stream, error));
    TRY(device_synchronize(stream, error));
    *ms = 1e3 * (device_now() - start);
    return STATUS_OK;
}

static int compare(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* The fastest of many, where time is measured. @param spread receives median over fastest, or NULL
 */
static enum status time_calls(const struct probe *p, device_bench_function *function,
                              void *argument, device_stream stream, double *fastest, double *spread,
                              struct error *error) {
    double ms[CALLS];
    int calls = p->gpu.modelled ? 1 : CALLS;
    for (int i = 0; i < calls; i++) {
        TRY(time_call(function, argument, stream, &ms[i], error));
    }
    qsort(ms, (size_t)calls, sizeof *ms, compare);
    *fastest = ms[0];
    if (spread != NULL) {
        *spread = ms[calls / 2] / ms[0];
    }
    return STATUS_OK;
}

/* How much longer a chain takes than one, for each further link. */
static double each_further(double one_ms, double chain_ms) {
    return fmax(0.0, (chain_ms - one_ms) / (CHAIN - 1));
}

static enum status measure_graph(struct probe *p, device_stream stream,
                                 struct device_limits *limits, struct error *error) {
    struct device_graph *one = NULL, *chain = NULL;
    double one_ms, chain_ms;
    p->launches = 1;
    enum status status = device_graph_create(&one, launch_chain, p, stream, error);
    p->launches = CHAIN;
    if (status == STATUS_OK) {
        status = device_graph_create(&chain, launch_chain, p, stream, error);
    }
    if (status == STATUS_OK) {
        status = time_calls(p, device_graph_launch, one, stream, &one_ms, NULL, error);
    }
    if (status == STATUS_OK) {
        status = time_calls(p, device_graph_launch, chain, stream, &chain_ms, NULL, error);
    }
    limits->node_ms = status == STATUS_OK ? each_further(one_ms, chain_ms) : 0.0;
    device_graph_free(one);
    device_graph_free(chain);
    return status;
}

static enum status measure_launches(struct probe *p, device_stream stream,
                                    struct device_limits *limits, struct error *error) {
    struct device_bench_options options = device_bench_probe();
    struct bench_timing timing;
    double chain_ms;
    p->launches = 1;
    TRY(time_calls(p, launch_chain, p, stream, &limits->call_ms, &limits->call_spread, error));
    TRY(device_bench_run(&options, launch_chain, p, stream, &timing, error));
    limits->event_ms = timing.min_ms;
    p->launches = CHAIN;
    TRY(time_calls(p, launch_chain, p, stream, &chain_ms, NULL, error));
    limits->launch_ms = each_further(limits->call_ms, chain_ms);
    return measure_graph(p, stream, limits, error);
}

/* ---- All of them ---- */

static enum status measure(struct probe *p, device_stream stream, struct device_limits *limits,
                           struct error *error) {
    size_t l2 = p->gpu.l2_bytes, bytes = l2 > BUS_BYTES ? l2 : BUS_BYTES;
    TRY(device_alloc(&p->memory, p->gpu.modelled ? TINY : bytes, error));
    if (p->gpu.modelled) {
        look_up_rates(&p->gpu, limits);
    } else {
        TRY(measure_rates(p, limits, error));
    }
    return measure_launches(p, stream, limits, error);
}

enum status device_limits(struct device_limits *limits, struct error *error) {
    struct probe p = {0};
    device_stream stream;
    *limits = (struct device_limits){0};
    TRY(device_properties(&p.gpu, error));
    limits->modelled = p.gpu.modelled;
    limits->l2_bytes = p.gpu.l2_bytes;
    TRY(device_stream_create(&stream, error));
    enum status status = measure(&p, stream, limits, error);
    device_free(p.memory);
    device_stream_destroy(stream);
    return status;
}
