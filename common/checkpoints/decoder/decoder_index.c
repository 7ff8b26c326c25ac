/* Parses model.safetensors.index.json. */
#include <cjson/cJSON.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/json_object.h"
#include "common/checkpoints/decoder/decoder_shards.h"

/* A path inside the folder is neither absolute nor contains "..". */
static bool is_inside_folder(const char *path) {
    if (path[0] == '\0' || path[0] == '/') {
        return false;
    }
    for (const char *part = path; part != NULL; part = strchr(part, '/')) {
        part += *part == '/';
        if (strncmp(part, "..", 2) == 0 && (part[2] == '/' || part[2] == '\0')) {
            return false;
        }
    }
    return true;
}

static enum status check_entry(const cJSON *item, struct error *error) {
    const char *file = cJSON_GetStringValue(item);
    int shown = json_shown(item->string);
    if (file == NULL) {
        return error_set(error, STATUS_BAD_FORMAT,
                         "\"weight_map\": the file of \"%.*s\" is not a string", shown,
                         item->string);
    }
    if (!is_inside_folder(file)) {
        return error_set(error, STATUS_BAD_FORMAT,
                         "\"weight_map\": \"%.*s\" is in \"%.*s\", which is not inside the folder",
                         shown, item->string, json_shown(file), file);
    }
    return STATUS_OK;
}

static enum status measure(const cJSON *map, size_t *count, size_t *bytes, struct error *error) {
    *count = *bytes = 0;
    if (!cJSON_IsObject(map)) {
        return error_set(error, STATUS_BAD_FORMAT, "\"weight_map\" is missing or not an object");
    }
    const cJSON *item;
    cJSON_ArrayForEach(item, map) {
        TRY(check_entry(item, error));
        (*count)++;
        *bytes += strlen(item->string) + strlen(item->valuestring) + 2; /* within the text's size */
    }
    if (*count == 0) {
        return error_set(error, STATUS_BAD_FORMAT, "\"weight_map\" is empty");
    }
    return STATUS_OK;
}

static int by_text(const void *a, const void *b) {
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* Copies `text` to *free_text, which advances. */
static const char *copy_text(char **free_text, const char *text) {
    const char *copy = *free_text;
    *free_text = stpcpy(*free_text, text) + 1;
    return copy;
}

/* Copies the names of tensors and files; sorts the files and keeps each once. */
static void fill(struct decoder_index *index, const cJSON *map) {
    char *free_text = index->text;
    const cJSON *item;
    cJSON_ArrayForEach(item, map) {
        index->entries[index->count].tensor = copy_text(&free_text, item->string);
        index->files[index->count] = copy_text(&free_text, item->valuestring);
        index->count++;
    }
    qsort(index->files, index->count, sizeof *index->files, by_text);
    for (size_t i = 0; i < index->count; i++) {
        if (i == 0 || strcmp(index->files[i], index->files[index->file_count - 1]) != 0) {
            index->files[index->file_count++] = index->files[i];
        }
    }
    size_t i = 0;
    cJSON_ArrayForEach(item, map) {
        const char *file = item->valuestring;
        const char **found =
            bsearch(&file, index->files, index->file_count, sizeof *index->files, by_text);
        index->entries[i++].file = (size_t)(found - index->files);
    }
}

static enum status read_map(struct decoder_index *index, const cJSON *map, struct error *error) {
    size_t count, bytes;
    TRY(measure(map, &count, &bytes, error));
    index->files = calloc(count, sizeof *index->files);
    index->entries = calloc(count, sizeof *index->entries);
    index->text = malloc(bytes);
    if (index->files == NULL || index->entries == NULL || index->text == NULL) {
        decoder_index_free(index);
        return error_set(error, STATUS_OUT_OF_MEMORY, "out of memory for %zu tensors", count);
    }
    fill(index, map);
    return STATUS_OK;
}

enum status decoder_index_parse(struct decoder_index *index, const char *json, size_t size,
                                struct error *error) {
    *index = (struct decoder_index){0};
    cJSON *object;
    TRY(json_object_parse(&object, json, size, error));
    enum status status = read_map(index, json_member(object, "weight_map"), error);
    cJSON_Delete(object);
    return status;
}

void decoder_index_free(struct decoder_index *index) {
    free(index->files);
    free(index->entries);
    free(index->text);
    *index = (struct decoder_index){0};
}
