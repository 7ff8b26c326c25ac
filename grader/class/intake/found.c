#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "common/base/utf8.h"
#include "grader/class/intake/intake.h"

static const char *last_of(const char *path) {
    const char *slash = strrchr(path, '/');
    return slash != NULL ? slash + 1 : path;
}

/* LAB/FILE at the end, but not solutions/LAB/FILE. */
static bool is_placed(const char *path, const struct lab *lab) {
    char place[200], elsewhere[220];
    snprintf(place, sizeof place, "%s/%s", lab->name, lab->file);
    snprintf(elsewhere, sizeof elsewhere, "solutions/%s", place);
    size_t length = strlen(path), tail = strlen(place), other = strlen(elsewhere);
    bool solved = length >= other && strcmp(path + length - other, elsewhere) == 0;
    return !solved && length >= tail && strcmp(path + length - tail, place) == 0 &&
           (length == tail || path[length - tail - 1] == '/');
}

static enum status check(const char *path, enum found_kind kind, uint64_t bytes,
                         struct error *error) {
    if (kind == FOUND_LINK) {
        return error_set(error, STATUS_INVALID_ARGUMENT,
                         "%.200s is a link, and links are not followed", path);
    }
    if (kind == FOUND_SECRET) {
        return error_set(error, STATUS_INVALID_ARGUMENT, "%.200s is encrypted", path);
    }
    if (kind == FOUND_OTHER) {
        return error_set(error, STATUS_INVALID_ARGUMENT, "%.200s is no plain file", path);
    }
    if (bytes > MOST_SOURCE) {
        return error_set(error, STATUS_INVALID_ARGUMENT, "%.200s has %llu bytes, at most %d count",
                         path, (unsigned long long)bytes, MOST_SOURCE);
    }
    return STATUS_OK;
}

static enum status take(struct found *found, size_t lab, const char *path, found_read *read,
                        void *source, struct error *error) {
    char *text = NULL;
    size_t size = 0;
    if (read(source, &text, &size, error) != STATUS_OK) {
        free(text);
        return STATUS_INVALID_ARGUMENT;
    }
    free(found->labs[lab].text);
    found->labs[lab].text = text;
    found->labs[lab].size = size;
    found->labs[lab].placed = is_placed(path, lab_at(lab));
    snprintf(found->labs[lab].path, sizeof found->labs[lab].path, "%s", path);
    return STATUS_OK;
}

void found_almost(struct found *found, const char *path) {
    static const char *const packed[] = {".zip", ".tar", ".gz", ".tgz",
                                         ".xz",  ".bz2", ".7z", ".rar"};
    const char *name = last_of(path), *ending = strrchr(name, '.');
    for (size_t i = 0; i < sizeof packed / sizeof *packed && ending != NULL; i++) {
        if (strcasecmp(ending, packed[i]) == 0) {
            snprintf(found->almost, sizeof found->almost, "%.200s is not unpacked", path);
        }
    }
    for (size_t i = 0; i < LAB_COUNT; i++) {
        const char *file = lab_at(i)->file;
        if (found->chosen[i] && strcasecmp(name, file) == 0 && strcmp(name, file) != 0) {
            snprintf(found->almost, sizeof found->almost, "%.200s differs in case", path);
        }
    }
}

enum status found_add(struct found *found, const char *path, enum found_kind kind, uint64_t bytes,
                      found_read *read, void *source, struct error *error) {
    found_almost(found, path);
    for (size_t i = 0; i < LAB_COUNT; i++) {
        const struct lab *lab = lab_at(i);
        if (!found->chosen[i] || strcmp(last_of(path), lab->file) != 0) {
            continue;
        }
        bool placed = is_placed(path, lab), known = found->labs[i].text != NULL;
        if (known && found->labs[i].placed && !placed) {
            continue; /* another of that name, elsewhere */
        }
        if (known && found->labs[i].placed == placed) {
            return error_set(error, STATUS_INVALID_ARGUMENT,
                             "two files may be meant: %.180s and %.180s", found->labs[i].path,
                             path);
        }
        TRY(check(path, kind, bytes, error));
        TRY(take(found, i, path, read, source, error));
    }
    return STATUS_OK;
}

void found_free(struct found *found) {
    for (size_t i = 0; i < LAB_COUNT; i++) {
        free(found->labs[i].text);
        found->labs[i].text = NULL;
    }
}
