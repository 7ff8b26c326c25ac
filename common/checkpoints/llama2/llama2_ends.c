#include "common/checkpoints/llama2/llama2_ends.h"

#include <cjson/cJSON.h>
#include <stdlib.h>

#include "common/base/file.h"
#include "common/base/folder.h"
#include "common/base/json_object.h"

enum { FILE_LIMIT = 16 << 20 };

bool llama2_ends_has(const struct llama2_ends *ends, int32_t token) {
    for (size_t i = 0; i < ends->count; i++) {
        if (ends->ids[i] == token) {
            return true;
        }
    }
    return false;
}

void llama2_ends_add(struct llama2_ends *ends, int32_t token) {
    if (token >= 0 && ends->count < LLAMA2_MOST_ENDS && !llama2_ends_has(ends, token)) {
        ends->ids[ends->count++] = token;
    }
}

static enum status add(struct llama2_ends *ends, const cJSON *item, struct error *error) {
    size_t id;
    if (!json_size(item, &id) || id > INT32_MAX) {
        return error_set(error, STATUS_BAD_FORMAT,
                         "\"eos_token_id\" is neither a token nor a list of tokens");
    }
    llama2_ends_add(ends, (int32_t)id);
    return STATUS_OK;
}

static enum status read_ends(struct llama2_ends *ends, const cJSON *object, struct error *error) {
    const cJSON *item = json_member(object, "eos_token_id"), *each;
    if (item == NULL || !cJSON_IsArray(item)) {
        return item == NULL ? STATUS_OK : add(ends, item, error);
    }
    if (cJSON_GetArraySize(item) > LLAMA2_MOST_ENDS) {
        return error_set(error, STATUS_TOO_LONG,
                         "\"eos_token_id\" has %d tokens, at most %d are read",
                         cJSON_GetArraySize(item), LLAMA2_MOST_ENDS);
    }
    cJSON_ArrayForEach(each, item) {
        TRY(add(ends, each, error));
    }
    return STATUS_OK;
}

enum status llama2_ends_parse(struct llama2_ends *ends, const char *json, size_t size,
                              struct error *error) {
    *ends = (struct llama2_ends){.count = 0};
    cJSON *object;
    TRY(json_object_parse(&object, json, size, error));
    enum status status = read_ends(ends, object, error);
    cJSON_Delete(object);
    return status;
}

enum status llama2_ends_open(struct llama2_ends *ends, const char *folder, struct error *error) {
    static const char *const names[] = {"generation_config.json", "config.json"};
    *ends = (struct llama2_ends){.count = 0};
    for (size_t i = 0; i < 2 && ends->count == 0; i++) {
        char path[FOLDER_PATH_BYTES], *text;
        size_t size;
        TRY(folder_join(path, folder, names[i], "checkpoint", error));
        if (!path_exists(path)) {
            continue;
        }
        TRY(file_read(path, FILE_LIMIT, &text, &size, error));
        enum status status = llama2_ends_parse(ends, text, size, error);
        free(text);
        if (status != STATUS_OK) {
            return error_prefix(error, status, path);
        }
    }
    return STATUS_OK;
}
