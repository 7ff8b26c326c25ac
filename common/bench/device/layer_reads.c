#include "common/bench/device/layer_reads.h"

#include "common/base/checked.h"
#include "common/bench/device/device_bench.h"
#include "common/bench/device/device_kernels.h"
#include "common/bench/device/device_launches.h"
#include "common/device/device.h"

/* The reads of all layers; sizes are rounded up to whole tiles. */
struct chain {
    size_t layers, weight_bytes, cache_bytes;
    int multiprocessors;
    enum device_read_shape shape;
    void *memory; /* all layers, one after the other */
    float *sink;
    device_stream stream;
};

size_t layer_reads_bytes(const struct layer_reads *reads) {
    size_t tiles = ceil_div(reads->weight_bytes, DEVICE_READ_TILE_BYTES) +
                   ceil_div(reads->cache_bytes, DEVICE_READ_TILE_BYTES);
    size_t all;
    bool fits = checked_multiply(tiles, reads->layers, &all) &&
                checked_multiply(all, DEVICE_READ_TILE_BYTES, &all);
    return fits ? all : 0;
}

/* Rounds a size up to whole tiles; layer_reads_bytes() has checked that it does not overflow. */
static size_t whole_tiles(size_t bytes) {
    return ceil_div(bytes, DEVICE_READ_TILE_BYTES) * DEVICE_READ_TILE_BYTES;
}

static enum status read_layers(void *argument, device_stream stream, struct error *error) {
    const struct chain *c = argument;
    const char *from = c->memory;
    const size_t sizes[] = {c->weight_bytes, c->cache_bytes};
    for (size_t i = 0; i < 2 * c->layers; i++) {
        TRY(device_stream_read(c->sink, from, sizes[i % 2], c->shape, c->multiprocessors, stream,
                               error));
        from += sizes[i % 2];
    }
    return STATUS_OK;
}

static enum status time_shape(struct chain *c, struct bench_timing *timing, struct error *error) {
    struct device_bench_options options = device_bench_defaults();
    struct device_graph *graph;
    TRY(device_graph_create(&graph, read_layers, c, c->stream, error));
    enum status status =
        device_bench_run(&options, device_graph_launch, graph, c->stream, timing, error);
    device_graph_free(graph);
    return status;
}

static enum status time_chain(struct chain *c, size_t bytes, int shapes,
                              struct bench_timing *timing, struct error *error) {
    TRY(device_alloc(&c->memory, bytes, error));
    TRY(device_alloc((void **)&c->sink, sizeof *c->sink, error));
    TRY(device_stream_create(&c->stream, error));
    TRY(device_set(c->memory, 0x3c, bytes, c->stream,
                   error)); /* finite positive numbers in fp32 and fp16 */
    for (int shape = 0; shape < shapes; shape++) {
        struct bench_timing found;
        c->shape = (enum device_read_shape)shape;
        TRY(time_shape(c, &found, error));
        *timing = shape == 0 || found.median_ms < timing->median_ms ? found : *timing;
    }
    return STATUS_OK;
}

enum status layer_reads_time(const struct layer_reads *reads, struct bench_timing *timing,
                             struct error *error) {
    struct device_properties gpu;
    size_t bytes = layer_reads_bytes(reads);
    *timing = (struct bench_timing){0};
    if (bytes == 0) {
        return error_set(error, STATUS_INVALID_ARGUMENT,
                         "reading %zu layers of %zu weight bytes and %zu cache bytes: the sum must "
                         "be at least 1 byte and fit size_t",
                         reads->layers, reads->weight_bytes, reads->cache_bytes);
    }
    TRY(device_properties(&gpu, error));
    struct chain chain = {.layers = reads->layers,
                          .weight_bytes = whole_tiles(reads->weight_bytes),
                          .cache_bytes = whole_tiles(reads->cache_bytes),
                          .multiprocessors = gpu.multiprocessors};
    int shapes = gpu.modelled ? 1 : DEVICE_READ_SHAPES;
    enum status status = time_chain(&chain, bytes, shapes, timing, error);
    device_stream_destroy(chain.stream);
    device_free(chain.memory);
    device_free(chain.sink);
    return status;
}
