#include <cjson/cJSON.h>
#include <stdlib.h>

#include "grader/report/format/format.h"

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
    char *text = cJSON_Print(json);
    cJSON_Delete(json);
    fprintf(out, "%s\n", text != NULL ? text : "");
    free(text);
}
