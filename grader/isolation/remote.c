#include "grader/isolation/remote.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/testing/testing.h"
#include "grader/harness/crash_handler.h"
#include "grader/harness/summary.h"
#include "grader/harness/watchdog.h"
#include "grader/isolation/link.h"
#include "grader/isolation/message.h"
#include "grader/isolation/worker_process.h"
#include "grader/sandbox/sandbox.h"

/* Seconds for a request without grader_watch(), and for a worker to begin. */
enum { DEFAULT_PATIENCE = 60, MOST_HANGS = 3 };

/* The longest wait for a GPU that still works for the other side, and all of them together, on a
   GPU that others use. What is shorter than a look at a busy GPU takes is not told. */
static const double SETTLE_MS = 2000.0, MOST_SETTLE_MS = 20000.0, NOTED_MS = 5.0;

/* So many times that for all requests without grader_watch() together. */
enum { UNWATCHED = 5 };

/*
 * Neither constant nor handed in: common/device has no context of ours either, and a test case that
 * ends early must not leave processes behind.
 */
static struct {
    struct side sides[REMOTE_SIDES];
    bool paused[REMOTE_SIDES];     /* it stands still */
    enum remote_side used, worked; /* worked: was asked for something last */
    double settled_ms;             /* that the GPU was waited for, in all */
    char what[200];                /* grader_watch(): what the learner's code is doing */
    double until;                  /* and when its patience ends; 0: not said */
    double message_ms; /* that a timed call of the baseline's takes beyond its own time; 0: not
                          known */
    double flops;      /* that simt counted in the last timed call */
    double tensor;     /* of these, by tensor cores */
    double bytes;      /* of global memory, likewise */
    double sent;       /* bytes to the device, likewise */
    double launched;   /* kernels, copies and fills, likewise */
    struct simt_reading before, after; /* of the device, around the last call */
    double calls_ran_ms, calls_ms; /* of the subject's timed calls on a CPU: on processors, and by
                                      the clock */
    unsigned hung;                 /* how often it did not come to an end */
} remote;

/*
 * Code that hangs does so in many tests, and a run of all labs must come to an end: each time
 * halves what the next one gets. The grader's own tests set $WARPBOOK_PATIENCE to fewer seconds.
 */
static double patience_of(double wanted) {
    const char *shorter = getenv("WARPBOOK_PATIENCE");
    double most = shorter != NULL ? strtod(shorter, NULL) : 0.0;
    return ldexp(most > 0.0 ? fmin(most, wanted) : wanted, -(int)remote.hung);
}

void grader_watch(const char *what, unsigned patience) {
    grade_summary_case(what, test_has_failed());
    snprintf(remote.what, sizeof remote.what, "%s", what);
    (void)crash_handler_phase(what[0] != '\0' ? remote.what : "between two cases");
    remote.until = patience > 0 ? message_now() + patience_of(patience) : 0.0;
}

void remote_use(enum remote_side side) {
    remote.used = side;
}

/* Has a side stand still, or go on. */
static void pause_side(int side, bool pause) {
    struct sandbox *sandbox = remote.sides[side].sandbox;
    if (sandbox != NULL && remote.paused[side] != pause) {
        sandbox_pause(sandbox, pause);
    }
    remote.paused[side] = sandbox != NULL && pause;
}

/*
 * While one side works the other stands still: it would slow down what is timed, or do what it
 * has no time for when it is timed itself.
 */
static void let_work(enum remote_side side) {
    for (int i = 0; i < REMOTE_SIDES; i++) {
        pause_side(i, i != (int)side);
    }
}

void remote_close(void) {
    for (int i = 0; i < REMOTE_SIDES; i++) {
        pause_side(i, false);
        remote.hung += remote.sides[i].late && remote.hung < MOST_HANGS;
        side_end(&remote.sides[i], i == REMOTE_SUBJECT ? "your code" : "the baseline");
    }
    remote.used = REMOTE_SUBJECT;
}

/* Each test has workers of its own, and what they wrote stands under its name. */
__attribute__((constructor)) static void close_behind_tests(void) {
    test_clean_up(remote_close);
}

__attribute__((destructor)) static void close_at_exit(void) {
    remote_close();
}

bool remote_alive(void) {
    return side_runs(&remote.sides[remote.used]);
}

/* "your code did not come to an end within 20 s, in: shape M=1" */
static enum status say_what(struct error *error, enum status status) {
    if (remote.what[0] != '\0' && error != NULL && strstr(error->message, ", in: ") == NULL) {
        char line[sizeof error->message];
        snprintf(line, sizeof line, "%s", error->message);
        return error_set(error, status, "%s, in: %s", line, remote.what);
    }
    return status;
}

/* Of a request that nobody gave a time: code that is slow to answer each must come to an end, too.
 */
static double patience_unwatched(const struct side *side) {
    double one = patience_of(DEFAULT_PATIENCE);
    return fmin(one, UNWATCHED * one - side->unwatched_s);
}

/*
 * Who frees, and who looks whether anything was loaded, has no use for the line; a test whose
 * worker is lost there has failed all the same.
 */
static enum status no_answer(bool known, enum status status, struct error *own,
                             struct error *error) {
    status = say_what(own, status);
    if (error == NULL && !known) {
        TEST_FAIL("%s", own->message);
    }
    return error_set(error, status, "%s", own->message);
}

static const char *whose_side(void) {
    return remote.used == REMOTE_SUBJECT ? "your code" : "the baseline";
}

/* A line about the device process of the side in use. */
static enum status device_lost(struct side *side, struct error *error) {
    const char *why = side->lost[0] != '\0' ? side->lost : "the emulated GPU has ended";
    return error_set(error, STATUS_INTERRUPTED, "%s", why);
}

/* Between an answer and the next request the worker has no business with the grader's channel, nor
   with the GPU. */
static enum status check_silent(struct side *side, struct error *error) {
    return side->device.sandbox == NULL || side_is_silent(side, whose_side())
               ? STATUS_OK
               : error_set(error, STATUS_INTERRUPTED, "%s", side->lost);
}

static enum status check_calls(struct side *side, uint64_t calls, struct error *error) {
    if (calls == side->device.calls) {
        return STATUS_OK;
    }
    side->device.calls = calls;
    return error_set(error, STATUS_MISMATCH,
                     "%s used the GPU when it had answered: all of its work must be done when a "
                     "call returns",
                     whose_side());
}

static enum status check_idle(struct side *side, struct error *error) {
    if (side->device.sandbox == NULL) {
        return STATUS_OK;
    }
    TRY(check_silent(side, error));
    if (!simt_device_read(&side->device, &remote.before)) {
        side_lose_device(side, whose_side());
        return device_lost(side, error);
    }
    return check_calls(side, remote.before.calls, error);
}

/* Notes what the device has done for the worker; a fault that the worker keeps to itself counts. */
static enum status look_at_device(struct side *side, enum status answered, struct error *error) {
    if (side->device.sandbox == NULL) {
        return STATUS_OK;
    }
    if (!simt_device_read(&side->device, &remote.after)) {
        side_lose_device(side, whose_side());
        return device_lost(side, error);
    }
    bool fault = remote.after.faults != side->device.faults;
    side->device.calls = remote.after.calls;
    side->device.faults = remote.after.faults;
    return answered == STATUS_OK && fault
               ? error_set(error, STATUS_DEVICE,
                           "a kernel of %s failed; simt's message is in its output", whose_side())
               : STATUS_OK;
}

/* Has the baseline's worker wait until the GPU has done what the subject's left in its queue: that
   is nobody's time. On simt each worker has a GPU of its own. */
static enum status settle(struct side *side, struct error *error) {
    struct message m = {.kind = MESSAGE_DEVICE, .a = {DEVICE_SETTLE, (uint64_t)SETTLE_MS}};
    bool due = remote.used == REMOTE_BASELINE && remote.worked == REMOTE_SUBJECT &&
               side->properties.name[0] != '\0' && side->device.sandbox == NULL &&
               remote.settled_ms < MOST_SETTLE_MS;
    remote.worked = remote.used;
    if (!due) {
        return STATUS_OK;
    }
    TRY(side_ask(side, &m, patience_of(DEFAULT_PATIENCE), "the baseline", error));
    remote.settled_ms += m.ms;
    if (m.ms > NOTED_MS) {
        printf("note: the GPU was busy for %.3g ms when your code had answered: the baseline waits "
               "for that outside of its time\n",
               m.ms);
    }
    return STATUS_OK;
}

enum status remote_start(struct error *error) {
    struct side *side = &remote.sides[remote.used];
    TRY(side_start(side, remote.used, patience_of(DEFAULT_PATIENCE), error));
    let_work(remote.used);
    return settle(side, error);
}

bool remote_has_device(void) {
    return remote.sides[remote.used].device.sandbox != NULL;
}

enum status remote_attach(struct error *error) {
    struct side *side = &remote.sides[remote.used];
    struct error own = {0};
    bool known = side->lost[0] != '\0';
    enum status status = remote_start(&own);
    if (status == STATUS_OK) {
        status = check_silent(side, &own);
    }
    if (status == STATUS_OK && !side_has_device(side, whose_side())) {
        status = device_lost(side, &own);
    }
    return status == STATUS_OK ? STATUS_OK : no_answer(known, status, &own, error);
}

enum status remote_device_said(enum status said, struct error *error) {
    struct side *side = &remote.sides[remote.used];
    struct simt_reading now;
    struct error own = {0};
    bool known = side->lost[0] != '\0';
    uint64_t calls = 0;
    bool there = said == STATUS_OK ? simt_device_calls(&side->device, &calls)
                                   : simt_device_read(&side->device, &now);
    if (there && said != STATUS_OK) {
        return said;
    }
    if (!there) {
        side_lose_device(side, whose_side());
    }
    enum status status = there ? check_calls(side, calls, &own) : device_lost(side, &own);
    return status == STATUS_OK ? STATUS_OK : no_answer(known, status, &own, error);
}

const struct simt_reading *remote_before(void) {
    return &remote.before;
}

const struct simt_reading *remote_after(void) {
    return &remote.after;
}

enum status remote_request(struct message *message, double *wall_ms, struct error *error) {
    struct side *side = &remote.sides[remote.used];
    bool known = side->lost[0] != '\0';
    struct error own = {0};
    double start = message_now();
    bool watched = remote.until > 0.0;
    double patience = watched ? remote.until - start : patience_unwatched(side);
    enum status status = remote_start(&own);
    if (status == STATUS_OK) {
        status = check_idle(side, &own);
    }
    if (status == STATUS_OK) {
        start = message_now();
        status = side_ask(side, message, fmax(patience, 0.1), whose_side(), &own);
    }
    double took = status == STATUS_OK ? side->took_s : message_now() - start;
    if (status == STATUS_OK) {
        status = look_at_device(side, (enum status)message->status, &own);
    }
    side->unwatched_s += watched ? 0.0 : took - side->added_s;
    remote.until += watched ? side->added_s : 0.0;
    if (wall_ms != NULL) {
        *wall_ms = 1e3 * took;
    }
    if (status != STATUS_OK) {
        return no_answer(known, status, &own, error);
    }
    status = (enum status)message->status;
    return status == STATUS_OK ? STATUS_OK : error_set(error, status, "%s", message->text);
}

enum remote_side remote_used(void) {
    return remote.used;
}

struct side *remote_side_in_use(void) {
    return &remote.sides[remote.used];
}

const struct device_properties *remote_other_properties(void) {
    const struct side *other =
        &remote.sides[remote.used == REMOTE_SUBJECT ? REMOTE_BASELINE : REMOTE_SUBJECT];
    return other->properties.name[0] != '\0' ? &other->properties : NULL;
}

/* A request that calls NAME; its arguments must fit. */
static enum status prepare(struct message *m, enum call_mode mode, const char *name,
                           const void *arguments, size_t size, struct error *error) {
    m->kind = MESSAGE_CALL;
    m->a[0] = (uint64_t)mode;
    snprintf(m->name, sizeof m->name, "%s", name);
    if (size > MESSAGE_BYTES) {
        return error_set(error, STATUS_TOO_LONG, "%s: arguments of %zu bytes do not fit", name,
                         size);
    }
    memcpy(m->bytes, arguments, size);
    m->size = (uint32_t)size;
    return STATUS_OK;
}

enum status remote_call_by(enum call_mode mode, const char *name, const void *arguments,
                           size_t size, device_stream stream, struct message *m, double *wall_ms,
                           struct error *error) {
    TRY(prepare(m, mode, name, arguments, size, error));
    m->a[1] = (uint64_t)(uintptr_t)stream;
    enum status status = remote_request(m, wall_ms, error);
    const struct simt_reading *a = &remote.after, *b = &remote.before;
    remote.flops = remote_has_device() ? (double)(a->flops - b->flops) : (double)m->a[3];
    remote.tensor = remote_has_device() ? a->tensor_flops - b->tensor_flops : 0.0;
    remote.sent = remote_has_device() ? (double)(a->sent - b->sent) : 0.0;
    remote.launched = remote_has_device() ? (double)(a->launched - b->launched) : 0.0;
    remote.bytes = remote_has_device() ? (double)(a->bytes - b->bytes) : (double)m->a[4];
    return status;
}

double remote_modelled_ms(void) {
    return 1e-6 * (remote.after.nanoseconds - remote.before.nanoseconds);
}

enum status remote_call(const char *name, void *arguments, size_t size, struct error *error) {
    struct message m = {0};
    enum status status = remote_call_by(CALL_ONCE, name, arguments, size, NULL, &m, NULL, error);
    if (remote_alive() && m.size == size) {
        memcpy(arguments, m.bytes, size);
    }
    return status;
}

/* What a worker's own time may fall short of the time outside: what that is for the baseline, whose
   word is good, and some more. On a CPU a team of threads that still runs makes it less certain. */
static double message_allowance(double outside_ms) {
    if (!remote_program.device) {
        return REMOTE_MESSAGE_MS;
    }
    if (remote.used == REMOTE_BASELINE) {
        remote.message_ms =
            remote.message_ms > 0.0 ? fmin(remote.message_ms, outside_ms) : outside_ms;
    }
    return remote.message_ms > 0.0
               ? fmin(REMOTE_SLOWEST_MESSAGE_MS, 2.0 * remote.message_ms + REMOTE_SLACK_MS)
               : REMOTE_MESSAGE_MS;
}

/* Milliseconds on processors of the side in use; 0 where it has not begun. */
static double ran_ms(void) {
    const struct side *side = &remote.sides[remote.used];
    return side_runs(side) ? 1e3 * sandbox_ran(side->sandbox) : 0.0;
}

/* A call on a CPU, with what it took of processors. */
static enum status call_on_cpu(const char *name, const void *arguments, size_t size,
                               struct message *m, double *wall_ms, struct error *error) {
    double before = ran_ms();
    enum status status = remote_call_by(CALL_TIMED, name, arguments, size, NULL, m, wall_ms, error);
    if (remote.used == REMOTE_SUBJECT && before > 0.0 && *wall_ms > 0.0) {
        remote.calls_ran_ms += ran_ms() - before;
        remote.calls_ms += *wall_ms;
    }
    return status;
}

/* The kernel adds to the time of a thread that runs once in a tick, which is up to 10 ms: of one
   call of a millisecond that says little, of many calls it does. */
void remote_check_threads(int threads) {
    const double some_more = 0.25, ticks_ms = 20.0;
    if (remote.calls_ran_ms > (threads + some_more) * remote.calls_ms + ticks_ms) {
        TEST_FAIL("your code kept %.3g processors busy in calls that may use %d thread%s: what is "
                  "required is a share of what %s can do",
                  remote.calls_ran_ms / remote.calls_ms, threads, threads > 1 ? "s" : "",
                  threads > 1 ? "these" : "it");
    }
}

/* Who multiplies on tensor cores finds them as they are when one product follows the other. */
static enum status warm_up(struct error *error) {
    const struct side *side = &remote.sides[remote.used];
    struct message m = {.kind = MESSAGE_DEVICE, .a = {DEVICE_WARM_UP}};
    bool measured = side->properties.name[0] != '\0' && !side->modelled;
    return measured ? remote_request(&m, NULL, error) : STATUS_OK;
}

/* Of a launch that has not ended neither the time nor the work is known. */
static enum status check_finished(struct error *error) {
    return !remote_has_device() || remote.after.unfinished == 0
               ? STATUS_OK
               : error_set(error, STATUS_MISMATCH,
                           "%s has a kernel at work when it has answered: all of its work must be "
                           "done when a call returns",
                           whose_side());
}

enum status remote_call_timed(const char *name, const void *arguments, size_t size,
                              device_stream stream, double *ms, struct error *error) {
    struct message m = {0};
    double wall_ms = 0.0;
    *ms = INFINITY;
    if (remote_program.device) {
        TRY(warm_up(error));
        TRY(remote_call_by(CALL_TIMED, name, arguments, size, stream, &m, &wall_ms, error));
        TRY(check_finished(error));
    } else {
        TRY(call_on_cpu(name, arguments, size, &m, &wall_ms, error));
    }
    bool modelled = remote.sides[remote.used].modelled;
    *ms = remote_has_device() ? remote_modelled_ms()
          : modelled          ? m.ms
                              : fmax(m.ms, wall_ms - message_allowance(wall_ms - m.ms));
    return isfinite(*ms) && *ms >= 0.0
               ? STATUS_OK
               : error_set(error, STATUS_MISMATCH, "the worker's clock gave no time");
}

double remote_waited_ms(void) {
    const struct side *side = &remote.sides[remote.used];
    return side_runs(side) ? 1e3 * sandbox_waited(side->sandbox) : 0.0;
}

struct remote_counts remote_counted(void) {
    return (struct remote_counts){remote.flops, remote.bytes, remote.sent, remote.launched};
}

void remote_check_idle(const char *what) {
    struct error error = {0};
    if (check_finished(&error) != STATUS_OK) {
        TEST_FAIL("%s, while %s", error.message, what);
    }
    if (remote_has_device() && remote.flops + remote.bytes + remote.sent > 0.0) {
        TEST_FAIL(
            "your kernels did %.3g operations and moved %.3g bytes, and your code sent %.3g bytes, "
            "while %s: results must be computed in the call that asks for them",
            remote.flops, remote.bytes, remote.sent, what);
    }
}

/* Tensor cores multiply what has 16 or 19 bits: an fp32 product is at least three of theirs. */
static double counted_flops(enum remote_products products) {
    double tensor = products == REMOTE_FP32_PRODUCTS ? remote.tensor / 3.0 : remote.tensor;
    return remote.flops - remote.tensor + tensor;
}

static void check_counted(double flops, double share, enum remote_products products) {
    double counted = counted_flops(products);
    if (!remote.sides[remote.used].modelled || counted >= share * flops) {
        return;
    }
    if (remote.tensor > 0.0 && products == REMOTE_FP32_PRODUCTS) {
        TEST_FAIL("your kernels did %.3g of %.3g operations in fp32 (%.3g on tensor cores count a "
                  "third: an fp32 product takes three of theirs)",
                  counted, flops, remote.tensor);
        return;
    }
    TEST_FAIL(
        "your kernels did %.3g of %.3g operations: the rest was left out, or the CPU computed "
        "it, which takes no modelled time and does not count",
        counted, flops);
}

void remote_check_counted(double flops, enum remote_products products) {
    check_counted(flops, 0.5, products);
}

void remote_check_most_counted(double flops, enum remote_products products) {
    check_counted(flops, 0.8, products);
}

void remote_check_counted_bytes(double bytes) {
    if (remote.sides[remote.used].modelled && remote.bytes < 0.5 * bytes) {
        TEST_FAIL(
            "your kernels moved %.3g of %.3g bytes: the rest was left out, or the CPU did it, "
            "which takes no modelled time and does not count",
            remote.bytes, bytes);
    }
}

void remote_check_sent(double inputs, double result) {
    if (remote.sent > inputs + 0.125 * result) {
        TEST_FAIL(
            "your code sent %.3g bytes to the GPU in a call that has %.3g bytes of input on the "
            "host and a result of %.3g bytes: kernels must compute the result where it is",
            remote.sent, inputs, result);
    }
}

void remote_check_fetched(double weights) {
    double fetched = (double)remote.after.fetched;
    if (remote_has_device() && fetched > 0.125 * weights) {
        TEST_FAIL("your code fetched %.3g bytes from the GPU, of whose weights there are %.3g: "
                  "kernels must use them where they are",
                  fetched, weights);
    }
}

enum status remote_alloc(void **memory, size_t bytes, struct error *error) {
    struct side *side = &remote.sides[remote.used];
    *memory = NULL;
    TRY(side_start(side, remote.used, patience_of(DEFAULT_PATIENCE), error));
    return side_alloc(side, memory, bytes, error);
}

enum status remote_copy(void **memory, const void *from, size_t bytes, struct error *error) {
    TRY(remote_alloc(memory, bytes, error));
    memcpy(*memory, from, bytes);
    return STATUS_OK;
}
