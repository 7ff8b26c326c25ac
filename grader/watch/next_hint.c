#include "grader/watch/next_hint.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/file.h"
#include "grader/report/hints.h"

enum { PATH_SIZE = 1200, MOST_BYTES = 4 << 20 };

static void add_text(struct lines *lines, const char *text, size_t length) {
    while (length > 0) {
        const char *end = memchr(text, '\n', length);
        size_t line = end != NULL ? (size_t)(end - text) : length;
        lines_add(lines, LINE_PLAIN, "%.*s", (int)line, text);
        line += end != NULL;
        text += line;
        length -= line;
    }
}

static void show(const struct lab *lab, const char *workspace, const char *handout,
                 struct lines *lines) {
    char folder[PATH_SIZE], path[PATH_SIZE + 16];
    struct hint hints[MOST_HINTS];
    struct hints_shown shown;
    struct error error = {0};
    size_t index = (size_t)(lab - lab_at(0)), count = hints_find(handout, hints);
    snprintf(folder, sizeof folder, "%.1100s/results", workspace);
    enum status status = hints_load(&shown, hints_path(folder, path, sizeof path), &error);
    size_t next = (size_t)shown.count[index];
    if (next >= count) {
        lines_add(lines, LINE_STRONG,
                  "all %zu hints were shown: bazel run //grader:hint -- %s --all", count,
                  lab->name);
        return;
    }
    const struct hint *hint = &hints[next];
    lines_add(lines, LINE_STRONG, "%.*s (%zu of %zu)", (int)hint->title_length, hint->title,
              next + 1, count);
    add_text(lines, hint->body, hint->body_length);
    status =
        status == STATUS_OK ? hints_remember(&shown, index, (int)next + 1, folder, &error) : status;
    if (status != STATUS_OK) {
        lines_add(lines, LINE_BAD, "not remembered: %s", error_text(&error, status));
    }
}

void next_hint(const struct lab *lab, const char *workspace, struct lines *lines) {
    char path[PATH_SIZE], *handout;
    size_t size;
    struct error error = {0};
    lines->count = 0;
    snprintf(path, sizeof path, "%.1000s/labs/%s/README.md", workspace, lab->name);
    enum status status = file_read(path, MOST_BYTES, &handout, &size, &error);
    if (status != STATUS_OK) {
        lines_add(lines, LINE_BAD, "%s", error_text(&error, status));
        return;
    }
    show(lab, workspace, handout, lines);
    free(handout);
}
