/* The worker's loop: a request, its answer, until the grader closes the channel. */
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "grader/isolation/worker.h"

void worker_answer(struct message *message, enum status status, const struct error *error) {
    message->status = status;
    message->text[0] = '\0';
    if (status != STATUS_OK) {
        snprintf(message->text, sizeof message->text, "%s", error_text(error, status));
    }
}

/* The arena lies where the grader has it, so that pointers into it mean the same to both. */
static enum status map_arena(struct message *message, struct error *error) {
    void *wanted = (void *)(uintptr_t)message->a[0];
    void *got = mmap(wanted, message->a[1], PROT_READ | PROT_WRITE,
                     MAP_SHARED | MAP_FIXED_NOREPLACE, WORKER_ARENA, 0);
    return got == wanted
               ? STATUS_OK
               : error_set(error, STATUS_OUT_OF_MEMORY, "the worker cannot map the arena");
}

/* On the CPU a call is timed by the wall's clock. */
static void call_on_cpu(const struct worker_entry *entry, struct message *message) {
    struct error error = {0};
    double start = message_now();
    enum status status = entry->run(message->bytes, &error);
    message->ms = 1e3 * (message_now() - start);
    worker_answer(message, status, &error);
}

static const struct worker_entry *find(const char *name) {
    const struct worker_entry *entry = worker.entries;
    while (entry->name != NULL && strcmp(entry->name, name) != 0) {
        entry++;
    }
    return entry->name != NULL ? entry : NULL;
}

static void call(struct message *message) {
    struct error error = {0};
    const struct worker_entry *entry = find(message->name);
    bool plain = message->a[0] == CALL_ONCE;
    if (entry == NULL || entry->size != message->size) {
        worker_answer(message,
                      error_set(&error, STATUS_MISMATCH, "the worker has no %s that takes %u bytes",
                                message->name, message->size),
                      &error);
    } else if (plain) {
        worker_answer(message, entry->run(message->bytes, &error), &error);
    } else if (worker.device != NULL) {
        worker.device->call(entry, message);
    } else {
        call_on_cpu(entry, message);
    }
}

static void serve(struct message *message) {
    struct error error = {0};
    if (message->kind == MESSAGE_READY) {
        worker_answer(message, map_arena(message, &error), &error);
    } else if (message->kind == MESSAGE_CALL) {
        call(message);
    } else if (worker.device != NULL) {
        worker.device->serve(message);
    } else {
        worker_answer(message, error_set(&error, STATUS_UNSUPPORTED, "this worker has no GPU"),
                      &error);
    }
}

int main(void) {
    static struct message message; /* too large for a small stack */
    while (message_receive(WORKER_CHANNEL, &message, -1.0) == STATUS_OK) {
        serve(&message);
        if (worker.device != NULL && worker.device->flush != NULL) {
            worker.device->flush();
        }
        fflush(stdout);
        if (message_send(WORKER_CHANNEL, &message) != STATUS_OK) {
            break;
        }
    }
    fflush(NULL);
    _exit(0); /* what the learner's code left for the end is nobody's business */
}
