/* What is shown of each name: itself, an alias, or a number in an order of chance. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/file.h"
#include "grader/class/pages/board.h"
#include "grader/report/sha1.h"

enum { MOST_ALIASES = 4 << 20 };

struct shuffled {
    char digest[SHA1_TEXT];
    size_t index;
};

static int compare(const void *a, const void *b) {
    return strcmp(((const struct shuffled *)a)->digest, ((const struct shuffled *)b)->digest);
}

static enum status number_by_chance(struct board *b, const struct collection *c, const char *run,
                                    struct error *error) {
    struct shuffled *all = calloc(b->count, sizeof *all);
    if (all == NULL) {
        return error_set(error, STATUS_OUT_OF_MEMORY, "out of memory");
    }
    for (size_t i = 0; i < b->count; i++) {
        struct sha1 sum = sha1_begin();
        sha1_add(&sum, run, strlen(run));
        sha1_add(&sum, c->tasks[i].task.name, strlen(c->tasks[i].task.name));
        sha1_end(&sum, all[i].digest);
        all[i].index = i;
    }
    qsort(all, b->count, sizeof *all, compare);
    for (size_t i = 0; i < b->count; i++) {
        struct board_entry *e = &b->entries[all[i].index];
        e->number = (unsigned)i + 1;
        snprintf(e->shown, sizeof e->shown, "submission %u", e->number);
    }
    free(all);
    return STATUS_OK;
}

static void set_alias(struct board *b, const struct collection *c, const char *name,
                      const char *alias) {
    for (size_t i = 0; i < b->count; i++) {
        if (strcmp(c->tasks[i].task.name, name) == 0) {
            text_clean(b->entries[i].shown, sizeof b->entries[i].shown, alias, false);
        }
    }
}

/* Without an alias a submission keeps its number. */
static enum status read_aliases(struct board *b, const struct collection *c, const char *path,
                                struct error *error) {
    char *text, *rest;
    size_t size, number = 0;
    TRY(file_read(path, MOST_ALIASES, &text, &size, error));
    for (char *line = strtok_r(text, "\n", &rest); line != NULL;
         line = strtok_r(NULL, "\n", &rest)) {
        line[strcspn(line, "\r")] = '\0';
        char *comma = strrchr(line, ',');
        number++;
        if (comma == NULL) {
            free(text);
            return error_set(error, STATUS_BAD_FORMAT, "%.300s: line %zu is not NAME,ALIAS", path,
                             number);
        }
        *comma = '\0';
        set_alias(b, c, line, comma + 1);
    }
    free(text);
    return STATUS_OK;
}

enum status board_create(struct board *b, const struct collection *c, const bool chosen[LAB_COUNT],
                         const struct board_names *names, struct error *error) {
    *b = (struct board){.output = c->output, .chosen = chosen, .count = c->count};
    b->entries = calloc(c->count, sizeof *b->entries);
    if (b->entries == NULL) {
        return error_set(error, STATUS_OUT_OF_MEMORY, "out of memory");
    }
    for (size_t i = 0; i < LAB_COUNT; i++) {
        b->most += chosen[i] ? LAB_POINTS : 0;
    }
    if (names->hidden || names->aliases != NULL) {
        TRY(number_by_chance(b, c, names->run, error));
        return names->aliases != NULL ? read_aliases(b, c, names->aliases, error) : STATUS_OK;
    }
    for (size_t i = 0; i < c->count; i++) {
        b->entries[i].number = c->tasks[i].task.id;
        snprintf(b->entries[i].shown, sizeof b->entries[i].shown, "%s", c->tasks[i].task.name);
    }
    return STATUS_OK;
}

void board_free(struct board *b) {
    free(b->entries);
    b->entries = NULL;
}
