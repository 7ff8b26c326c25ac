#include "grader/report/memory.h"

#include <cjson/cJSON.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/base/file.h"

enum { MOST_BROKEN = 100, MOST_BYTES = 64 << 20 };

/* Name of the member of the file's JSON; it signs the others, as cJSON_PrintUnformatted() has them.
 */
static const char signature[] = "signature";

enum status set_aside(const char *path, struct error *error) {
    char why[256], aside[1300];
    snprintf(why, sizeof why, "%.200s", error->message);
    for (int i = 1; i < MOST_BROKEN; i++) {
        snprintf(aside, sizeof aside, i == 1 ? "%s.broken" : "%s.broken.%d", path, i);
        /* Unlike rename(), link() never replaces a file. */
        if (link(path, aside) == 0 && unlink(path) == 0) {
            *error = (struct error){0};
            (void)error_set(error, STATUS_BAD_FORMAT, "%s; begun anew, the old file is %s", why,
                            aside);
            return STATUS_OK;
        }
        if (errno != EEXIST) {
            break;
        }
    }
    *error = (struct error){0};
    return error_set(error, STATUS_IO, "%s, and it cannot be moved away", why);
}

/* Takes the signature out of the file's JSON. @return whether it is that of the rest by this key */
static bool take_signature(cJSON *json, const struct signature_key *key) {
    char right[SHA1_TEXT] = "";
    cJSON *item = cJSON_DetachItemFromObjectCaseSensitive(json, signature);
    char *text = cJSON_PrintUnformatted(json);
    if (text != NULL) {
        signature_of(key, text, strlen(text), right);
    }
    bool same = cJSON_IsString(item) && signature_equal(right, item->valuestring);
    free(text);
    cJSON_Delete(item);
    return same;
}

static enum status load(struct run *memory, const char *path, const struct signature_key *key,
                        struct error *error) {
    char *text;
    size_t size;
    TRY(file_read(path, MOST_BYTES, &text, &size, error));
    cJSON *json = cJSON_ParseWithLength(text, size);
    free(text);
    if (json == NULL) {
        return error_set(error, STATUS_BAD_FORMAT, "%s: not JSON", path);
    }
    bool ours = take_signature(json, key);
    enum status status = run_from_json(memory, json, error);
    if (status != STATUS_OK) {
        status = error_prefix(error, status, path);
    } else if (!ours) {
        run_free(memory);
        *memory = (struct run){0};
        (void)error_set(error, STATUS_MISMATCH,
                        "%s was not signed with %s: its labs are graded again", path, key->path);
    }
    cJSON_Delete(json);
    return status;
}

enum status memory_save(const struct run *memory, const char *path, const struct signature_key *key,
                        struct error *error) {
    char right[SHA1_TEXT];
    cJSON *json = run_to_json(memory);
    char *text = cJSON_PrintUnformatted(json);
    if (text != NULL) {
        signature_of(key, text, strlen(text), right);
        cJSON_AddStringToObject(json, signature, right);
        free(text);
        text = cJSON_PrintUnformatted(json);
    }
    cJSON_Delete(json);
    if (text == NULL) {
        return error_set(error, STATUS_OUT_OF_MEMORY, "%s: out of memory", path);
    }
    enum status status = file_write(path, text, strlen(text), error);
    free(text);
    return status;
}

enum status memory_load(struct run *memory, const char *path, const struct signature_key *key,
                        struct error *error) {
    *memory = (struct run){0};
    if (access(path, F_OK) != 0) {
        return STATUS_OK;
    }
    enum status status = load(memory, path, key, error);
    if (status == STATUS_OK || status == STATUS_OUT_OF_MEMORY || status == STATUS_IO) {
        return status;
    }
    return set_aside(path, error);
}

bool memory_wants(const struct lab_run *lab) {
    return lab->digest[0] != '\0' && program_is_sound(&lab->programs[PART_PARITY]) &&
           program_is_sound(&lab->programs[PART_SPEEDUP]);
}

void memory_keep(struct run *memory, const struct lab_run *lab) {
    struct lab_run *place = &memory->labs[lab->lab - lab_at(0)];
    for (int part = 0; part < PARTS; part++) {
        program_free(&place->programs[part]);
    }
    *place = *lab;
}

const struct lab_run *memory_find(const struct run *memory, const struct lab *lab,
                                  const char *digest) {
    const struct lab_run *kept = &memory->labs[lab - lab_at(0)];
    bool same = kept->lab != NULL && digest[0] != '\0' && strcmp(kept->digest, digest) == 0;
    return same && memory_wants(kept) ? kept : NULL;
}

enum status lab_digest(const char *const *files, size_t count, char digest[SHA1_TEXT],
                       struct error *error) {
    struct sha1 sha1 = sha1_begin();
    digest[0] = '\0';
    for (size_t i = 0; i < count; i++) {
        TRY(sha1_add_file(&sha1, files[i], error));
    }
    sha1_end(&sha1, digest);
    return STATUS_OK;
}
