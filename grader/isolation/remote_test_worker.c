/* A worker that does what it should, or what it should not: one function for each. */
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "grader/isolation/test_calls.h"
#include "grader/isolation/worker.h"

#ifdef GRADER_BASELINE
enum { STEP = 100 };
#else
enum { STEP = 1 };
#endif

/* The worker's clock stands still: no call takes any time. */
int clock_gettime(clockid_t clock, struct timespec *time) {
    (void)clock;
    *time = (struct timespec){1, 0};
    return 0;
}

__attribute__((constructor)) static void begin(void) {
    const char *how = getenv("WRONG_START");
    if (how != NULL && strcmp(how, "crash") == 0) {
        raise(SIGSEGV);
    } else if (how != NULL && strcmp(how, "leave") == 0) {
        _exit(0);
    }
}

static enum status add(void *arguments, struct error *error) {
    struct number_call *c = arguments;
    (void)error;
    c->number += STEP;
    return STATUS_OK;
}

/* State of this process. */
static enum status count(void *arguments, struct error *error) {
    static int calls;
    (void)error;
    ((struct number_call *)arguments)->number = ++calls;
    return STATUS_OK;
}

static enum status refuse(void *arguments, struct error *error) {
    const struct number_call *c = arguments;
    return error_set(error, STATUS_OVERFLOW, "%d is too large", c->number);
}

static enum status double_array(void *arguments, struct error *error) {
    const struct array_call *c = arguments;
    (void)error;
    for (size_t i = 0; i < c->count; i++) {
        c->out[i] = 2.0f * c->in[i];
    }
    return STATUS_OK;
}

static enum status crash(void *arguments, struct error *error) {
    (void)arguments;
    (void)error;
    raise(SIGSEGV);
    return STATUS_OK;
}

static enum status hang(void *arguments, struct error *error) {
    (void)arguments;
    (void)error;
    for (;;) {
        pause();
    }
    return STATUS_OK;
}

static enum status leave(void *arguments, struct error *error) {
    (void)error;
    exit(((struct number_call *)arguments)->number);
}

/* Milliseconds. */
static enum status take_time(void *arguments, struct error *error) {
    const struct number_call *c = arguments;
    const struct timespec time = {0, 1000000L * c->number};
    (void)error;
    nanosleep(&time, NULL);
    return STATUS_OK;
}

/* Answers before it has done anything: with a number of its own, or for 0 with the request's. */
static enum status send_packet(void *arguments, struct error *error) {
    static struct message forged;
    const struct number_call *c = arguments;
    const struct message *request =
        (struct message *)((char *)arguments - offsetof(struct message, bytes));
    (void)error;
    forged.number = c->number != 0 ? (uint64_t)c->number : request->number;
    return message_send(WORKER_CHANNEL, &forged);
}

static enum status send_garbage(void *arguments, struct error *error) {
    const struct number_call *c = arguments;
    static const char garbage[4096];
    (void)error;
    return send(WORKER_CHANNEL, garbage, (size_t)c->number, 0) < 0 ? STATUS_IO : STATUS_OK;
}

/* A packet whose size is not what it says of itself. */
static enum status send_liar(void *arguments, struct error *error) {
    static struct message liar;
    const struct number_call *c = arguments;
    (void)error;
    liar.size = (uint32_t)c->number;
    return send(WORKER_CHANNEL, &liar, 1000, 0) < 0 ? STATUS_IO : STATUS_OK;
}

static enum status print(void *arguments, struct error *error) {
    const struct number_call *c = arguments;
    (void)error;
    for (int i = 0; i < c->number; i++) {
        puts("\033[2J[  PASSED  ] 1000 tests.");
    }
    fputs("no newline", stderr);
    return STATUS_OK;
}

/* OK when the arena cannot be changed in size. */
static enum status resize(void *arguments, struct error *error) {
    const struct number_call *c = arguments;
    bool resized = ftruncate(WORKER_ARENA, c->number) == 0;
    return resized ? error_set(error, STATUS_IO, "the arena has another size") : STATUS_OK;
}

static const struct worker_entry entries[] = {{"add", sizeof(struct number_call), add},
                                              {"count", sizeof(struct number_call), count},
                                              {"refuse", sizeof(struct number_call), refuse},
                                              {"double", sizeof(struct array_call), double_array},
                                              {"crash", sizeof(struct number_call), crash},
                                              {"hang", sizeof(struct number_call), hang},
                                              {"leave", sizeof(struct number_call), leave},
                                              {"take_time", sizeof(struct number_call), take_time},
                                              {"packet", sizeof(struct number_call), send_packet},
                                              {"garbage", sizeof(struct number_call), send_garbage},
                                              {"liar", sizeof(struct number_call), send_liar},
                                              {"print", sizeof(struct number_call), print},
                                              {"resize", sizeof(struct number_call), resize},
                                              {0}};

const struct worker worker = {entries, NULL};
