#include "common/texts/text_labels.h"

#include <search.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/grow.h"
#include "common/base/utf8.h"

struct text_label {
    int32_t id;
    char name[TEXT_LABEL_BYTES];
};

static int by_name(const void *a, const void *b) {
    const struct text_label *x = a, *y = b;
    return strcmp(x->name, y->name);
}

static int32_t find_exactly(const struct text_labels *labels, const char *name) {
    struct text_label key = {.id = -1};
    snprintf(key.name, sizeof key.name, "%s", name);
    /* tfind() returns the address of a node, which begins with the address of the entry. */
    struct text_label *const *found = tfind(&key, (void *const *)&labels->tree, by_name);
    return found != NULL && strlen(name) < sizeof key.name ? (*found)->id : -1;
}

int32_t text_labels_find(const struct text_labels *labels, const char *name) {
    char unnamed[TEXT_LABEL_BYTES];
    int32_t id = find_exactly(labels, name);
    int length = snprintf(unnamed, sizeof unnamed, "LABEL_%s", name);
    bool fits = length > 0 && (size_t)length < sizeof unnamed;
    return id < 0 && labels->closed && fits ? find_exactly(labels, unnamed) : id;
}

/* ---- Adding ---- */

static enum status check_name(const char *name, size_t length, struct error *error) {
    bool blank = true;
    TRY(utf8_check(name, length, error));
    for (size_t i = 0; i < length; i++) {
        if ((unsigned char)name[i] < ' ' || name[i] == 0x7f) {
            return error_set(error, STATUS_BAD_FORMAT,
                             "the label has a control character (0x%02X) at byte %zu",
                             (unsigned)name[i], i);
        }
        blank = blank && name[i] == ' ';
    }
    if (blank) {
        return error_set(error, STATUS_BAD_FORMAT, "there is no label");
    }
    if (length >= TEXT_LABEL_BYTES) {
        return error_set(error, STATUS_TOO_LONG,
                         "a label of %zu bytes, at most %d are allowed: is this the column of the "
                         "labels?",
                         length, TEXT_LABEL_BYTES - 1);
    }
    return STATUS_OK;
}

static enum status out_of_memory(struct error *error) {
    return error_set(error, STATUS_OUT_OF_MEMORY, "out of memory for the labels");
}

static enum status append(struct text_labels *labels, const char *name, struct error *error) {
    size_t count = labels->count;
    if (!array_grow(&labels->names, &labels->name_capacity, count + 1, sizeof *labels->names) ||
        !array_grow(&labels->entries, &labels->entry_capacity, count + 1,
                    sizeof *labels->entries)) {
        return out_of_memory(error);
    }
    struct text_label *entry = malloc(sizeof *entry);
    if (entry == NULL) {
        return out_of_memory(error);
    }
    *entry = (struct text_label){.id = (int32_t)count};
    snprintf(entry->name, sizeof entry->name, "%s", name);
    if (tsearch(entry, &labels->tree, by_name) == NULL) {
        free(entry);
        return out_of_memory(error);
    }
    labels->entries[count] = entry;
    labels->names[count] = entry->name;
    labels->count++;
    return STATUS_OK;
}

static enum status refuse_unknown(const struct text_labels *labels, const char *name,
                                  struct error *error) {
    char list[300];
    return error_set(error, STATUS_MISMATCH,
                     "the model does not know the label '%s'; its labels are %s", name,
                     text_labels_list(labels, list, sizeof list));
}

enum status text_labels_take(struct text_labels *labels, const char *name, size_t length,
                             int32_t *id, struct error *error) {
    TRY(check_name(name, length, error));
    *id = text_labels_find(labels, name);
    if (*id >= 0) {
        return STATUS_OK;
    }
    if (labels->closed) {
        return refuse_unknown(labels, name, error);
    }
    if (labels->count == TEXT_LABELS_MOST) {
        return error_set(error, STATUS_TOO_LONG,
                         "more than %d different labels: is this the column of the labels?",
                         TEXT_LABELS_MOST);
    }
    *id = (int32_t)labels->count;
    return append(labels, name, error);
}

/* ---- Sorting ---- */

/* Whether a name is a whole number of at most 18 digits. */
static bool is_number(const char *name) {
    const char *digits = name + (name[0] == '-');
    size_t length = strspn(digits, "0123456789");
    return length > 0 && length <= 18 && digits[length] == '\0';
}

static int compare_bytes(const void *a, const void *b) {
    return by_name(*(struct text_label *const *)a, *(struct text_label *const *)b);
}

static int compare_values(const void *a, const void *b) {
    long long x = strtoll((*(struct text_label *const *)a)->name, NULL, 10);
    long long y = strtoll((*(struct text_label *const *)b)->name, NULL, 10);
    return x != y ? (x > y) - (x < y) : compare_bytes(a, b); /* "1" and "01" */
}

void text_labels_sort(struct text_labels *labels, int32_t *ids) {
    bool numbers = true;
    for (size_t i = 0; i < labels->count; i++) {
        numbers = numbers && is_number(labels->names[i]);
    }
    if (labels->count > 0) {
        qsort(labels->entries, labels->count, sizeof *labels->entries,
              numbers ? compare_values : compare_bytes);
    }
    for (size_t i = 0; i < labels->count; i++) {
        struct text_label *entry = labels->entries[i];
        ids[entry->id] = (int32_t)i;
        entry->id = (int32_t)i;
        labels->names[i] = entry->name;
    }
}

/* ---- The rest ---- */

const char *text_labels_list(const struct text_labels *labels, char *text, size_t size) {
    enum { MORE = 24 /* bytes for " and 4096 more" */ };
    size_t used = 0;
    text[0] = '\0';
    for (size_t i = 0; i < labels->count; i++) {
        if (used + strlen(labels->names[i]) + 4 + MORE > size) {
            snprintf(text + used, size - used, " and %zu more", labels->count - i);
            break;
        }
        used += (size_t)snprintf(text + used, size - used, "%s'%s'", i > 0 ? ", " : "",
                                 labels->names[i]);
    }
    return text;
}

void text_labels_free(struct text_labels *labels) {
    tdestroy(labels->tree, free);
    free(labels->entries);
    free(labels->names);
    *labels = (struct text_labels){0};
}
