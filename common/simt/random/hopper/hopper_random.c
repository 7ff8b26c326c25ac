/*
 * hopper_random [--first N] [--count N] [--family N] [--form N] [--expected FILE]
 *
 * Runs random programs of Hopper's instructions (program.h) and prints one JSON line each: seed and
 * checksum of all results. On a GPU that is the record; with `--expected` each is compared with it,
 * nothing is printed but what differs, and the exit status is 1 if something does.
 */
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

#include "common/base/flags.h"
#include "common/simt/random/hopper/program.h"

static bool read_expected(FILE *file, uint64_t seed, uint64_t *checksum) {
    uint64_t number;
    while (fscanf(file, " {\"seed\": %" SCNu64 ", \"checksum\": \"%" SCNx64 "\"}", &number,
                  checksum) == 2) {
        if (number == seed) {
            return true;
        }
    }
    return false;
}

/* @return the number of programs that differ; -1: the record lacks one */
static int run_programs(uint64_t first, uint64_t count, const struct rh_limits *limits,
                        FILE *expected) {
    static struct rh_program program;
    int differ = 0;
    for (uint64_t seed = first; seed < first + count; seed++) {
        uint64_t checksum = 0, wanted = 0;
        rh_generate(&program, seed, limits);
        if (expected != NULL && !read_expected(expected, seed, &wanted)) {
            fprintf(stderr, "hopper_random: the record has no seed %" PRIu64 " behind the others\n",
                    seed);
            return -1;
        }
        const char *wrong = rh_run(&program, &checksum);
        if (wrong != NULL) {
            fprintf(stderr, "hopper_random: seed %" PRIu64 ": %s\n", seed, wrong);
            return -1;
        }
        if (expected == NULL) {
            printf("{\"seed\": %" PRIu64 ", \"checksum\": \"%016" PRIx64 "\"}\n", seed, checksum);
            fflush(stdout);
        } else if (checksum != wanted) {
            fprintf(stderr, "seed %" PRIu64 ": checksum %016" PRIx64 ", recorded %016" PRIx64 "\n",
                    seed, checksum, wanted);
            differ++;
        }
    }
    return differ;
}

int main(int argc, char **argv) {
    uint64_t first = 0, count = 300;
    struct rh_limits limits = {UINT64_MAX, UINT64_MAX};
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
    int differ = run_programs(first, count, &limits, expected);
    rh_end();
    if (expected != NULL) {
        fclose(expected);
        printf("%d of %" PRIu64 " programs differ\n", differ, count);
    }
    return differ == 0 ? 0 : 1;
}
