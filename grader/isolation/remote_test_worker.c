/* A worker that does what it should, or what it should not, or wants to harm the grader: one
 * function for each. */
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "grader/isolation/test_calls.h"
#include "grader/isolation/worker.h"

#ifdef GRADER_BASELINE
enum { STEP = 100 };
#else
enum { STEP = 1 };
#endif

/* The worker's clock stands still: no call takes any time. Its processor's time goes on. */
int clock_gettime(clockid_t clock, struct timespec *time) {
    if (clock == CLOCK_THREAD_CPUTIME_ID) {
        return (int)syscall(SYS_clock_gettime, clock, time);
    }
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
    struct test_call *c = arguments;
    (void)error;
    c->number += STEP;
    return STATUS_OK;
}

/* State of this process. */
static enum status count(void *arguments, struct error *error) {
    static int calls;
    (void)error;
    ((struct test_call *)arguments)->number = ++calls;
    return STATUS_OK;
}

static enum status refuse(void *arguments, struct error *error) {
    const struct test_call *c = arguments;
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
    exit(((struct test_call *)arguments)->number);
}

/* Milliseconds. */
static enum status take_time(void *arguments, struct error *error) {
    const struct test_call *c = arguments;
    const struct timespec time = {0, 1000000L * c->number};
    (void)error;
    nanosleep(&time, NULL);
    return STATUS_OK;
}

/* Answers before it has done anything: with a number of its own, or for 0 with the request's. */
static enum status send_packet(void *arguments, struct error *error) {
    static struct message forged;
    const struct test_call *c = arguments;
    const struct message *request =
        (struct message *)((char *)arguments - offsetof(struct message, bytes));
    (void)error;
    forged.number = c->number != 0 ? (uint64_t)c->number : request->number;
    return message_send(WORKER_CHANNEL, &forged);
}

static enum status send_garbage(void *arguments, struct error *error) {
    const struct test_call *c = arguments;
    static const char garbage[4096];
    (void)error;
    return send(WORKER_CHANNEL, garbage, (size_t)c->number, 0) < 0 ? STATUS_IO : STATUS_OK;
}

/* A packet whose size is not what it says of itself. */
static enum status send_liar(void *arguments, struct error *error) {
    static struct message liar;
    const struct test_call *c = arguments;
    (void)error;
    liar.size = (uint32_t)c->number;
    return send(WORKER_CHANNEL, &liar, 1000, 0) < 0 ? STATUS_IO : STATUS_OK;
}

static enum status print(void *arguments, struct error *error) {
    const struct test_call *c = arguments;
    (void)error;
    for (int i = 0; i < c->number; i++) {
        puts("\033[2J[  PASSED  ] 1000 tests.");
    }
    fputs("no newline", stderr);
    return STATUS_OK;
}

/* OK when the arena cannot be changed in size. */
static enum status resize(void *arguments, struct error *error) {
    const struct test_call *c = arguments;
    bool resized = ftruncate(WORKER_ARENA, c->number) == 0;
    return resized ? error_set(error, STATUS_IO, "the arena has another size") : STATUS_OK;
}

/* ---- What hostile_test asks for ---- */

static int number_of(const void *arguments) {
    return ((const struct test_call *)arguments)->number;
}

static enum status nothing(void *arguments, struct error *error) {
    (void)arguments;
    (void)error;
    return STATUS_OK;
}

static void stay_for_ever(void) __attribute__((noreturn));

static void stay_for_ever(void) {
    for (;;) {
        pause();
    }
}

static enum status hang_up(void *arguments, struct error *error) {
    (void)arguments;
    (void)error;
    close(WORKER_CHANNEL);
    stay_for_ever();
}

/* Packets that are no answers, then nothing. */
static enum status last_word(void *arguments, struct error *error) {
    static struct message message;
    (void)arguments;
    (void)error;
    while (message_send(WORKER_CHANNEL, &message) == STATUS_OK && message.number++ < 3) {
    }
    stay_for_ever();
}

/* Answers this request, and has something to say when it should go. */
static enum status stay(void *arguments, struct error *error) {
    static struct message message;
    (void)error;
    memcpy(&message, (char *)arguments - offsetof(struct message, bytes), sizeof message);
    message.status = STATUS_OK;
    if (message_send(WORKER_CHANNEL, &message) == STATUS_OK) {
        while (message_receive(WORKER_CHANNEL, &message, -1.0) == STATUS_OK) {
        }
    }
    message.size = 0;
    if (message_send(WORKER_CHANNEL, &message) == STATUS_OK) {
        close(WORKER_CHANNEL);
    }
    stay_for_ever();
}

/* The loop's own answer to this request comes first. */
static enum status answer_ahead(void *arguments, struct error *error) {
    static struct message message;
    struct message *request = (void *)((char *)arguments - offsetof(struct message, bytes));
    (void)error;
    memcpy(&message, request, sizeof message);
    message.status = STATUS_OK;
    for (int i = number_of(arguments); i >= 0; i--) {
        if (message_send(WORKER_CHANNEL, &message) != STATUS_OK) {
            return STATUS_IO;
        }
        message.number++;
    }
    request->number = message.number; /* the loop's answer is one more */
    return STATUS_OK;
}

/* Any number may come as a status. */
static enum status status(void *arguments, struct error *error) {
    (void)error;
    return (enum status)number_of(arguments);
}

/* Its arguments come back as another call's. */
static enum status change(void *arguments, struct error *error) {
    (void)error;
    ((struct test_call *)arguments)->number += 1000000;
    return STATUS_OK;
}

static void *count_for_ever(void *counter) {
    for (;;) {
        ++*(volatile unsigned *)counter;
    }
    return NULL;
}

/* Answers, and goes on working. */
static enum status stay_busy(void *arguments, struct error *error) {
    const struct test_call *c = arguments;
    pthread_t thread;
    return pthread_create(&thread, NULL, count_for_ever, (void *)c->counter) == 0
               ? STATUS_OK
               : error_set(error, STATUS_IO, "no thread");
}

/* Milliseconds on a processor. */
static enum status compute(void *arguments, struct error *error) {
    struct timespec now, begun;
    double ms;
    (void)error;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &begun);
    do {
        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
        ms = 1e3 * (double)(now.tv_sec - begun.tv_sec) +
             1e-6 * (double)(now.tv_nsec - begun.tv_nsec);
    } while (ms < number_of(arguments));
    return STATUS_OK;
}

#define ENTRY(function) \
    { #function, sizeof(struct test_call), function }

static const struct worker_entry entries[] = {ENTRY(add),
                                              ENTRY(count),
                                              ENTRY(refuse),
                                              {"double", sizeof(struct array_call), double_array},
                                              ENTRY(crash),
                                              ENTRY(hang),
                                              ENTRY(leave),
                                              ENTRY(take_time),
                                              {"packet", sizeof(struct test_call), send_packet},
                                              {"garbage", sizeof(struct test_call), send_garbage},
                                              {"liar", sizeof(struct test_call), send_liar},
                                              ENTRY(print),
                                              ENTRY(resize),
                                              ENTRY(nothing),
                                              ENTRY(hang_up),
                                              ENTRY(last_word),
                                              ENTRY(stay),
                                              ENTRY(answer_ahead),
                                              ENTRY(status),
                                              ENTRY(change),
                                              ENTRY(stay_busy),
                                              ENTRY(compute),
                                              {0}};

const struct worker worker = {entries, NULL};
