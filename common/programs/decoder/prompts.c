/* Prompts from a file or a pipe, one a line. */
#include <cjson/cJSON.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/base/json_object.h"
#include "common/programs/decoder/generate_internal.h"
#include "common/programs/line_stream.h"
#include "common/programs/program.h"

/* A file while it is read. */
struct reading {
    const char *name;
    struct line_stream stream;
    size_t line; /* counts from 1 */
    prompt_visitor *visit;
    void *context;
    struct error *error;
};

static enum status visit_object(struct reading *r, const char *line, size_t length) {
    cJSON *object;
    TRY(json_object_parse(&object, line, length, r->error));
    const char *text = cJSON_GetStringValue(json_member(object, "prompt"));
    const struct prompt prompt = {
        .text = text,
        .length = text != NULL ? strlen(text) : 0,
        .line = r->line,
        .id = json_member(object, "id"),
    };
    enum status status = text != NULL ? r->visit(r->context, &prompt, r->error)
                                      : error_set(r->error, STATUS_BAD_FORMAT,
                                                  "\"prompt\" is missing or not a string");
    cJSON_Delete(object);
    return status;
}

static enum status visit_line(struct reading *r, const char *line, size_t length) {
    if (length == 0) {
        return STATUS_OK;
    }
    const struct prompt prompt = {.text = line, .length = length, .line = r->line};
    enum status status = line[0] == '{' ? visit_object(r, line, length)
                         : memchr(line, '\0', length) == NULL
                             ? r->visit(r->context, &prompt, r->error)
                             : error_set(r->error, STATUS_BAD_FORMAT, "has a NUL byte");
    if (status == STATUS_OK || status == STATUS_INTERRUPTED) {
        return status;
    }
    char prefix[300];
    snprintf(prefix, sizeof prefix, "%.250s, line %zu", r->name, r->line);
    return error_prefix(r->error, status, prefix);
}

static enum status read_lines(struct reading *r) {
    for (;;) {
        const char *line;
        size_t length;
        while (line_stream_take(&r->stream, &line, &length)) {
            r->line++;
            TRY(visit_line(r, line, length));
        }
        if (r->stream.ended || interrupt_seen() != 0) {
            return interrupt_seen() != 0 ? STATUS_INTERRUPTED : STATUS_OK;
        }
        enum status status = line_stream_wait(&r->stream, r->error);
        if (status != STATUS_OK) {
            return status == STATUS_INTERRUPTED ? status : error_prefix(r->error, status, r->name);
        }
    }
}

enum status prompts_read(const char *path, prompt_visitor *visit, void *context,
                         struct error *error) {
    bool input = strcmp(path, "-") == 0;
    struct reading r = {.name = input ? "standard input" : path,
                        .stream = {.descriptor = input ? STDIN_FILENO : open(path, O_RDONLY)},
                        .visit = visit,
                        .context = context,
                        .error = error};
    if (r.stream.descriptor < 0) {
        return error_set(error, errno == ENOENT ? STATUS_NOT_FOUND : STATUS_IO,
                         "%s: cannot open: %s", path, strerror(errno));
    }
    int descriptor = r.stream.descriptor;
    enum status status = read_lines(&r);
    line_stream_free(&r.stream);
    if (!input) {
        close(descriptor);
    }
    return status;
}
