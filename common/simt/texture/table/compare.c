/**
 * @file compare.c
 * @brief Compares two outputs of `table`: compare RECORD OUTPUT
 *
 * Every word must be the same, but for filtered signed bytes and halves, whose last step an H100
 * rounds in a way of its own: those may be a step apart.
 */
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LINE = 4096 };

/** Steps that values may be apart: of filtered signed bytes; of halves, whose step grows with the
 * value, but that are sums of larger ones. */
static const double BYTE_STEP = 1.01 / 32767, HALF_STEP = 0x1p-10, LEAST_HALF_STEP = 0x1p-13;

struct tally {
    unsigned words, near, wrong;
};

static float float_of(const char *word) {
    uint32_t bits = (uint32_t)strtoul(word, NULL, 16);
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

static bool begins(const char *text, const char *with) {
    return strncmp(text, with, strlen(with)) == 0;
}

/** How far a value below a heading may be from another. */
static double tolerance_of(const char *heading, double value) {
    bool filtered = begins(heading, "random") || strstr(heading, "linear") != NULL;
    if (filtered && strstr(heading, " s8x") != NULL) {
        return BYTE_STEP;
    }
    return filtered && strstr(heading, " f16x") != NULL
               ? fmax(LEAST_HALF_STEP, HALF_STEP * fabs(value))
               : 0;
}

static bool is_number(const char *word) {
    return strspn(word, "0123456789abcdef") == strlen(word);
}

static void compare_words(const char *want, const char *got, const char *heading,
                          struct tally *tally) {
    tally->words++;
    if (strcmp(want, got) == 0) {
        return;
    }
    double value = (double)float_of(want), tolerance = tolerance_of(heading, value);
    bool near = tolerance > 0 && is_number(want) && is_number(got) &&
                fabs(value - (double)float_of(got)) <= tolerance;
    tally->near += near;
    tally->wrong += !near;
    if (!near) {
        printf("recorded %s, now %s\n", want, got);
    }
}

static void compare_lines(char *want, char *got, const char *heading, struct tally *tally) {
    char *rest_want = NULL, *rest_got = NULL;
    char *a = strtok_r(want, " \n", &rest_want), *b = strtok_r(got, " \n", &rest_got);
    while (a != NULL || b != NULL) {
        compare_words(a != NULL ? a : "nothing", b != NULL ? b : "nothing", heading, tally);
        a = a != NULL ? strtok_r(NULL, " \n", &rest_want) : NULL;
        b = b != NULL ? strtok_r(NULL, " \n", &rest_got) : NULL;
    }
}

/** A line of words with letters beyond "f" begins a part of the table. */
static bool is_heading(const char *line) {
    return strspn(line, "0123456789abcdefn. \n-") != strlen(line);
}

static void compare(FILE *record, FILE *output, struct tally *tally) {
    char want[LINE], got[LINE], heading[LINE] = "";
    for (;;) {
        bool more = fgets(want, sizeof want, record) != NULL;
        bool as_well = fgets(got, sizeof got, output) != NULL;
        if (!more && !as_well) {
            return;
        }
        if (more && is_heading(want)) {
            memcpy(heading, want, sizeof heading);
        }
        unsigned wrong = tally->wrong;
        compare_lines(more ? want : (char[]){""}, as_well ? got : (char[]){""}, heading, tally);
        if (tally->wrong > wrong) {
            printf("  below %s", heading);
        }
    }
}

int main(int argc, char **argv) {
    FILE *record = argc == 3 ? fopen(argv[1], "r") : NULL;
    FILE *output = argc == 3 ? fopen(argv[2], "r") : NULL;
    if (record == NULL || output == NULL) {
        fprintf(stderr, "compare: usage: compare RECORD OUTPUT, two files that can be read\n");
        return 1;
    }
    struct tally tally = {0};
    compare(record, output, &tally);
    fclose(record);
    fclose(output);
    printf("%u words: %u a step apart, %u wrong\n", tally.words, tally.near, tally.wrong);
    return tally.wrong > 0 || tally.words < 10000;
}
