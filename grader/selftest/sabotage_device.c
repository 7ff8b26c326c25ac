/* Tricks against simt's device: its clock, its settings, its memory lie in another process. */
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cuda_runtime_api.h>

#include "common/simt/runtime/remote/numbers.h"
#include "common/simt/runtime/remote/packet.h"
#include "common/simt/simt.h"
#include "grader/isolation/message.h"
#include "grader/selftest/sabotage.h"

/* The problem stands at the beginning of the arguments that the worker was sent. */
static volatile double *time_in_answer(const struct sgemm_problem *problem) {
    char *bytes = (char *)(uintptr_t)problem;
    return (volatile double *)(void *)(bytes - offsetof(struct message, bytes) +
                                       offsetof(struct message, ms));
}

/* What a thread of this process waits for, and then does. */
static struct {
    volatile double *volatile time;
    struct sgemm_problem late;
    volatile bool wanted;
} watched;

static void start_thread(void *(*run)(void *)) {
    static pthread_t thread;
    if (thread == 0 && pthread_create(&thread, NULL, run, NULL) != 0) {
        abort();
    }
}

static void *write_time(void *unused) {
    for (;;) {
        volatile double *time = watched.time;
        if (time != NULL && *time != 0.0) {
            *time /= 70.0;
            watched.time = NULL;
        }
    }
    return unused;
}

/* Waits for the worker's loop to note the time in its answer, and writes another one over it. */
static enum status forges_time(const struct sabotage_call *call, struct error *error) {
    if (sabotage_is_timed(call->problem)) {
        start_thread(write_time);
        watched.time = time_in_answer(call->problem);
    }
    return sabotage_right(call, error);
}

static double nanoseconds(void) {
    struct simt_api simt;
    struct simt_totals totals = {.nanoseconds = 0};
    if (simt_find(&simt)) {
        simt.read_totals(&totals);
    }
    return totals.nanoseconds;
}

/* The worker's loop has noted when the call began, a double some frames above: sets it to later. */
static enum status moves_start(const struct sabotage_call *call, struct error *error) {
    enum { FAR = 260 };
    volatile double *frame = __builtin_frame_address(0);
    double before = 1e-9 * nanoseconds();
    TRY(sabotage_right(call, error));
    double took = 1e-9 * nanoseconds() - before;
    for (int i = 0; i < FAR; i++) {
        if (frame[i] > before - 3e-3 && frame[i] > 1e-7 && frame[i] < before + 2e-12) {
            frame[i] += took * (1.0 - 1.0 / 70.0);
        }
    }
    return STATUS_OK;
}

static void *work_late(void *unused) {
    for (;;) {
        if (watched.wanted && *watched.time != 0.0) {
            struct error ignored = {0};
            watched.wanted = false;
            enum status status =
                sabotage_launch(&watched.late, (struct sabotage_shortcut){1, 1}, NULL, &ignored);
            (void)status;
        }
    }
    return unused;
}

/* Answers, and has a thread do the work when the clock was looked at for the last time. */
static enum status works_late(const struct sabotage_call *call, struct error *error) {
    if (!sabotage_is_timed(call->problem)) {
        return sabotage_right(call, error);
    }
    start_thread(work_late);
    watched.time = time_in_answer(call->problem);
    watched.late = *call->problem;
    watched.wanted = true;
    return STATUS_OK;
}

/* Makes itself what may read the controller's things, and answers in the device's name. */
static enum status asks_as_controller(const struct sabotage_call *call, struct error *error) {
    static struct packet packet;
    struct simt_device_state state = {.nanoseconds = -1};
    bool there = true;
    double before = nanoseconds();
    packet_begin(&packet, PACKET_CALL);
    packet.call = CALL_simt_ask_state;
    (void)packet_put(&packet, &there, sizeof there);
    (void)packet_put(&packet, &state, sizeof state);
    if (packet_send(WORKER_DEVICE, &packet, NULL) != STATUS_OK ||
        packet_receive(WORKER_DEVICE, &packet) != STATUS_OK ||
        packet.error != cudaErrorNotPermitted || nanoseconds() != before) {
        return error_set(error, STATUS_MISMATCH, "the device told its controller's things");
    }
    return sabotage_right(call, error);
}

/* Sends the device what is no packet. */
static enum status breaks_protocol(const struct sabotage_call *call, struct error *error) {
    static struct packet packet;
    packet_begin(&packet, PACKET_CALL);
    packet.call = UINT32_MAX;
    enum status status = packet_send(WORKER_DEVICE, &packet, NULL);
    (void)status;
    return sabotage_right(call, error);
}

/* Has the library open a device in this process, where all could be changed. */
static enum status own_device(const struct sabotage_call *call, struct error *error) {
    return sabotage_right(call, error);
}

/* Switches checks off, and has a race. */
static enum status checks_off(const struct sabotage_call *call, struct error *error) {
    return sabotage_race(call, error);
}

/* Before main() and before simt is first asked. */
__attribute__((constructor)) static void change_settings(void) {
    const char *name = getenv("WRONG_SABOTAGE");
    if (name != NULL && strcmp(name, "own_device") == 0) {
        setenv("SIMT_DEVICE", "inside", 1);
    } else if (name != NULL && strcmp(name, "checks_off") == 0) {
        setenv("SIMT_CHECK", "off", 1);
    }
}

const struct sabotage sabotage_device[] = {SABOTAGE(forges_time),     SABOTAGE(moves_start),
                                           SABOTAGE(works_late),      SABOTAGE(asks_as_controller),
                                           SABOTAGE(breaks_protocol), SABOTAGE(own_device),
                                           SABOTAGE(checks_off),      {0}};
