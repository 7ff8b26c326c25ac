/* Requests to the device: the functions of common/device, called where the learner's code runs. */
#include <string.h>

#include "common/bench/device/device_bench.h"
#include "common/bench/device/device_kernels.h"
#include "common/bench/device/device_launches.h"
#include "common/bench/device/device_limits.h"
#include "common/device/device.h"
#include "common/simt/flush.h"
#include "common/simt/simt.h"
#include "grader/isolation/allocations.h"
#include "grader/isolation/worker.h"

_Static_assert(sizeof(struct device_properties) <= MESSAGE_BYTES, "fits into a message");
_Static_assert(sizeof(struct simt_profile) <= MESSAGE_BYTES, "fits into a message");

static void *address(uint64_t number) {
    return (void *)(uintptr_t)number;
}

static device_stream stream_of(uint64_t number) {
    return (device_stream)(uintptr_t)number;
}

/* Puts a struct into the answer's bytes. */
static void put(struct message *message, const void *value, size_t size) {
    memcpy(message->bytes, value, size);
    message->size = (uint32_t)size;
}

static enum status open_device(struct message *message, struct error *error) {
    struct device_properties properties;
    TRY(device_open(error));
    TRY(device_properties(&properties, error));
    put(message, &properties, sizeof properties);
    return STATUS_OK;
}

static enum status find_limits(struct message *message, struct error *error) {
    struct device_limits limits;
    TRY(device_limits(&limits, error));
    put(message, &limits, sizeof limits);
    return STATUS_OK;
}

/* Without simt, or without a launch, there are no bytes. */
static void find_longest(struct message *message) {
    struct simt_api simt;
    struct simt_profile profile;
    if (simt_find(&simt) && simt.take_longest(&profile)) {
        put(message, &profile, sizeof profile);
    }
}

static enum status allocate(uint64_t *a, struct error *error) {
    void *memory = NULL;
    enum status status = device_alloc(&memory, a[1], error);
    a[1] = (uint64_t)(uintptr_t)memory;
    return status;
}

static enum status create_stream(uint64_t *a, struct error *error) {
    device_stream stream = NULL;
    enum status status = device_stream_create(&stream, error);
    a[1] = (uint64_t)(uintptr_t)stream;
    return status;
}

/* As a process has one loop, it has one of these: for benches on a stream, and for looks at the
 * GPU. */
static struct {
    struct device_stopwatch *bench, *settle;
    device_stream stream; /* of bench */
    bool flush;           /* likewise */
} watch;

static void forget_bench(void) {
    device_stopwatch_free(watch.bench);
    watch.bench = NULL;
}

/* For the first 0.2 ms after a pause of some milliseconds tensor cores multiply at about half their
   speed, whatever other units did meanwhile (seen on an H200): that is nobody's time. */
static enum status warm_up(struct error *error) {
    static struct device_properties gpu;
    double flops;
    if (gpu.multiprocessors == 0) {
        TRY(device_properties(&gpu, error));
    }
    if (gpu.modelled || gpu.code < 80) {
        return STATUS_OK;
    }
    /* It writes nothing: there is no place to write to. */
    TRY(device_multiply_matrices(NULL, gpu.multiprocessors, &flops, NULL, error));
    return device_synchronize(NULL, error);
}

static enum status prepare(const uint64_t *a, struct error *error) {
    device_stream stream = stream_of(a[1]);
    bool flush = a[2] != 0;
    if (watch.bench == NULL || watch.flush != flush || watch.stream != stream) {
        forget_bench();
        watch.flush = flush;
        watch.stream = stream;
        TRY(device_stopwatch_create(&watch.bench, flush, stream, error));
    }
    TRY(warm_up(error));
    return device_stopwatch_prepare(watch.bench, error);
}

static enum status settle(const uint64_t *a, double *ms, struct error *error) {
    if (watch.settle == NULL) {
        TRY(device_stopwatch_create(&watch.settle, false, NULL, error));
    }
    return device_stopwatch_settle(watch.settle, 1e-3 * (double)a[1], ms, error);
}

static void destroy_stream(device_stream stream) {
    if (stream == watch.stream) {
        forget_bench();
    }
    device_stream_destroy(stream);
}

/* a: request, to, from or value, bytes, stream. */
static enum status move(uint64_t *a, struct error *error) {
    switch ((enum device_request)a[0]) {
    case DEVICE_WRITE:
        return device_write(address(a[1]), address(a[2]), a[3], stream_of(a[4]), error);
    case DEVICE_READ:
        return device_read(address(a[1]), address(a[2]), a[3], stream_of(a[4]), error);
    case DEVICE_COPY:
        return device_copy(address(a[1]), address(a[2]), a[3], stream_of(a[4]), error);
    default:
        return device_set(address(a[1]), (int)a[2], a[3], stream_of(a[4]), error);
    }
}

/* On simt what its runtime counted, whatever functions were called for it. On a GPU allocations are
   counted likewise, and copies are those of common/device. */
static struct device_traffic traffic_so_far(void) {
    struct simt_api simt;
    struct simt_totals totals;
    if (!simt_find(&simt)) {
        const struct allocations counted = allocations_so_far();
        struct device_traffic traffic = device_traffic();
        traffic.allocations = counted.allocations;
        traffic.releases = counted.releases;
        return traffic;
    }
    simt.read_totals(&totals);
    return (struct device_traffic){.copies_to_device = totals.copies_to_device,
                                   .bytes_to_device = totals.bytes_to_device,
                                   .copies_to_host = totals.copies_to_host,
                                   .bytes_to_host = totals.bytes_to_host,
                                   .allocations = totals.allocations,
                                   .releases = totals.releases};
}

static enum status request(struct message *message, struct error *error) {
    uint64_t *a = message->a;
    struct device_traffic traffic;
    switch ((enum device_request)a[0]) {
    case DEVICE_OPEN:
        return open_device(message, error);
    case DEVICE_ALLOC:
        return allocate(a, error);
    case DEVICE_FREE:
        device_free(address(a[1]));
        return STATUS_OK;
    case DEVICE_WRITE:
    case DEVICE_READ:
    case DEVICE_COPY:
    case DEVICE_SET:
        return move(a, error);
    case DEVICE_STREAM_CREATE:
        return create_stream(a, error);
    case DEVICE_STREAM_DESTROY:
        destroy_stream(stream_of(a[1]));
        return STATUS_OK;
    case DEVICE_SYNCHRONIZE:
        return device_synchronize(stream_of(a[1]), error);
    case DEVICE_LAUNCHED:
        return device_launched(message->name, error);
    case DEVICE_TRAFFIC:
        traffic = traffic_so_far();
        put(message, &traffic, sizeof traffic);
        return STATUS_OK;
    case DEVICE_NOW:
        message->ms = 1e3 * device_now();
        return STATUS_OK;
    case DEVICE_LIMITS:
        return find_limits(message, error);
    case DEVICE_PREPARE:
        return prepare(a, error);
    case DEVICE_SETTLE:
        return settle(a, &message->ms, error);
    case DEVICE_WARM_UP:
        return warm_up(error);
    case DEVICE_LONGEST:
        find_longest(message);
        return STATUS_OK;
    }
    return error_set(error, STATUS_UNSUPPORTED, "the worker knows no such request");
}

static void serve_device(struct message *message) {
    struct error error = {0};
    message->size = 0;
    enum status status = request(message, &error);
    worker_answer(message, status, &error);
}

/* A call as device_bench_run() and device_graph_create() take it. */
struct benched {
    const struct worker_entry *entry;
    unsigned char *arguments;
};

static enum status run_benched(void *argument, device_stream stream, struct error *error) {
    const struct benched *b = argument;
    (void)stream; /* it stands in the arguments, too */
    return b->entry->run(b->arguments, error);
}

/* What all kernels have done so far; zeros on a GPU, which does not count. */
static struct simt_counters counted_so_far(void) {
    struct simt_api simt;
    struct simt_totals totals = {.launches = 0};
    if (simt_find(&simt)) {
        simt.read_totals(&totals);
    }
    return totals.counters;
}

static enum status timed(struct benched *b, struct message *message, struct error *error) {
    double start = device_now();
    enum status status = run_benched(b, NULL, error);
    message->ms = 1e3 * (device_now() - start);
    if (status == STATUS_OK) {
        status = device_synchronize(stream_of(message->a[1]), error);
    }
    return status;
}

/* What the call has left on streams of its own is its work, too: the events do not see it, but the
   grader's clock runs until all is done. */
static enum status bench(struct benched *b, struct message *message, struct error *error) {
    if (watch.bench == NULL) {
        return error_set(error, STATUS_MISMATCH, "nothing was prepared for a bench");
    }
    enum status status = device_stopwatch_run(watch.bench, run_benched, b, &message->ms, error);
    (void)device_now(); /* waits for the whole GPU */
    return status;
}

/* Records a call, counts, and runs what was recorded: its results are those of the launches. */
static enum status counted(struct benched *b, struct message *message, struct error *error) {
    device_stream stream = stream_of(message->a[1]);
    struct device_graph *graph;
    TRY(device_graph_create(&graph, run_benched, b, stream, error));
    message->a[2] = device_graph_launches(graph);
    enum status status = device_graph_launch(graph, stream, error);
    if (status == STATUS_OK) {
        status = device_synchronize(stream, error);
    }
    device_graph_free(graph);
    return status;
}

static void call_on_device(const struct worker_entry *entry, struct message *message) {
    struct error error = {0};
    struct benched b = {entry, message->bytes};
    enum status status = STATUS_OK;
    const struct simt_counters before = counted_so_far();
    switch ((enum call_mode)message->a[0]) {
    case CALL_BENCH:
        status = bench(&b, message, &error);
        break;
    case CALL_COUNTED:
        status = counted(&b, message, &error);
        break;
    default:
        status = timed(&b, message, &error);
        break;
    }
    const struct simt_counters after = counted_so_far();
    message->a[3] = after.flops - before.flops;
    message->a[4] = after.global_bytes - before.global_bytes;
    worker_answer(message, status, &error);
}

const struct worker_device worker_device = {serve_device, call_on_device, simt_flush_calls};
