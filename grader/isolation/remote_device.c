/*
 * The functions of common/device on a worker's GPU. remote.bzl has the linker put them in place of
 * the real ones, hence their names; what they promise stands in common/device/device.h.
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include <cuda_runtime_api.h>

#include "common/bench/device/device_bench.h"
#include "common/device/device.h"
#include "common/simt/simt.h"
#include "grader/harness/watchdog.h"
#include "grader/isolation/link.h"
#include "grader/isolation/overheads.h"
#include "grader/isolation/remote.h"
#include "grader/isolation/remote_device.h"
#include "grader/isolation/surroundings.h"

static uint64_t number(const void *pointer) {
    return (uint64_t)(uintptr_t)pointer;
}

static struct message request(enum device_request what) {
    return (struct message){.kind = MESSAGE_DEVICE, .a = {(uint64_t)what}};
}

/* The functions of common/device in this process. On simt they work on the worker's device, which
   remote_attach() has attached. */
enum status __real_device_properties(struct device_properties *properties, struct error *error);
enum status __real_device_alloc(void **memory, size_t bytes, struct error *error);
void __real_device_free(void *memory);
enum status __real_device_write(void *to, const void *from, size_t bytes, device_stream stream,
                                struct error *error);
enum status __real_device_read(void *to, const void *from, size_t bytes, device_stream stream,
                               struct error *error);
enum status __real_device_copy(void *to, const void *from, size_t bytes, device_stream stream,
                               struct error *error);
enum status __real_device_set(void *memory, int value, size_t bytes, device_stream stream,
                              struct error *error);
enum status __real_device_stream_create(device_stream *stream, struct error *error);
void __real_device_stream_destroy(device_stream stream);
enum status __real_device_synchronize(device_stream stream, struct error *error);
double __real_device_now(void);

/* Whether the worker has, or will have, an emulated GPU that answers to the grader. */
static bool on_simt(void) {
    const struct side *side = remote_side_in_use();
    struct error ignored = {0};
    if (side->sandbox == NULL && side->lost[0] == '\0') {
        enum status status = remote_start(&ignored); /* whoever asks next is told */
        (void)status;
    }
    return side->modelled && remote_program.device == REMOTE_GPU;
}

enum status __wrap_device_open(struct error *error) {
    remote_close();
    return remote_open_device(error);
}

static bool same_gpu(const struct device_properties *a, const struct device_properties *b) {
    return strcmp(a->name, b->name) == 0 && a->modelled == b->modelled &&
           a->peak_flops == b->peak_flops && a->memory_bandwidth == b->memory_bandwidth;
}

/*
 * A process can say of its GPU what it likes, and peaks decide what time is possible: the grader
 * knows whether it is simt, and both workers must see the same one.
 */
static enum status check_properties(const struct side *side, struct error *error) {
    const struct device_properties *other = remote_other_properties();
    if (side->properties.modelled != side->modelled ||
        (other != NULL && !same_gpu(other, &side->properties))) {
        return error_set(error, STATUS_MISMATCH,
                         "your code changed what the GPU says of itself: this is no %s",
                         side->properties.name);
    }
    return STATUS_OK;
}

/* A worker that opens a device asks the one it was given, or has made another. */
static enum status check_asked(struct error *error) {
    return !remote_has_device() || remote_after()->calls != remote_before()->calls
               ? STATUS_OK
               : error_set(error, STATUS_MISMATCH,
                           "your code does not use the emulated GPU that it was given: it changed "
                           "SIMT_DEVICE in its environment, or the connection; leave both alone");
}

/* A worker's device is opened when the worker is first used. */
enum status remote_open_device(struct error *error) {
    struct message m = request(DEVICE_OPEN);
    TRY(remote_request(&m, NULL, error));
    TRY(check_asked(error));
    struct side *side = remote_side_in_use();
    if (m.size != sizeof side->properties) {
        return error_set(error, STATUS_MISMATCH, "the worker's device has no properties");
    }
    memcpy(&side->properties, m.bytes, sizeof side->properties);
    side->properties.name[sizeof side->properties.name - 1] = '\0';
    side->properties.record_name[sizeof side->properties.record_name - 1] = '\0';
    if (on_simt()) {
        int code = side->properties.code; /* what the worker was compiled for */
        TRY(remote_attach(error));
        TRY(remote_device_said(__real_device_properties(&side->properties, error), error));
        side->properties.code = code;
    }
    return check_properties(side, error);
}

enum status remote_open_side(enum remote_side which, struct error *error) {
    remote_use(which);
    return which == REMOTE_SUBJECT ? STATUS_OK : remote_open_device(error);
}

/* By the side in use. */
static enum status find_limits(struct device_limits *limits, struct error *error) {
    struct message m = request(DEVICE_LIMITS);
    if (remote_side_in_use()->properties.name[0] == '\0') {
        TRY(remote_open_device(error));
    }
    TRY(remote_request(&m, NULL, error));
    if (m.size != sizeof *limits) {
        return error_set(error, STATUS_MISMATCH, "the worker's device has no limits");
    }
    memcpy(limits, m.bytes, sizeof *limits);
    return STATUS_OK;
}

/* Neither constant nor handed in, as in remote.c: the GPU is the same for all of the program. */
static struct {
    bool known;
    struct device_limits limits;
} first;

enum status remote_probe_first(struct error *error) {
    struct surroundings s;
    if (first.known) {
        return STATUS_OK;
    }
    TRY(surroundings_find(&s, REMOTE_BASELINE, error));
    if (!s.gpu) {
        return STATUS_OK;
    }
    remote_close();
    remote_use(REMOTE_BASELINE);
    enum status status = remote_open_device(error);
    status = status == STATUS_OK ? find_limits(&first.limits, error) : status;
    first.known = status == STATUS_OK;
    remote_close();
    return status;
}

/* The better of two measurements, each of which others can only have slowed. */
static struct device_limits best_of(const struct device_limits *a, const struct device_limits *b) {
    struct device_limits best = *a;
    best.fp32_flops = fmax(a->fp32_flops, b->fp32_flops);
    best.tensor_flops = fmax(a->tensor_flops, b->tensor_flops);
    best.read = fmax(a->read, b->read);
    best.copy = fmax(a->copy, b->copy);
    best.l2 = fmax(a->l2, b->l2);
    best.bus = fmax(a->bus, b->bus);
    best.call_ms = fmin(a->call_ms, b->call_ms);
    best.event_ms = fmin(a->event_ms, b->event_ms);
    best.launch_ms = fmin(a->launch_ms, b->launch_ms);
    best.node_ms = fmin(a->node_ms, b->node_ms);
    return best;
}

static double apart(double a, double b) {
    return fmax(a, b) / fmin(a, b) - 1.0;
}

enum status remote_device_limits(struct device_limits *limits, struct remote_spread *spread,
                                 struct error *error) {
    enum remote_side before = remote_used();
    remote_use(REMOTE_BASELINE);
    enum status status = find_limits(limits, error);
    remote_use(before);
    *spread = (struct remote_spread){.call_ms = status == STATUS_OK ? limits->call_ms : 0.0};
    if (status == STATUS_OK && first.known) {
        spread->read = apart(first.limits.read, limits->read);
        spread->flops = apart(first.limits.fp32_flops, limits->fp32_flops);
        *limits = best_of(limits, &first.limits);
    }
    return status;
}

static bool take_longest(struct simt_profile *profile) {
    struct simt_api simt;
    return remote_alive() && remote_has_device() && remote_attach(NULL) == STATUS_OK &&
           simt_find(&simt) && simt.take_longest(profile);
}

bool remote_device_longest(struct simt_profile *profile) {
    enum remote_side before = remote_used();
    remote_use(REMOTE_SUBJECT);
    bool known = take_longest(profile);
    remote_use(before);
    return known;
}

enum status __wrap_device_properties(struct device_properties *properties, struct error *error) {
    (void)error;
    *properties = remote_side_in_use()->properties;
    return STATUS_OK;
}

enum status __wrap_device_alloc(void **memory, size_t bytes, struct error *error) {
    if (on_simt()) {
        *memory = NULL;
        TRY(remote_attach(error));
        return remote_device_said(__real_device_alloc(memory, bytes, error), error);
    }
    struct message m = request(DEVICE_ALLOC);
    *memory = NULL;
    m.a[1] = bytes;
    TRY(remote_request(&m, NULL, error));
    *memory = (void *)(uintptr_t)m.a[1];
    return STATUS_OK;
}

/* Nothing can be done about a failure; the worker's end frees all. */
static void tell(enum device_request what, const void *pointer) {
    struct message m = request(what);
    m.a[1] = number(pointer);
    if (pointer != NULL && remote_alive()) {
        enum status ignored = remote_request(&m, NULL, NULL);
        (void)ignored;
    }
}

/* Behind a function that says nothing; a worker that it finds at work fails the test. */
static void look_behind(void) {
    enum status told = remote_device_said(STATUS_OK, NULL);
    (void)told;
}

void __wrap_device_free(void *memory) {
    if (on_simt()) {
        if (memory != NULL && remote_alive() && remote_attach(NULL) == STATUS_OK) {
            __real_device_free(memory);
            look_behind();
        }
        return;
    }
    tell(DEVICE_FREE, memory);
}

enum status __wrap_device_alloc_host(void **memory, size_t bytes, struct error *error) {
    return remote_alloc(memory, bytes, error);
}

void __wrap_device_free_host(void *memory) {
    (void)memory; /* the arena goes as a whole */
}

static enum status move(enum device_request what, uint64_t to, uint64_t from, size_t bytes,
                        device_stream stream, struct error *error) {
    struct message m = request(what);
    m.a[1] = to;
    m.a[2] = from;
    m.a[3] = bytes;
    m.a[4] = number(stream);
    return remote_request(&m, NULL, error);
}

/* In the default stream, where most of a test's small copies are, one call copies and waits: half
   of what the real functions ask of the device. What is wrong they say. */
static bool copied(void *to, const void *from, size_t bytes, enum cudaMemcpyKind kind,
                   device_stream stream) {
    return stream == NULL && bytes > 0 && cudaMemcpy(to, from, bytes, kind) == cudaSuccess;
}

static enum status write_on_simt(void *to, const void *from, size_t bytes, device_stream stream,
                                 struct error *error) {
    return copied(to, from, bytes, cudaMemcpyHostToDevice, stream)
               ? STATUS_OK
               : __real_device_write(to, from, bytes, stream, error);
}

static enum status read_on_simt(void *to, const void *from, size_t bytes, device_stream stream,
                                struct error *error) {
    return copied(to, from, bytes, cudaMemcpyDeviceToHost, stream)
               ? STATUS_OK
               : __real_device_read(to, from, bytes, stream, error);
}

/* Through the arena, piece by piece. */
enum status __wrap_device_write(void *to, const void *from, size_t bytes, device_stream stream,
                                struct error *error) {
    if (on_simt()) {
        TRY(remote_attach(error));
        return remote_device_said(write_on_simt(to, from, bytes, stream, error), error);
    }
    const struct side *side = remote_side_in_use();
    size_t done = 0;
    do {
        size_t piece = bytes - done < SIDE_STAGING ? bytes - done : SIDE_STAGING;
        if (side_runs(side)) {
            memcpy(side->arena, (const char *)from + done, piece);
        }
        TRY(move(DEVICE_WRITE, number(to) + done, number(side->arena), piece, stream, error));
        done += piece;
    } while (done < bytes);
    return STATUS_OK;
}

enum status __wrap_device_read(void *to, const void *from, size_t bytes, device_stream stream,
                               struct error *error) {
    if (on_simt()) {
        TRY(remote_attach(error));
        return remote_device_said(read_on_simt(to, from, bytes, stream, error), error);
    }
    const struct side *side = remote_side_in_use();
    size_t done = 0;
    do {
        size_t piece = bytes - done < SIDE_STAGING ? bytes - done : SIDE_STAGING;
        TRY(move(DEVICE_READ, number(side->arena), number(from) + done, piece, stream, error));
        memcpy((char *)to + done, side->arena, piece);
        done += piece;
    } while (done < bytes);
    return STATUS_OK;
}

enum status __wrap_device_copy(void *to, const void *from, size_t bytes, device_stream stream,
                               struct error *error) {
    if (on_simt()) {
        TRY(remote_attach(error));
        return remote_device_said(__real_device_copy(to, from, bytes, stream, error), error);
    }
    return move(DEVICE_COPY, number(to), number(from), bytes, stream, error);
}

enum status __wrap_device_set(void *memory, int value, size_t bytes, device_stream stream,
                              struct error *error) {
    if (on_simt()) {
        TRY(remote_attach(error));
        return remote_device_said(__real_device_set(memory, value, bytes, stream, error), error);
    }
    return move(DEVICE_SET, number(memory), (uint64_t)value, bytes, stream, error);
}

enum status __wrap_device_stream_create(device_stream *stream, struct error *error) {
    if (on_simt()) {
        *stream = NULL;
        TRY(remote_attach(error));
        return remote_device_said(__real_device_stream_create(stream, error), error);
    }
    struct message m = request(DEVICE_STREAM_CREATE);
    *stream = NULL;
    TRY(remote_request(&m, NULL, error));
    *stream = (device_stream)(uintptr_t)m.a[1];
    return STATUS_OK;
}

void __wrap_device_stream_destroy(device_stream stream) {
    if (on_simt()) {
        if (stream != NULL && remote_alive() && remote_attach(NULL) == STATUS_OK) {
            __real_device_stream_destroy(stream);
            look_behind();
        }
        return;
    }
    tell(DEVICE_STREAM_DESTROY, stream);
}

enum status __wrap_device_synchronize(device_stream stream, struct error *error) {
    if (on_simt()) {
        TRY(remote_attach(error));
        return remote_device_said(__real_device_synchronize(stream, error), error);
    }
    struct message m = request(DEVICE_SYNCHRONIZE);
    m.a[1] = number(stream);
    return remote_request(&m, NULL, error);
}

enum status __wrap_device_launched(const char *what, struct error *error) {
    struct message m = request(DEVICE_LAUNCHED);
    snprintf(m.name, sizeof m.name, "%s", what);
    return remote_request(&m, NULL, error);
}

/* As the device counts: by whichever function it was asked. */
static struct device_traffic simt_traffic(void) {
    struct simt_api simt;
    struct simt_totals totals;
    if (remote_attach(NULL) != STATUS_OK || !simt_find(&simt)) {
        return (struct device_traffic){0};
    }
    simt.read_totals(&totals);
    return (struct device_traffic){.copies_to_device = totals.copies_to_device,
                                   .bytes_to_device = totals.bytes_to_device,
                                   .copies_to_host = totals.copies_to_host,
                                   .bytes_to_host = totals.bytes_to_host,
                                   .allocations = totals.allocations,
                                   .releases = totals.releases};
}

struct device_traffic __wrap_device_traffic(void) {
    if (on_simt()) {
        return simt_traffic();
    }
    struct message m = request(DEVICE_TRAFFIC);
    struct device_traffic traffic = {0};
    if (remote_request(&m, NULL, NULL) == STATUS_OK && m.size == sizeof traffic) {
        memcpy(&traffic, m.bytes, sizeof traffic);
    }
    return traffic;
}

double __wrap_device_now(void) {
    if (on_simt()) {
        return remote_attach(NULL) == STATUS_OK ? __real_device_now() : (double)NAN;
    }
    struct message m = request(DEVICE_NOW);
    return remote_request(&m, NULL, NULL) == STATUS_OK ? 1e-3 * m.ms : (double)NAN;
}

/* Fills L2 with what no call uses. */
static enum status sweep(struct error *error) {
    size_t bytes = 2 * remote_side_in_use()->properties.l2_bytes;
    void *memory = NULL;
    TRY(remote_attach(error));
    enum status status = __real_device_alloc(&memory, bytes, error);
    if (status == STATUS_OK) {
        status = __real_device_set(memory, 0, bytes, NULL, error);
        __real_device_free(memory);
    }
    return remote_device_said(status, error);
}

/* As device_bench_run() does on simt, whose time is the same in every run: one that fills the
   cache or a sweep, and one that counts. */
static enum status bench_on_simt(const struct device_bench_options *options, const char *name,
                                 const void *arguments, size_t size, device_stream stream,
                                 struct bench_timing *timing, struct error *error) {
    struct message m = {0};
    if (options->flush_l2) {
        TRY(sweep(error));
    } else if (options->warmup > 0) {
        TRY(remote_call_by(CALL_ONCE, name, arguments, size, stream, &m, NULL, error));
    }
    m = (struct message){0};
    TRY(remote_call_by(CALL_ONCE, name, arguments, size, stream, &m, NULL, error));
    double ms = remote_modelled_ms();
    *timing = (struct bench_timing){.median_ms = ms, .min_ms = ms, .max_ms = ms, .runs = 1};
    return __wrap_device_synchronize(stream, error);
}

/* Neither constant nor handed in, as above: of the baseline's runs between events. */
static struct overheads bench_overheads;

/* The worker's time, but no less than this process's clock saw beyond what the baseline's runs take
   beside theirs. */
static double checked_ms(double told_ms, double wall_ms) {
    if (remote_used() == REMOTE_BASELINE) {
        overheads_add(&bench_overheads, wall_ms - told_ms);
        return told_ms;
    }
    return fmax(told_ms, wall_ms - overheads_allow(&bench_overheads));
}

/* What comes before the run is done by a request of its own, so that the clock outside is fine. */
static enum status bench_once(bool flush, const char *name, const void *arguments, size_t size,
                              device_stream stream, double *ms, struct error *error) {
    struct message ready = request(DEVICE_PREPARE), m = {0};
    double wall_ms = 0.0;
    ready.a[1] = number(stream);
    ready.a[2] = flush;
    TRY(remote_request(&ready, NULL, error));
    TRY(remote_call_by(CALL_BENCH, name, arguments, size, stream, &m, &wall_ms, error));
    *ms = checked_ms(m.ms, wall_ms);
    return isfinite(m.ms) && m.ms >= 0.0
               ? STATUS_OK
               : error_set(error, STATUS_MISMATCH, "the worker's clock gave no time");
}

enum status remote_bench(const struct device_bench_options *options, const char *name,
                         const void *arguments, size_t size, device_stream stream,
                         struct bench_timing *timing, struct error *error) {
    enum { MOST_RUNS = 64 };
    double seconds[MOST_RUNS];
    *timing = (struct bench_timing){.median_ms = INFINITY, .min_ms = INFINITY, .max_ms = INFINITY};
    if (options->min_runs < 1 || options->min_runs > MOST_RUNS) {
        return error_set(error, STATUS_INVALID_ARGUMENT, "a bench of %d runs", options->min_runs);
    }
    if (on_simt()) {
        return bench_on_simt(options, name, arguments, size, stream, timing, error);
    }
    for (int i = -options->warmup; i < options->min_runs; i++) {
        double ms;
        TRY(bench_once(options->flush_l2, name, arguments, size, stream, &ms, error));
        seconds[i < 0 ? 0 : i] = 1e-3 * ms;
    }
    *timing = bench_summarise(seconds, options->min_runs);
    return STATUS_OK;
}

enum status remote_finish_watched(enum status called, device_stream stream, struct error *error) {
    enum status status = called == STATUS_OK ? device_synchronize(stream, error) : called;
    grader_watch("", 0);
    return status;
}

enum status remote_count_launches(const char *name, const void *arguments, size_t size,
                                  device_stream stream, size_t *launches, struct error *error) {
    struct message m = {0};
    enum status status =
        remote_call_by(CALL_COUNTED, name, arguments, size, stream, &m, NULL, error);
    size_t told = status == STATUS_OK ? (size_t)m.a[2] : 0;
    size_t done = remote_has_device() && status == STATUS_OK
                      ? (size_t)(remote_after()->launched - remote_before()->launched)
                      : 0;
    *launches = told > done ? told : done;
    return status;
}

/* Events and tracing stay with who times: remote_call_timed(), remote_bench(). */
static enum status not_here(struct error *error) {
    return error_set(error, STATUS_UNSUPPORTED, "the grader times in the worker");
}

enum status __wrap_device_event_create(device_event *event, struct error *error) {
    *event = NULL;
    return not_here(error);
}

void __wrap_device_event_destroy(device_event event) {
    (void)event;
}

enum status __wrap_device_event_record(device_event event, device_stream stream,
                                       struct error *error) {
    (void)event;
    (void)stream;
    return not_here(error);
}

enum status __wrap_device_event_elapsed(device_event start, device_event stop, double *ms,
                                        struct error *error) {
    (void)start;
    (void)stop;
    *ms = (double)INFINITY;
    return not_here(error);
}

void __wrap_device_trace(bool on) {
    (void)on;
}
