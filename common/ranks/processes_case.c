/*
 * Ranks of a test: processes_case [--gpus N] [--case NAME] [--who R] [--folder DIR]. No GPU is
 * used.
 *
 *     gather   gathers numbers and texts of all sizes, again and again
 *     wait     rank R writes its process id to DIR/pid, and waits for ever in the phase "working";
 *              the others wait for it in a gathering
 *     hold     the same, and the others hold for a second; then each writes DIR/held.RANK
 *     fail     rank R fails; all: every rank fails with the same line
 *     differ   the ranks compare texts that differ
 *     calls    rank R makes another call
 *     leave    rank R calls _exit(0)
 *     signal   all step until a rank has seen a signal, and say at which step they have ended
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "common/base/flags.h"
#include "common/base/terminal.h"
#include "common/programs/program.h"
#include "common/ranks/processes.h"

struct options {
    int gpus, who;
    const char *name, *folder;
};

static enum status write_file(const char *folder, const char *name, long number) {
    char path[4096];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *file = fopen(path, "w");
    if (file == NULL) {
        return STATUS_IO;
    }
    fprintf(file, "%ld\n", number);
    return fclose(file) == 0 ? STATUS_OK : STATUS_IO;
}

static enum status gather(struct ranks *r, struct error *error) {
    enum { MOST = 100000 };
    static char mine[MOST], all[RANKS_MOST * MOST];
    for (size_t bytes = 0; bytes <= MOST; bytes = 3 * bytes + 1) {
        memset(mine, 'a' + ranks_rank(r), bytes);
        TRY(ranks_all_gather(r, mine, bytes, all, error));
        for (size_t i = 0; i < bytes * (size_t)ranks_count(r); i++) {
            if (all[i] != 'a' + (int)(i / bytes)) {
                return error_set(error, STATUS_BAD_FORMAT, "byte %zu of %zu a rank is wrong", i,
                                 bytes);
            }
        }
    }
    uint32_t value = 7 * (uint32_t)ranks_rank(r);
    TRY(ranks_largest(r, &value, error));
    TRY(ranks_compare(r, "the test", "the same", error));
    if (ranks_rank(r) == 0) {
        printf("%d ranks, the largest is %u\n", ranks_count(r), value);
    }
    return STATUS_OK;
}

static enum status wait_in_work(struct ranks *r, const struct options *o, bool holds,
                                struct error *error) {
    ranks_phase(r, "working");
    TRY(ranks_all_gather(r, NULL, 0, NULL, error));
    if (ranks_rank(r) == o->who) {
        TRY(write_file(o->folder, "pid", (long)getpid()));
        for (;;) {
            pause();
        }
    }
    if (holds) {
        char name[32];
        const struct timespec second = {.tv_sec = 1};
        ranks_hold(r);
        nanosleep(&second, NULL);
        snprintf(name, sizeof name, "held.%d", ranks_rank(r));
        TRY(write_file(o->folder, name, 1));
        ranks_release(r);
    }
    return ranks_all_gather(r, NULL, 0, NULL, error);
}

static enum status step_until_signal(struct ranks *r, const struct options *o,
                                     struct error *error) {
    const struct timespec pause_ = {.tv_nsec = 1000000};
    interrupt_watch();
    for (uint32_t step = 0;; step++) {
        uint32_t seen = interrupt_seen() != 0;
        TRY(ranks_largest(r, &seen, error));
        if (step == 0) {
            TRY(write_file(o->folder, ranks_rank(r) == 0 ? "pid" : "other", (long)getpid()));
        }
        if (seen != 0) {
            return error_set(error, STATUS_INTERRUPTED, "interrupted");
        }
        nanosleep(&pause_, NULL);
    }
}

static enum status work(struct ranks *r, const struct options *o, struct error *error) {
    bool chosen = ranks_rank(r) == o->who;
    if (strcmp(o->name, "gather") == 0) {
        return gather(r, error);
    }
    if (strcmp(o->name, "wait") == 0 || strcmp(o->name, "hold") == 0) {
        return wait_in_work(r, o, strcmp(o->name, "hold") == 0, error);
    }
    if (strcmp(o->name, "all") == 0 || (strcmp(o->name, "fail") == 0 && chosen)) {
        return error_set(error, STATUS_BAD_FORMAT, "no good");
    }
    if (strcmp(o->name, "differ") == 0) {
        return ranks_compare(r, "the file", chosen ? "apples" : "pears", error);
    }
    if (strcmp(o->name, "calls") == 0 && chosen) {
        uint32_t value = 0;
        TRY(ranks_largest(r, &value, error));
    }
    if (strcmp(o->name, "leave") == 0 && chosen) {
        _exit(0);
    }
    if (strcmp(o->name, "signal") == 0) {
        return step_until_signal(r, o, error);
    }
    return ranks_all_gather(r, NULL, 0, NULL, error);
}

static enum status parse(struct options *o, int argc, char **argv, struct error *error) {
    const struct flag table[] = {
        {"gpus", 0, FLAG_INT, &o->gpus, "N", "ranks"},
        {"case", 0, FLAG_STRING, &o->name, "NAME", "what to do"},
        {"who", 0, FLAG_INT, &o->who, "R", "a rank"},
        {"folder", 0, FLAG_STRING, &o->folder, "DIR", "for files"},
    };
    const struct flags flags = {.program = "case",
                                .positional = "",
                                .summary = "ranks of a test",
                                .table = table,
                                .count = sizeof table / sizeof *table};
    struct arguments arguments;
    enum status status = flags_read(&flags, argc, argv, &arguments, error);
    free(arguments.values);
    return status;
}

int main(int argc, char **argv) {
    struct options o = {.gpus = 1, .name = "gather", .folder = "."};
    struct error error = {0};
    struct ranks *r = NULL;
    enum status status = parse(&o, argc, argv, &error);
    status = status == STATUS_OK ? ranks_start(&r, "case", o.gpus, &error) : status;
    if (ranks_launches(r)) {
        return ranks_supervise(r);
    }
    status = status == STATUS_OK ? work(r, &o, &error) : status;
    return ranks_end(r, "case", &error, status, interrupt_seen());
}
