#include "common/bench/models/launch_counter.h"

#include <stdio.h>

static void count_one(void *context, const char *name, double ms) {
    (void)name, (void)ms;
    ((struct launch_counter *)context)->launches++;
}

static void begin(void *context, enum profile_operator op, const char *entry) {
    struct launch_counter *c = context;
    (void)entry;
    if (op != PROFILE_COPY && !c->again && c->status == STATUS_OK) {
        c->status = kernel_times_begin(c->times, &c->error);
    }
}

static bool end(void *context, enum profile_operator op, enum status *status) {
    struct launch_counter *c = context;
    struct error error = {0};
    if (op == PROFILE_COPY || c->again || c->status != STATUS_OK) {
        c->again = false;
        *status = c->status != STATUS_OK ? c->status : *status;
        return false;
    }
    enum status ended = kernel_times_end(c->times, *status, count_one, c, &error);
    if (ended == STATUS_UNSUPPORTED) {
        c->unseen++;
        snprintf(c->why, sizeof c->why, "%.120s", error.message);
        c->again = true;
        return true;
    }
    *status = ended;
    return false;
}

struct profile_recorder launch_counter_recorder(struct launch_counter *counter) {
    return (struct profile_recorder){counter, begin, end};
}
