/* results.csv and results.json: for the teacher, with names. */
#include <cjson/cJSON.h>
#include <stdio.h>
#include <string.h>

#include "grader/class/pages/board.h"

/* A spreadsheet takes what begins so for a formula. */
static void cell(FILE *out, const char *text) {
    fputc('"', out);
    if (text[0] != '\0' && strchr("=+-@", text[0]) != NULL) {
        fputc('\'', out);
    }
    for (; *text != '\0'; text++) {
        fputs(*text == '"' ? "\"\"" : (const char[]){*text, '\0'}, out);
    }
    fputc('"', out);
}

static const char *why_of(const struct progress_of *of) {
    return of->task.refused[0] != '\0' ? of->task.refused : of->why;
}

static void write_row(FILE *out, const struct board *b, const struct board_entry *e,
                      const struct progress_of *of) {
    fprintf(out, "%06u,", of->task.id);
    cell(out, of->task.name);
    fputc(',', out);
    cell(out, e->shown);
    fprintf(out, ",%s,%d,%d,", board_state(of->state), e->points, b->most);
    for (size_t i = 0; i < LAB_COUNT; i++) {
        const struct board_lab *l = &e->labs[i];
        if (b->chosen[i] && l->handed_in) {
            fprintf(out, "%s,%d,%.4g,", state_name(l->state), l->points, l->speedup);
        } else if (b->chosen[i]) {
            fprintf(out, ",0,,");
        }
    }
    cell(out, e->gpu);
    fprintf(out, ",%.1f,", e->seconds);
    cell(out, why_of(of));
    fputs("\r\n", out);
}

void board_write_csv(FILE *out, const struct board *b, const struct collection *c) {
    fprintf(out, "id,name,shown,state,points,of,");
    for (size_t i = 0; i < LAB_COUNT; i++) {
        const char *lab = lab_at(i)->name;
        if (b->chosen[i]) {
            fprintf(out, "%s state,%s points,%s speedup,", lab, lab, lab);
        }
    }
    fprintf(out, "gpu,seconds,why\r\n");
    for (size_t i = 0; i < c->count; i++) {
        write_row(out, b, &b->entries[i], &c->tasks[i]);
    }
}

static cJSON *labs_to_json(const struct board *b, const struct board_entry *e) {
    cJSON *labs = cJSON_CreateObject();
    for (size_t i = 0; i < LAB_COUNT; i++) {
        const struct board_lab *l = &e->labs[i];
        if (b->chosen[i] && l->handed_in) {
            cJSON *one = cJSON_AddObjectToObject(labs, lab_at(i)->name);
            cJSON_AddStringToObject(one, "state", state_name(l->state));
            cJSON_AddNumberToObject(one, "points", l->points);
            cJSON_AddNumberToObject(one, "speedup", l->speedup);
        }
    }
    return labs;
}

static cJSON *entry_to_json(const struct board *b, const struct board_entry *e,
                            const struct progress_of *of) {
    char page[64];
    cJSON *json = cJSON_CreateObject();
    snprintf(page, sizeof page, "submissions/%06u.html", e->number);
    cJSON_AddNumberToObject(json, "id", of->task.id);
    cJSON_AddStringToObject(json, "name", of->task.name);
    cJSON_AddStringToObject(json, "shown", e->shown);
    cJSON_AddStringToObject(json, "state", board_state(of->state));
    cJSON_AddNumberToObject(json, "points", e->points);
    cJSON_AddItemToObject(json, "labs", labs_to_json(b, e));
    cJSON_AddStringToObject(json, "gpu", e->gpu);
    cJSON_AddNumberToObject(json, "seconds", e->seconds);
    cJSON_AddNumberToObject(json, "overhead_s", e->overhead_s);
    cJSON_AddStringToObject(json, "why", why_of(of));
    cJSON_AddStringToObject(json, "page", page);
    return json;
}

void board_write_json(FILE *out, const struct board *b, const struct collection *c) {
    fprintf(out, "{\"schema\":1,\"of\":%d,\"submissions\":[", b->most);
    for (size_t i = 0; i < c->count; i++) {
        cJSON *json = entry_to_json(b, &b->entries[i], &c->tasks[i]);
        char *text = cJSON_PrintUnformatted(json);
        fprintf(out, "%s\n%s", i > 0 ? "," : "", text != NULL ? text : "null");
        cJSON_free(text);
        cJSON_Delete(json);
    }
    fprintf(out, "\n]}\n");
}
