#include <cjson/cJSON.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/file.h"
#include "grader/report/run.h"

enum { MOST_BYTES = 64 << 20, MOST_GRADES = 1000 };

static const char *const endings[ENDINGS] = {"not run", "not built", "exit", "signal", "timeout"};

static const char *string_of(const cJSON *object, const char *name) {
    const char *text = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(object, name));
    return text != NULL ? text : "";
}

/* A number that is missing, null or not finite is 0. */
static double number_of(const cJSON *object, const char *name) {
    const cJSON *item = cJSON_GetObjectItemCaseSensitive(object, name);
    return cJSON_IsNumber(item) && isfinite(item->valuedouble) ? item->valuedouble : 0.0;
}

static bool is_true(const cJSON *object, const char *name) {
    return cJSON_IsTrue(cJSON_GetObjectItemCaseSensitive(object, name));
}

/* Index of a name in a list, or its length. */
static int index_of(const char *name, const char *const *names, int count) {
    for (int i = 0; i < count; i++) {
        if (strcmp(name, names[i]) == 0) {
            return i;
        }
    }
    return count;
}

/* Pass, good and gold; a line without them says what was required, and knows no steps beyond. */
static struct steps steps_of(const cJSON *json) {
    const cJSON *list = cJSON_GetObjectItemCaseSensitive(json, "steps");
    double each[3] = {number_of(json, "required")};
    for (int i = 0; i < 3 && cJSON_GetArraySize(list) == 3; i++) {
        each[i] = cJSON_GetNumberValue(cJSON_GetArrayItem(list, i));
    }
    return (struct steps){each[0], each[1], each[2]};
}

/* Reads one grade. @return false when it is none */
static bool grade_from_json(struct grade *grade, const cJSON *json) {
    static const char *const verdicts[VERDICTS] = {"pass", "slow", "fail", "skip"};
    const cJSON *device = cJSON_GetObjectItemCaseSensitive(json, "device");
    int verdict = index_of(string_of(json, "verdict"), verdicts, VERDICTS);
    if (verdict == VERDICTS || string_of(json, "test")[0] == '\0') {
        return false;
    }
    *grade = (struct grade){.verdict = (enum verdict)verdict,
                            .timed = string_of(json, "measure")[0] != '\0',
                            .baseline_ms = number_of(json, "baseline_ms"),
                            .subject_ms = number_of(json, "subject_ms"),
                            .speedup = number_of(json, "speedup"),
                            .required = number_of(json, "required"),
                            .steps = steps_of(json),
                            .share = number_of(json, "share"),
                            .modelled = is_true(device, "modelled"),
                            .seconds = number_of(json, "seconds")};
    text_clean(grade->test, sizeof grade->test, string_of(json, "test"), false);
    text_clean(grade->limit, sizeof grade->limit, string_of(json, "limit"), false);
    text_clean(grade->device, sizeof grade->device, string_of(device, "name"), false);
    text_clean(grade->why, sizeof grade->why, string_of(json, "why"), false);
    text_clean(grade->message, sizeof grade->message, string_of(json, "message"), true);
    return true;
}

static enum status add_grade(struct program *p, const struct grade *grade, struct error *error) {
    if (p->count >= MOST_GRADES) {
        p->strange++;
        return STATUS_OK;
    }
    struct grade *grades = realloc(p->grades, (p->count + 1) * sizeof *grades);
    if (grades == NULL) {
        return error_set(error, STATUS_OUT_OF_MEMORY, "out of memory for %zu grades", p->count);
    }
    grades[p->count++] = *grade;
    p->grades = grades;
    return STATUS_OK;
}

static enum status read_line(struct program *p, const struct lab *lab, enum part part,
                             const char *line, struct error *error) {
    struct grade grade;
    enum status status = STATUS_OK;
    cJSON *json = cJSON_Parse(line);
    bool ours = cJSON_IsObject(json) && number_of(json, "schema") == 1.0 &&
                strcmp(string_of(json, "lab"), lab->name) == 0 &&
                strcmp(string_of(json, "part"), part_name(part)) == 0;
    if (!ours || p->complete) { /* nothing comes behind the end */
        p->strange++;
    } else if (strcmp(string_of(json, "verdict"), "end") == 0) {
        p->complete = number_of(json, "tests") == (double)p->count;
    } else if (grade_from_json(&grade, json)) {
        status = add_grade(p, &grade, error);
    } else {
        p->strange++;
    }
    cJSON_Delete(json);
    return status;
}

enum status program_read(struct program *p, const struct lab *lab, enum part part, char *text,
                         struct error *error) {
    char *rest;
    for (char *line = strtok_r(text, "\n", &rest); line != NULL;
         line = strtok_r(NULL, "\n", &rest)) {
        TRY(read_line(p, lab, part, line, error));
    }
    return STATUS_OK;
}

static void add_number_or_null(cJSON *object, const char *name, bool known, double value) {
    if (known && isfinite(value)) {
        cJSON_AddNumberToObject(object, name, value);
    } else {
        cJSON_AddNullToObject(object, name);
    }
}

static void add_steps(cJSON *json, const struct grade *grade) {
    const double each[] = {grade->steps.pass, grade->steps.good, grade->steps.gold};
    if (grade->timed) {
        cJSON_AddItemToObject(json, "steps", cJSON_CreateDoubleArray(each, 3));
    } else {
        cJSON_AddNullToObject(json, "steps");
    }
}

static cJSON *grade_to_json(const struct grade *grade) {
    cJSON *json = cJSON_CreateObject();
    cJSON_AddStringToObject(json, "test", grade->test);
    cJSON_AddStringToObject(json, "verdict", verdict_name(grade->verdict));
    if (grade->timed) {
        cJSON_AddStringToObject(json, "measure", grade->test);
    } else {
        cJSON_AddNullToObject(json, "measure");
    }
    add_number_or_null(json, "baseline_ms", grade->timed, grade->baseline_ms);
    add_number_or_null(json, "subject_ms", grade->timed, grade->subject_ms);
    add_number_or_null(json, "speedup", grade->timed, grade->speedup);
    add_number_or_null(json, "required", grade->timed, grade->required);
    add_number_or_null(json, "share", grade->limit[0] != '\0', grade->share);
    if (grade->limit[0] != '\0') {
        cJSON_AddStringToObject(json, "limit", grade->limit);
    } else {
        cJSON_AddNullToObject(json, "limit");
    }
    add_steps(json, grade);
    if (grade->why[0] != '\0') {
        cJSON_AddStringToObject(json, "why", grade->why);
    }
    cJSON *device = cJSON_AddObjectToObject(json, "device");
    cJSON_AddStringToObject(device, "name", grade->device);
    cJSON_AddBoolToObject(device, "modelled", grade->modelled);
    cJSON_AddStringToObject(json, "message", grade->message);
    cJSON_AddNumberToObject(json, "seconds", grade->seconds);
    return json;
}

static cJSON *program_to_json(const struct program *p) {
    cJSON *json = cJSON_CreateObject();
    cJSON_AddStringToObject(json, "ending", endings[p->ending]);
    cJSON_AddNumberToObject(json, "code", p->code);
    cJSON_AddNumberToObject(json, "seconds", p->seconds);
    cJSON_AddBoolToObject(json, "complete", p->complete);
    cJSON_AddNumberToObject(json, "strange", (double)p->strange);
    cJSON_AddStringToObject(json, "said", p->said);
    cJSON *grades = cJSON_AddArrayToObject(json, "grades");
    for (size_t i = 0; i < p->count; i++) {
        cJSON_AddItemToArray(grades, grade_to_json(&p->grades[i]));
    }
    return json;
}

static cJSON *lab_to_json(const struct lab_run *lab) {
    cJSON *json = cJSON_CreateObject();
    cJSON_AddStringToObject(json, "lab", lab->lab->name);
    cJSON_AddStringToObject(json, "digest", lab->digest);
    cJSON_AddStringToObject(json, "time", lab->time);
    cJSON_AddBoolToObject(json, "starter", lab->starter);
    for (int part = 0; part < PARTS; part++) {
        cJSON_AddItemToObject(json, part_name((enum part)part),
                              program_to_json(&lab->programs[part]));
    }
    return json;
}

cJSON *run_to_json(const struct run *run) {
    cJSON *json = cJSON_CreateObject();
    cJSON_AddNumberToObject(json, "schema", RUN_SCHEMA);
    cJSON_AddStringToObject(json, "subject", run->subject);
    cJSON_AddStringToObject(json, "commit", run->commit);
    if (run->not_held[0] != '\0') {
        cJSON_AddStringToObject(json, "not_held", run->not_held);
    }
    if (run->warmups.count > 0) {
        cJSON *warmups = cJSON_AddObjectToObject(json, "warmups");
        cJSON_AddNumberToObject(warmups, "done", run->warmups.done);
        cJSON_AddNumberToObject(warmups, "count", run->warmups.count);
        cJSON_AddStringToObject(warmups, "digest", run->warmups.digest);
    }
    cJSON *labs = cJSON_AddArrayToObject(json, "labs");
    for (size_t i = 0; i < LAB_COUNT; i++) {
        if (run->labs[i].lab != NULL) {
            cJSON_AddItemToArray(labs, lab_to_json(&run->labs[i]));
        }
    }
    return json;
}

static enum status program_from_json(struct program *p, const cJSON *json, struct error *error) {
    const cJSON *item;
    int ending = index_of(string_of(json, "ending"), endings, ENDINGS);
    if (ending == ENDINGS) {
        return error_set(error, STATUS_BAD_FORMAT, "no 'ending' that is known");
    }
    double code = number_of(json, "code");
    double strange = number_of(json, "strange");
    p->ending = (enum ending)ending;
    p->code = code >= -1e6 && code <= 1e6 ? (int)code : -1;
    p->strange = strange >= 0.0 && strange <= 1e9 ? (size_t)strange : 1;
    p->seconds = number_of(json, "seconds");
    p->complete = is_true(json, "complete");
    text_clean(p->said, sizeof p->said, string_of(json, "said"), false);
    cJSON_ArrayForEach(item, cJSON_GetObjectItemCaseSensitive(json, "grades")) {
        struct grade grade;
        if (!grade_from_json(&grade, item)) {
            return error_set(error, STATUS_BAD_FORMAT, "a grade without test or verdict");
        }
        TRY(add_grade(p, &grade, error));
    }
    return STATUS_OK;
}

static enum status lab_from_json(struct run *run, const cJSON *json, struct error *error) {
    const struct lab *lab;
    TRY(lab_find(string_of(json, "lab"), &lab, error));
    struct lab_run *out = &run->labs[lab - lab_at(0)];
    if (out->lab != NULL) {
        return error_set(error, STATUS_BAD_FORMAT, "lab %s comes twice", lab->name);
    }
    out->lab = lab;
    out->starter = is_true(json, "starter");
    text_clean(out->digest, sizeof out->digest, string_of(json, "digest"), false);
    text_clean(out->time, sizeof out->time, string_of(json, "time"), false);
    for (int part = 0; part < PARTS; part++) {
        const cJSON *program = cJSON_GetObjectItemCaseSensitive(json, part_name((enum part)part));
        TRY(program_from_json(&out->programs[part], program, error));
    }
    return STATUS_OK;
}

/* What makes no sense counts as not tried. */
static struct warmups_run warmups_from_json(const cJSON *json) {
    struct warmups_run warmups = {0};
    double done = number_of(json, "done"), count = number_of(json, "count");
    if (done >= 0.0 && done <= count && count <= MOST_GRADES) {
        warmups.done = (int)done;
        warmups.count = (int)count;
        text_clean(warmups.digest, sizeof warmups.digest, string_of(json, "digest"), false);
    }
    return warmups;
}

enum status run_from_json(struct run *run, const cJSON *json, struct error *error) {
    const cJSON *item;
    const cJSON *labs = cJSON_GetObjectItemCaseSensitive(json, "labs");
    *run = (struct run){0};
    if (number_of(json, "schema") != (double)RUN_SCHEMA || !cJSON_IsArray(labs)) {
        return error_set(error, STATUS_BAD_FORMAT, "no recorded run of schema %d", RUN_SCHEMA);
    }
    text_clean(run->subject, sizeof run->subject, string_of(json, "subject"), false);
    text_clean(run->commit, sizeof run->commit, string_of(json, "commit"), false);
    text_clean(run->not_held, sizeof run->not_held, string_of(json, "not_held"), false);
    run->warmups = warmups_from_json(cJSON_GetObjectItemCaseSensitive(json, "warmups"));
    cJSON_ArrayForEach(item, labs) {
        enum status status = lab_from_json(run, item, error);
        if (status != STATUS_OK) {
            run_free(run);
            *run = (struct run){0};
            return status;
        }
    }
    return STATUS_OK;
}

enum status run_load(struct run *run, const char *path, struct error *error) {
    char *text;
    size_t size;
    *run = (struct run){0};
    TRY(file_read(path, MOST_BYTES, &text, &size, error));
    cJSON *json = cJSON_ParseWithLength(text, size);
    free(text);
    enum status status = json == NULL ? error_set(error, STATUS_BAD_FORMAT, "not JSON")
                                      : run_from_json(run, json, error);
    cJSON_Delete(json);
    return status == STATUS_OK ? STATUS_OK : error_prefix(error, status, path);
}
