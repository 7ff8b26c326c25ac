/* A worker that wants to harm the grader, in one way a function. */
#include <pthread.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "grader/isolation/test_calls.h"
#include "grader/isolation/worker.h"

static int number_of(const void *arguments) {
    return ((const struct hostile_call *)arguments)->number;
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
    ((struct hostile_call *)arguments)->number += 1000000;
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
    const struct hostile_call *c = arguments;
    pthread_t thread;
    return pthread_create(&thread, NULL, count_for_ever, (void *)c->counter) == 0
               ? STATUS_OK
               : error_set(error, STATUS_IO, "no thread");
}

/* Milliseconds. */
static enum status take_time(void *arguments, struct error *error) {
    const struct timespec time = {0, 1000000L * number_of(arguments)};
    (void)error;
    nanosleep(&time, NULL);
    return STATUS_OK;
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

static const struct worker_entry entries[] = {
    {"nothing", sizeof(struct hostile_call), nothing},
    {"hang_up", sizeof(struct hostile_call), hang_up},
    {"last_word", sizeof(struct hostile_call), last_word},
    {"stay", sizeof(struct hostile_call), stay},
    {"answer_ahead", sizeof(struct hostile_call), answer_ahead},
    {"status", sizeof(struct hostile_call), status},
    {"change", sizeof(struct hostile_call), change},
    {"stay_busy", sizeof(struct hostile_call), stay_busy},
    {"take_time", sizeof(struct hostile_call), take_time},
    {"compute", sizeof(struct hostile_call), compute},
    {0}};

const struct worker worker = {entries, NULL};
