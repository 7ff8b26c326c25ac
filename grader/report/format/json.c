/* What programs read: the run itself, and Gradescope's results. */
#include <cjson/cJSON.h>
#include <stdlib.h>
#include <string.h>

#include "grader/report/format/format.h"

static void print_json(FILE *out, cJSON *json) {
    char *text = cJSON_Print(json);
    cJSON_Delete(json);
    fprintf(out, "%s\n", text != NULL ? text : "");
    free(text);
}

static cJSON *row_to_json(const struct row_score *r) {
    cJSON *json = cJSON_CreateObject();
    cJSON_AddStringToObject(json, "measure", r->row->measure);
    cJSON_AddNumberToObject(json, "points", r->points);
    cJSON_AddNumberToObject(json, "most", r->row->points);
    cJSON_AddNumberToObject(json, "pass", r->steps.pass);
    cJSON_AddNumberToObject(json, "good", r->steps.good);
    cJSON_AddNumberToObject(json, "gold", r->steps.gold);
    return json;
}

static void add_score(cJSON *json, const struct lab_score *s) {
    cJSON_AddStringToObject(json, "state", state_name(s->state));
    cJSON_AddNumberToObject(json, "points", s->points);
    cJSON_AddNumberToObject(json, "most", LAB_POINTS);
    cJSON_AddNumberToObject(json, "parity_points", s->parity_points);
    cJSON *rows = cJSON_AddArrayToObject(json, "rows");
    for (size_t i = 0; i < s->count; i++) {
        cJSON_AddItemToArray(rows, row_to_json(&s->rows[i]));
    }
    cJSON_AddStringToObject(json, "device", s->device);
    cJSON_AddStringToObject(json, "next", s->next);
    cJSON_AddStringToObject(json, "why", s->why);
    cJSON_AddStringToObject(json, "explanation", s->explanation);
}

void format_json(FILE *out, const struct run *run, const struct run_score *score) {
    cJSON *json = run_to_json(run);
    cJSON *item = cJSON_GetArrayItem(cJSON_GetObjectItemCaseSensitive(json, "labs"), 0);
    for (size_t i = 0; i < LAB_COUNT; i++) {
        if (run->labs[i].lab != NULL) {
            add_score(item, &score->labs[i]);
            item = item->next;
        }
    }
    cJSON_AddNumberToObject(json, "points", score->points);
    cJSON_AddNumberToObject(json, "most", score->most);
    print_json(out, json);
}

/* ---- Gradescope ---- */

/*
 * results.json, as Gradescope documents it for autograders: the score, and tests with score,
 * max_score, status, name and output. Parity and each row of the thresholds are one test.
 */

static void add_test(cJSON *tests, const struct lab *lab, const char *name, bool passed, int points,
                     int most, const char *output) {
    char text[128];
    cJSON *test = cJSON_CreateObject();
    snprintf(text, sizeof text, "%s %s", lab->name, name);
    cJSON_AddStringToObject(test, "name", text);
    cJSON_AddStringToObject(test, "name_format", "text");
    cJSON_AddNumberToObject(test, "score", points);
    cJSON_AddNumberToObject(test, "max_score", most);
    cJSON_AddStringToObject(test, "status", passed ? "passed" : "failed");
    cJSON_AddStringToObject(test, "output", output);
    cJSON_AddStringToObject(test, "output_format", "text");
    cJSON_AddStringToObject(test, "visibility", "visible");
    cJSON_AddItemToArray(tests, test);
}

/* What a row's test says: figures, the reason it is red, the steps above. */
static void describe_row(char *text, size_t size, const struct row_score *r,
                         const struct lab_score *s) {
    FILE *out = fmemopen(text, size, "w");
    if (out == NULL) {
        text[0] = '\0';
        return;
    }
    if (r->grade == NULL) {
        fprintf(out, "No result. %s", s->why);
    } else if (r->grade->timed) {
        fprintf(out, "%s: %.2fx", s->device, r->grade->speedup);
        if (r->grade->limit[0] != '\0') {
            fprintf(out, ", %.3g%% of %s", 100.0 * r->grade->share, r->grade->limit);
        }
        fprintf(out, "; passes from %.3gx on", r->steps.pass);
        if (r->steps.good > 0.0) {
            fprintf(out, ", good %.3gx, gold %.3gx", r->steps.good, r->steps.gold);
        }
        fprintf(out, " (%s).", r->row->what);
    } else {
        fprintf(out, "%s.", r->row->what);
    }
    if (r->grade != NULL && r->grade->message[0] != '\0') {
        fprintf(out, "\n%.1000s", r->grade->message);
    }
    if (s->explanation[0] != '\0' && strcmp(r->row->measure, "end_to_end") == 0) {
        fprintf(out, "\n%s", s->explanation);
    }
    fclose(out);
}

static void add_lab(cJSON *tests, const struct lab_run *lab, const struct lab_score *s) {
    char output[2600], clean[2600], head[960];
    const char *parity = s->parity_points > 0 ? "All results are right." : s->why;
    if (s->state == STATE_NOT_BEGUN) {
        parity = "This is the starter as it was handed out.";
    }
    snprintf(head, sizeof head, "%s\nNext: %s", parity, s->next);
    add_test(tests, lab->lab, "parity", s->parity_points > 0, s->parity_points, PARITY_POINTS,
             head);
    for (size_t i = 0; i < s->count; i++) {
        const struct row_score *r = &s->rows[i];
        describe_row(output, sizeof output, r, s);
        text_clean(clean, sizeof clean, output, true); /* a cut may have split a character */
        add_test(tests, lab->lab, r->row->measure, r->step != STEP_NONE, r->points, r->row->points,
                 clean);
    }
}

static double seconds_of(const struct run *run) {
    double seconds = 0.0;
    for (size_t i = 0; i < LAB_COUNT; i++) {
        for (int part = 0; part < PARTS; part++) {
            seconds += run->labs[i].programs[part].seconds;
        }
    }
    return seconds;
}

void format_gradescope(FILE *out, const struct run *run, const struct run_score *score) {
    cJSON *json = cJSON_CreateObject();
    cJSON_AddNumberToObject(json, "score", score->points);
    cJSON_AddNumberToObject(json, "execution_time", (double)(long)(seconds_of(run) + 0.5));
    cJSON_AddStringToObject(json, "visibility", "visible");
    cJSON_AddStringToObject(json, "stdout_visibility", "visible");
    cJSON *tests = cJSON_AddArrayToObject(json, "tests");
    for (size_t i = 0; i < LAB_COUNT; i++) {
        if (run->labs[i].lab != NULL) {
            add_lab(tests, &run->labs[i], &score->labs[i]);
        }
    }
    print_json(out, json);
}
