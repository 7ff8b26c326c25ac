/*
 * hopper_random [--first N] [--count N] [--family N] [--form N] [--expected FILE]
 *
 * Runs random programs of Hopper's instructions (program.h) and prints one JSON line each: how they
 * are restricted, seed, and checksum of all results. On a GPU that is the record; with `--expected`
 * the programs of a record are run and compared with it, and the exit status is 1 if one differs.
 */
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

#include "common/base/flags.h"
#include "common/simt/random/hopper/program.h"

enum { ALL = 99 }; /* no limit */

/* Runs a program. @return false, and says so: it failed */
static bool run_one(uint64_t seed, const struct rh_limits *limits, uint64_t *checksum) {
    static struct rh_program program;
    rh_generate(&program, seed, limits);
    const char *wrong = rh_run(&program, checksum);
    if (wrong != NULL) {
        fprintf(stderr, "hopper_random: seed %" PRIu64 ": %s\n", seed, wrong);
    }
    return wrong == NULL;
}

static void print_line(FILE *to, uint64_t seed, const struct rh_limits *limits, uint64_t checksum) {
    fprintf(to,
            "{\"family\": %" PRIu64 ", \"form\": %" PRIu64 ", \"seed\": %" PRIu64
            ", \"checksum\": \"%016" PRIx64 "\"}\n",
            limits->family, limits->form, seed, checksum);
    fflush(to);
}

/* @return whether all programs ran */
static bool record(uint64_t first, uint64_t count, const struct rh_limits *limits) {
    for (uint64_t seed = first; seed < first + count; seed++) {
        uint64_t checksum;
        if (!run_one(seed, limits, &checksum)) {
            return false;
        }
        print_line(stdout, seed, limits, checksum);
    }
    return true;
}

/* Runs what a record lists. @return whether all of it, and at least one program, is equal */
static bool compare(FILE *recorded) {
    struct rh_limits limits;
    uint64_t seed, wanted, checksum, count = 0, differ = 0;
    while (fscanf(recorded,
                  " {\"family\": %" SCNu64 ", \"form\": %" SCNu64 ", \"seed\": %" SCNu64
                  ", \"checksum\": \"%" SCNx64 "\"}",
                  &limits.family, &limits.form, &seed, &wanted) == 4) {
        if (!run_one(seed, &limits, &checksum)) {
            return false;
        }
        if (checksum != wanted) {
            fprintf(stderr, "differs from the record: ");
            print_line(stderr, seed, &limits, checksum);
            differ++;
        }
        count++;
    }
    printf("%" PRIu64 " of %" PRIu64 " programs differ\n", differ, count);
    return feof(recorded) && count > 0 && differ == 0;
}

int main(int argc, char **argv) {
    uint64_t first = 0, count = 300;
    struct rh_limits limits = {ALL, ALL};
    const char *path = NULL;
    const struct flag table[] = {
        {"first", 'f', FLAG_U64, &first, "N", "first seed (default 0)"},
        {"count", 'c', FLAG_U64, &count, "N", "programs (default 300)"},
        {"family", 'a', FLAG_U64, &limits.family, "N", "operations of one family, 0 to 7 (all)"},
        {"form", 'o', FLAG_U64, &limits.form, "N", "one form of wgmma, 0 to 33 (all)"},
        {"expected", 'e', FLAG_STRING, &path, "FILE", "compare with this record"},
    };
    const struct flags flags = {"hopper_random",
                                "",
                                "Runs random programs of Hopper's instructions.",
                                table,
                                sizeof table / sizeof table[0],
                                NULL};
    struct arguments arguments;
    struct error error = {0};
    FILE *expected = NULL;
    enum status status = flags_read(&flags, argc, argv, &arguments, &error);
    free(arguments.values);
    if (status != STATUS_OK) {
        fprintf(stderr, "hopper_random: %s\n", error.message);
        return 2;
    }
    if (arguments.help) {
        return 0;
    }
    if (path != NULL && (expected = fopen(path, "r")) == NULL) {
        fprintf(stderr, "hopper_random: cannot open %s\n", path);
        return 2;
    }
    bool done = expected != NULL ? compare(expected) : record(first, count, &limits);
    rh_end();
    if (expected != NULL) {
        fclose(expected);
    }
    return done ? 0 : 1;
}
