#include "grader/report/format/format.h"

#include <stdio.h>
#include <string.h>

static const struct {
    const char *name;
    format_function *function;
} formats[] = {
    {"text", format_text},   {"json", format_json},         {"gradescope", format_gradescope},
    {"junit", format_junit}, {"markdown", format_markdown}, {"html", format_html},
};

format_function *format_find(const char *name, struct error *error) {
    for (size_t i = 0; i < sizeof formats / sizeof *formats; i++) {
        if (strcmp(formats[i].name, name) == 0) {
            return formats[i].function;
        }
    }
    (void)error_set(error, STATUS_INVALID_ARGUMENT,
                    "--format is text, json, gradescope, junit, markdown or html, not '%s'", name);
    return NULL;
}

const char *format_warmups(const struct run *run, char *text, size_t size) {
    if (run->warmups.count == 0) {
        return NULL;
    }
    snprintf(text, size, "%d of %d", run->warmups.done, run->warmups.count);
    return text;
}

const char *format_warmups_next(const struct run *run) {
    if (run->warmups.done == run->warmups.count) {
        return "done";
    }
    return strcmp(run->subject, "solutions") == 0 ? "bazel run //solutions/00_warmups:check"
                                                  : "bazel run //labs/00_warmups:check";
}

const char *format_speedup(const struct row_score *row, char *text, size_t size) {
    if (row == NULL || row->grade == NULL || !row->grade->timed) {
        snprintf(text, size, "–");
    } else {
        snprintf(text, size, row->grade->speedup < 9.995 ? "%.2fx" : "%.1fx", row->grade->speedup);
    }
    return text;
}

/* "bf16" of the measure kernel_bf16; of the measure kernel what stands first in its description. */
static void name_kernel(const struct threshold *row, char *text, size_t size) {
    static const char *const types[] = {"fp32", "fp16", "bf16"};
    static const char plain[] = "kernel", typed[] = "kernel_";
    text[0] = '\0';
    if (strcmp(row->measure, plain) != 0) {
        bool is_typed = strncmp(row->measure, typed, strlen(typed)) == 0;
        snprintf(text, size, "%s ", row->measure + (is_typed ? strlen(typed) : 0));
        return;
    }
    for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
        if (strncmp(row->what, types[i], strlen(types[i])) == 0) {
            snprintf(text, size, "%s ", types[i]);
        }
    }
}

const char *format_which(const struct lab_score *score, char *text, size_t size) {
    text[0] = '\0';
    if (score->kernel != NULL) {
        name_kernel(score->kernel->row, text, size);
    }
    return text;
}

void format_escaped(FILE *out, const char *text) {
    for (; *text != '\0'; text++) {
        switch (*text) {
        case '&':
            fputs("&amp;", out);
            break;
        case '<':
            fputs("&lt;", out);
            break;
        case '>':
            fputs("&gt;", out);
            break;
        case '"':
            fputs("&quot;", out);
            break;
        case '\'':
            fputs("&#39;", out);
            break;
        default:
            fputc(*text, out);
        }
    }
}
