/* A worker whose GPU is made up: its memory is the host's, and its times are what it is told. */
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/device/device.h"
#include "grader/isolation/test_calls.h"
#include "grader/isolation/worker.h"

static enum status nothing(void *arguments, struct error *error) {
    const struct made_up_call *c = arguments;
    usleep(c->took_us);
    (void)error;
    return STATUS_OK;
}

static enum status crash(void *arguments, struct error *error) {
    (void)arguments;
    (void)error;
    raise(SIGSEGV);
    return STATUS_OK;
}

static enum status who(void *arguments, struct error *error) {
    struct who_call *c = arguments;
    void *kept = malloc(c->bytes + 1);
    if (kept == NULL) {
        return error_set(error, STATUS_OUT_OF_MEMORY, "no memory to keep");
    }
    memset(kept, 1, c->bytes);
    c->pid = getpid();
    return STATUS_OK;
}

static void put(struct message *message, const void *value, size_t size) {
    memcpy(message->bytes, value, size);
    message->size = (uint32_t)size;
}

/* $WRONG_GPU: what the subject's GPU says that is not so. */
static void put_properties(struct message *message) {
    struct device_properties p = {
        .name = "made up", .modelled = true, .peak_flops = 1e12, .memory_bandwidth = 1e11};
#ifndef GRADER_BASELINE
    const char *wrong = getenv("WRONG_GPU");
    if (wrong != NULL && strcmp(wrong, "peak") == 0) {
        p.peak_flops = 1e18;
    } else if (wrong != NULL && strcmp(wrong, "real") == 0) {
        p.modelled = false;
    } else if (wrong != NULL && strcmp(wrong, "short") == 0) {
        put(message, &p, sizeof p - 1);
        return;
    }
#endif
    put(message, &p, sizeof p);
}

static void move(const uint64_t *a) {
    void *to = (void *)(uintptr_t)a[1];
    if (a[0] == DEVICE_SET) {
        memset(to, (int)a[2], a[3]);
    } else {
        memcpy(to, (const void *)(uintptr_t)a[2], a[3]);
    }
}

static void serve(struct message *message) {
    static struct device_traffic traffic;
    uint64_t *a = message->a;
    message->size = 0;
    switch ((enum device_request)a[0]) {
    case DEVICE_OPEN:
        put_properties(message);
        break;
    case DEVICE_ALLOC:
        traffic.allocations++;
        a[1] = (uint64_t)(uintptr_t)malloc(a[1]);
        break;
    case DEVICE_FREE:
        free((void *)(uintptr_t)a[1]);
        break;
    case DEVICE_WRITE:
    case DEVICE_READ:
    case DEVICE_COPY:
    case DEVICE_SET:
        move(a);
        break;
    case DEVICE_SETTLE:
        message->ms = 7.0;
        traffic.releases++;
        break;
    case DEVICE_TRAFFIC:
        put(message, &traffic, sizeof traffic);
        break;
    default:
        break;
    }
    worker_answer(message, STATUS_OK, NULL);
}

/* Says of any call what its arguments want to be said. */
static void call(const struct worker_entry *entry, struct message *message) {
    struct error error = {0};
    struct made_up_call c;
    memcpy(&c, message->bytes, sizeof c);
    enum status status = entry->run(message->bytes, &error);
    message->ms = c.ms;
    message->a[2] = c.launches;
    worker_answer(message, status, &error);
}

static const struct worker_entry entries[] = {{"nothing", sizeof(struct made_up_call), nothing},
                                              {"crash", sizeof(struct made_up_call), crash},
                                              {"who", sizeof(struct who_call), who},
                                              {0}};
static const struct worker_device made_up = {serve, call, NULL};

const struct worker worker = {entries, &made_up};
