#include "grader/harness/record.h"

#include <cjson/cJSON.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "common/base/json_lines.h"
#include "common/bench/bench.h"
#include "common/testing/testing.h"
#include "grader/harness/crash_handler.h"
#include "grader/harness/starter.h"
#include "grader/harness/summary.h"
#include "grader/thresholds.h"

/*
 * Neither constant nor handed in: GoogleTest calls the observer without a
 * context of ours, and a test notes its speedup deep inside.
 */
static struct {
    const char *lab, *subject, *part;
    char device[192];
    bool modelled;
    struct speedup speedup;      /* of the running test; measure NULL: it compares nothing */
    struct device_limits limits; /* likewise; all 0: not known */
    double required;
    bool counts; /* the running test has counted something */
    size_t count, most;
    char why[GRADE_WHY]; /* of the running test, or "" */
    bool too_slow;
    int tests, failed;
    bool cannot_write; /* it is said once */
} record;

const char *grade_record_path(char *path, size_t size) {
    const char *file = getenv("WARPBOOK_GRADES");
    const char *outputs = getenv("TEST_UNDECLARED_OUTPUTS_DIR");
    const char *workspace = getenv("BUILD_WORKSPACE_DIRECTORY");
    if (file != NULL && file[0] != '\0') {
        snprintf(path, size, "%s", file);
    } else if (outputs != NULL && outputs[0] != '\0') {
        snprintf(path, size, "%s/grade.jsonl", outputs);
    } else if (workspace != NULL && workspace[0] != '\0') {
        snprintf(path, size, "%s/results/grade.jsonl", workspace);
    } else {
        snprintf(path, size, "results/grade.jsonl");
    }
    return path;
}

static void add_string(cJSON *line, const char *name, const char *value) {
    if (value != NULL && value[0] != '\0') {
        cJSON_AddStringToObject(line, name, value);
    } else {
        cJSON_AddNullToObject(line, name);
    }
}

/* JSON has no NaN and no infinity: null. */
static void add_number(cJSON *line, const char *name, double value) {
    if (isfinite(value)) {
        cJSON_AddNumberToObject(line, name, value);
    } else {
        cJSON_AddNullToObject(line, name);
    }
}

static void add_head(cJSON *line, const char *test, const char *verdict) {
    char text[256];
    time_t now = time(NULL);
    struct tm utc;
    cJSON_AddNumberToObject(line, "schema", GRADE_SCHEMA);
    strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", gmtime_r(&now, &utc));
    add_string(line, "time", text);
    add_string(line, "commit", bench_commit(text, sizeof text));
    add_string(line, "lab", record.lab);
    add_string(line, "subject", record.subject);
    add_string(line, "part", record.part);
    add_string(line, "test", test);
    add_string(line, "verdict", verdict);
}

/* Pass, good and gold as speedups on this machine: without margin; 0 where there is no such step.
 */
static void add_steps(cJSON *line, const struct speedup *s) {
    const struct threshold *threshold =
        s->measure != NULL ? threshold_find(s->lab, s->measure) : NULL;
    if (threshold == NULL) {
        cJSON_AddNullToObject(line, "steps");
        return;
    }
    const struct steps shares = speedup_shares(s, threshold);
    const double each[] = {shares.pass, shares.good, shares.gold};
    cJSON *steps = cJSON_AddArrayToObject(line, "steps");
    for (size_t i = 0; i < sizeof each / sizeof *each; i++) {
        double speedup = each[i] > 0.0 ? speedup_at_share(s, each[i]) : 0.0;
        cJSON_AddItemToArray(steps, cJSON_CreateNumber(speedup));
    }
}

static void add_speedup(cJSON *line) {
    const struct speedup *s = &record.speedup;
    bool compared = s->measure != NULL;
    add_string(line, "measure", s->measure);
    add_number(line, "baseline_ms", compared ? s->baseline_ms : NAN);
    add_number(line, "subject_ms", compared ? s->subject_ms : NAN);
    add_number(line, "speedup", compared ? s->baseline_ms / s->subject_ms : NAN);
    add_number(line, "required", compared ? record.required : NAN);
    add_number(line, "fixed_ms", compared ? s->least.fixed_ms : NAN);
    add_number(line, "ideal_ms", compared ? s->least.ideal_ms : NAN);
    add_number(line, "share", compared ? least_time_share(&s->least, s->subject_ms) : NAN);
    add_string(line, "limit", compared ? s->least.limit : NULL);
    add_steps(line, s);
    add_string(line, "why", record.why);
    if (record.counts) {
        cJSON_AddNumberToObject(line, "count", (double)record.count);
        cJSON_AddNumberToObject(line, "most", (double)record.most);
    }
}

static void add_device(cJSON *line) {
    char name[192];
    cJSON *device = cJSON_AddObjectToObject(line, "device");
    bool gpu = record.device[0] != '\0';
    add_string(device, "name", gpu ? record.device : bench_cpu_name(name, sizeof name));
    cJSON_AddBoolToObject(device, "modelled", record.modelled);
}

/* Rates a second, times in ms; null where nothing was measured. */
static void add_limits(cJSON *line) {
    const struct device_limits *l = &record.limits;
    if (!(l->read > 0.0)) {
        cJSON_AddNullToObject(line, "limits");
        return;
    }
    const struct {
        const char *name;
        double value;
    } each[] = {{"read", l->read},
                {"read_spread", l->read_spread},
                {"copy", l->copy},
                {"l2", l->l2},
                {"bus", l->bus},
                {"fp32_flops", l->fp32_flops},
                {"flops_spread", l->flops_spread},
                {"tensor_flops", l->tensor_flops},
                {"call_ms", l->call_ms},
                {"call_spread", l->call_spread},
                {"event_ms", l->event_ms},
                {"launch_ms", l->launch_ms},
                {"node_ms", l->node_ms},
                {"clock_khz", l->clock_khz}};
    cJSON *limits = cJSON_AddObjectToObject(line, "limits");
    for (size_t i = 0; i < sizeof each / sizeof *each; i++) {
        add_number(limits, each[i].name, each[i].value);
    }
}

static void append(cJSON *line) {
    char path[1024];
    struct error error = {0};
    if (json_lines_append(grade_record_path(path, sizeof path), line, &error) != STATUS_OK &&
        !record.cannot_write) {
        record.cannot_write = true;
        fprintf(stderr, "grades are not recorded: %s\n", error.message);
    }
}

static const char *verdict_of(const struct test_outcome *outcome) {
    bool only_slow = outcome->failures == 1 && record.too_slow;
    return only_slow ? "slow" : outcome->failures ? "fail" : outcome->skipped ? "skip" : "pass";
}

static void on_test_end(const struct test_outcome *outcome) {
    const char *before = crash_handler_phase("record of a test's result");
    cJSON *line = cJSON_CreateObject();
    add_head(line, outcome->name, verdict_of(outcome));
    add_speedup(line);
    add_device(line);
    add_limits(line);
    add_string(line, "message", outcome->message);
    add_number(line, "seconds", outcome->seconds);
    append(line);
    cJSON_Delete(line);
    grade_summary_test(outcome->name, outcome->failures > 0 ? outcome->message : NULL);
    record.tests++;
    record.failed += outcome->failures > 0;
    record.speedup = (struct speedup){0};
    record.limits = (struct device_limits){0};
    record.counts = false;
    record.why[0] = '\0';
    record.too_slow = false;
    (void)crash_handler_phase(before);
}

static void observe(const struct test_outcome *outcome) {
    if (outcome != NULL) {
        on_test_end(outcome);
        return;
    }
    cJSON *line = cJSON_CreateObject();
    add_head(line, NULL, "end");
    add_number(line, "tests", record.tests);
    add_number(line, "failed", record.failed);
    append(line);
    cJSON_Delete(line);
    grade_summary_print(stdout);
}

void grade_record_begin(const char *lab, const char *subject, const char *part) {
    record.lab = lab;
    record.subject = grader_grades_starter() ? "starter" : subject;
    record.part = part;
    test_observe(observe);
}

void grade_record_device(const char *name, bool modelled) {
    snprintf(record.device, sizeof record.device, "%s", name);
    record.modelled = modelled;
}

void grade_record_limits(const struct device_limits *limits) {
    record.limits = *limits;
}

void grade_record_count(size_t count, size_t most) {
    record.counts = true;
    record.count = count;
    record.most = most;
}

void grade_record_why(const char *why) {
    snprintf(record.why, sizeof record.why, "%s", why);
}

void grade_record_speedup(const struct speedup *speedup, double required, bool reached) {
    record.speedup = *speedup;
    record.required = required;
    record.too_slow = !reached;
}
