#include "common/checkpoints/bert/bert_checkpoint.h"

#include <cjson/cJSON.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/json_object.h"

static void keep(struct bert_label *label, const char *name) {
    size_t length = strlen(name);
    if (length >= sizeof label->name) {
        length = sizeof label->name - 1;
        while (length > 0 && ((unsigned char)name[length] & 0xc0) == 0x80) {
            length--; /* do not cut inside a character */
        }
    }
    memcpy(label->name, name, length);
    label->name[length] = '\0';
    for (char *c = label->name; *c != '\0'; c++) {
        if ((unsigned char)*c < ' ' || *c == 0x7f) {
            *c = '?';
        }
    }
}

static void keep_all(const cJSON *id2label, struct bert_label *names, size_t labels) {
    for (size_t i = 0; i < labels; i++) {
        char key[32];
        snprintf(key, sizeof key, "%zu", i);
        const char *name = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(id2label, key));
        if (name != NULL && name[0] != '\0') {
            keep(&names[i], name);
        } else {
            snprintf(names[i].name, sizeof names[i].name, "LABEL_%zu", i);
        }
    }
}

enum status bert_labels_parse(const char *json, size_t size, size_t labels,
                              struct bert_label **names, struct error *error) {
    cJSON *object = NULL;
    *names = NULL;
    if (json != NULL) {
        TRY(json_object_parse(&object, json, size, error));
    }
    *names = calloc(labels > 0 ? labels : 1, sizeof **names);
    if (*names != NULL) {
        keep_all(cJSON_GetObjectItemCaseSensitive(object, "id2label"), *names, labels);
    }
    cJSON_Delete(object);
    return *names != NULL ? STATUS_OK
                          : error_set(error, STATUS_OUT_OF_MEMORY, "out of memory for the labels");
}
