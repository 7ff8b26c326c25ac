#include "common/train/program/schedule.h"

#include <math.h>
#include <string.h>

static const char *const names[] = {[TRAIN_LINEAR] = "linear", [TRAIN_COSINE] = "cosine"};

enum { NAMES = sizeof names / sizeof *names };

enum status train_decay_parse(const char *name, enum train_decay *decay, struct error *error) {
    for (int i = 0; i < NAMES; i++) {
        if (strcmp(name, names[i]) == 0) {
            *decay = (enum train_decay)i;
            return STATUS_OK;
        }
    }
    return error_set(error, STATUS_INVALID_ARGUMENT, "--schedule is 'linear' or 'cosine', not '%s'",
                     name);
}

const char *train_decay_name(enum train_decay decay) {
    return names[decay];
}

enum status train_warmup_steps(double warmup, uint64_t total, uint64_t *steps,
                               struct error *error) {
    if (!(warmup >= 0.0 && warmup <= (double)total)) {
        return error_set(error, STATUS_INVALID_ARGUMENT,
                         "--warmup %g: from 0 to all %llu steps, or a share of them below 1",
                         warmup, (unsigned long long)total);
    }
    *steps = (uint64_t)(warmup < 1.0 ? warmup * (double)total : warmup);
    return STATUS_OK;
}

double train_schedule_rate(const struct train_schedule *s, uint64_t step) {
    if (step <= s->warmup) {
        return s->rate * (double)step / (double)s->warmup;
    }
    if (step > s->total) {
        return 0.0;
    }
    double done = (double)(step - 1 - s->warmup) / (double)(s->total - s->warmup);
    return s->decay == TRAIN_LINEAR ? s->rate * (1.0 - done)
                                    : s->rate * 0.5 * (1.0 + cos(3.14159265358979323846 * done));
}
