/*
 * JUnit XML as the schemas of Ant's and Jenkins's reports have it: a suite a graded program, with
 * all attributes and children that Ant's wants, in its order. A program that crashed or hung is
 * an error, a red test a failure.
 */
#include <string.h>

#include "grader/report/format/format.h"

struct counts {
    size_t tests, failures, errors, skipped;
};

static struct counts count(const struct program *p) {
    struct counts n = {.tests = p->count, .errors = !program_is_sound(p)};
    n.tests += n.errors;
    for (size_t i = 0; i < p->count; i++) {
        enum verdict verdict = p->grades[i].verdict;
        n.failures += verdict == VERDICT_FAIL || verdict == VERDICT_SLOW;
        n.skipped += verdict == VERDICT_SKIP;
    }
    return n;
}

static void open_case(FILE *out, const char *suite, const char *name, double seconds) {
    fprintf(out, "    <testcase name=\"");
    format_escaped(out, name);
    fprintf(out, "\" classname=\"%s\" time=\"%.3f\"", suite, seconds);
}

static void print_case(FILE *out, const char *suite, const struct grade *grade) {
    open_case(out, suite, grade->test, grade->seconds);
    if (grade->verdict == VERDICT_PASS) {
        fprintf(out, "/>\n");
        return;
    }
    if (grade->verdict == VERDICT_SKIP) {
        fprintf(out, "><skipped/></testcase>\n");
        return;
    }
    char line[512];
    size_t length = strcspn(grade->message, "\n");
    snprintf(line, sizeof line, "%.*s", (int)(length < 500 ? length : 500), grade->message);
    text_clean(line, sizeof line, line, false);
    fprintf(out, ">\n      <failure message=\"");
    format_escaped(out, line);
    fprintf(out, "\" type=\"%s\">", verdict_name(grade->verdict));
    format_escaped(out, grade->message);
    fprintf(out, "</failure>\n    </testcase>\n");
}

static void print_error(FILE *out, const char *suite, const struct program *p) {
    char trouble[640];
    if (program_trouble(p, trouble, sizeof trouble) == NULL) {
        return;
    }
    open_case(out, suite, "comes to its end", p->seconds);
    fprintf(out, ">\n      <error message=\"");
    format_escaped(out, trouble);
    fprintf(out, "\" type=\"broken\"/>\n    </testcase>\n");
}

/* Ant's schema has times without a zone, and a host. */
static void print_suite(FILE *out, const struct lab_run *lab, enum part part, const char *subject,
                        int id) {
    char name[96];
    const struct program *p = &lab->programs[part];
    struct counts n = count(p);
    const char *time = lab->time[0] != '\0' ? lab->time : "1970-01-01T00:00:00Z";
    snprintf(name, sizeof name, "%s.%s", lab->lab->name, part_name(part));
    fprintf(out,
            "  <testsuite package=\"%s\" id=\"%d\" name=\"%s\" timestamp=\"%.19s\" "
            "hostname=\"localhost\" tests=\"%zu\" failures=\"%zu\" errors=\"%zu\" "
            "skipped=\"%zu\" time=\"%.3f\">\n    <properties/>\n",
            subject, id, name, time, n.tests, n.failures, n.errors, n.skipped, p->seconds);
    for (size_t i = 0; i < p->count; i++) {
        print_case(out, name, &p->grades[i]);
    }
    print_error(out, name, p);
    fprintf(out, "    <system-out></system-out>\n    <system-err></system-err>\n  </testsuite>\n");
}

void format_junit(FILE *out, const struct run *run, const struct run_score *score) {
    int id = 0;
    (void)score;
    fprintf(out, "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites>\n");
    for (size_t i = 0; i < LAB_COUNT; i++) {
        for (int part = 0; part < PARTS && run->labs[i].lab != NULL; part++) {
            print_suite(out, &run->labs[i], (enum part)part, run->subject, id++);
        }
    }
    fprintf(out, "</testsuites>\n");
}
