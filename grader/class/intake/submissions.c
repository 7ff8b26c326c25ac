/* Which submissions there are, and whose. */
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>
#include <utf8proc.h>

#include "common/base/utf8.h"
#include "grader/class/intake/intake.h"
#include "grader/report/run.h"

static bool ends_with(const char *text, const char *ending) {
    size_t length = strlen(text), tail = strlen(ending);
    return length > tail && strcasecmp(text + length - tail, ending) == 0;
}

static void cut(char *text, size_t bytes) {
    text[strlen(text) - bytes] = '\0';
}

/* "anna" for anna.zip, anna.git, anna_sgemm.cu, anna.sgemm.cu and anna.cu. */
static void name_of(char *name, const char *entry, const bool chosen[LAB_COUNT]) {
    snprintf(name, TASK_NAME, "%s", entry);
    static const char *const endings[] = {".zip", ".git"};
    for (size_t i = 0; i < sizeof endings / sizeof *endings; i++) {
        if (ends_with(name, endings[i])) {
            cut(name, strlen(endings[i]));
            return;
        }
    }
    for (size_t i = 0; i < LAB_COUNT; i++) {
        const char *file = lab_at(i)->file;
        if (chosen[i] && ends_with(name, file) &&
            strchr("._- ", name[strlen(name) - strlen(file) - 1]) != NULL) {
            cut(name, strlen(file) + 1);
            return;
        }
    }
    if (ends_with(name, ".cu") || ends_with(name, ".c")) {
        *strrchr(name, '.') = '\0';
    }
}

static void refuse(struct submission *s, const char *why) {
    snprintf(s->refused, sizeof s->refused, "%s", why);
}

static enum status add(struct submissions *all, const char *entry, const bool chosen[LAB_COUNT],
                       struct error *error) {
    char shown[TASK_NAME];
    if (all->count >= MOST_TASKS) {
        return error_set(error, STATUS_TOO_LONG, "more than %d submissions", MOST_TASKS);
    }
    struct submission *grown = realloc(all->all, (all->count + 1) * sizeof *grown);
    if (grown == NULL) {
        return error_set(error, STATUS_OUT_OF_MEMORY, "out of memory");
    }
    all->all = grown;
    struct submission *s = &grown[all->count++];
    memset(s, 0, sizeof *s);
    snprintf(s->entry, sizeof s->entry, "%s", entry);
    name_of(shown, entry, chosen);
    text_clean(s->name, sizeof s->name, shown, false);
    if (utf8_check(entry, strlen(entry), NULL) != STATUS_OK) {
        refuse(s, "its name is not UTF-8: rename it");
    } else if (strcmp(s->name, shown) != 0) {
        refuse(s, "its name has control characters: rename it");
    }
    return STATUS_OK;
}

static int compare(const void *a, const void *b) {
    return strcmp(((const struct submission *)a)->entry, ((const struct submission *)b)->entry);
}

/* The name as it is compared: composed, without case. @return memory to free */
static char *folded(const char *name) {
    utf8proc_uint8_t *out = NULL;
    utf8proc_map((const utf8proc_uint8_t *)name, 0, &out,
                 UTF8PROC_NULLTERM | UTF8PROC_STABLE | UTF8PROC_COMPOSE | UTF8PROC_CASEFOLD);
    return out != NULL ? (char *)out : strdup(name);
}

struct key {
    char *text;
    size_t index;
};

static int compare_keys(const void *a, const void *b) {
    return strcmp(((const struct key *)a)->text, ((const struct key *)b)->text);
}

static enum status refuse_twice(struct submissions *all, struct error *error) {
    static const char twice[] = "two submissions of one student, as names are compared without "
                                "case and ending: leave one";
    struct key *keys = calloc(all->count + 1, sizeof *keys);
    bool good = keys != NULL;
    for (size_t i = 0; good && i < all->count; i++) {
        keys[i] = (struct key){.text = folded(all->all[i].name), .index = i};
        good = keys[i].text != NULL;
    }
    if (good && all->count > 0) {
        qsort(keys, all->count, sizeof *keys, compare_keys);
    }
    for (size_t i = 0; good && i + 1 < all->count; i++) {
        if (strcmp(keys[i].text, keys[i + 1].text) == 0) {
            refuse(&all->all[keys[i].index], twice);
            refuse(&all->all[keys[i + 1].index], twice);
        }
    }
    for (size_t i = 0; keys != NULL && i < all->count; i++) {
        free(keys[i].text);
    }
    free(keys);
    return good ? STATUS_OK : error_set(error, STATUS_OUT_OF_MEMORY, "out of memory");
}

enum status submissions_list(struct submissions *all, const char *folder,
                             const bool chosen[LAB_COUNT], struct error *error) {
    DIR *dir = opendir(folder);
    *all = (struct submissions){0};
    if (dir == NULL) {
        return error_set(error, STATUS_NOT_FOUND, "%.400s: %s", folder, strerror(errno));
    }
    enum status status = STATUS_OK;
    for (struct dirent *entry; status == STATUS_OK && (entry = readdir(dir)) != NULL;) {
        if (entry->d_name[0] != '.') { /* .DS_Store and its like are no submissions */
            status = add(all, entry->d_name, chosen, error);
        }
    }
    closedir(dir);
    TRY(status);
    if (all->count == 0) {
        return error_set(error, STATUS_NOT_FOUND, "%.400s: it is empty", folder);
    }
    qsort(all->all, all->count, sizeof *all->all, compare);
    return refuse_twice(all, error);
}

void submissions_free(struct submissions *all) {
    free(all->all);
    *all = (struct submissions){0};
}
