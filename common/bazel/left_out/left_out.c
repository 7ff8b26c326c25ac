#include "common/bazel/left_out/left_out.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "common/simt/fatbin/fatbin.h"

/* A file that asks has this kernel: common/cuda/gpu_limits.cuh. */
static const char probe[] = "gpu_code_probe";

/* The next line of a text, without its end; "" at the end. @return false there */
static bool next_line(struct fatbin_ptx *rest, struct fatbin_ptx *line) {
    *line = (struct fatbin_ptx){.text = ""};
    if (rest->size == 0) {
        return false;
    }
    const char *end = memchr(rest->text, '\n', rest->size);
    line->text = rest->text;
    line->size = end != NULL ? (size_t)(end - rest->text) : rest->size;
    size_t used = line->size + (end != NULL);
    rest->text += used;
    rest->size -= used;
    return true;
}

static bool names_target(const struct fatbin_ptx *line) {
    static const char word[] = ".target";
    return line->size >= sizeof word - 1 && memcmp(line->text, word, sizeof word - 1) == 0;
}

static bool is_same(const struct fatbin_ptx *a, const struct fatbin_ptx *b) {
    return (a->size == b->size && memcmp(a->text, b->text, a->size) == 0) ||
           (names_target(a) && names_target(b));
}

/* @return whether the texts are the same but for the GPU that they name; else *line is a's first
 * that is not */
static bool are_alike(struct fatbin_ptx a, struct fatbin_ptx b, struct fatbin_ptx *line) {
    struct fatbin_ptx other;
    bool more, more_of_other;
    do {
        more = next_line(&a, line);
        more_of_other = next_line(&b, &other);
    } while (more && more_of_other && is_same(line, &other));
    return !more && !more_of_other;
}

static enum status compare(const struct fatbin_ptx *newer, const struct fatbin_ptx *kept,
                           struct error *error) {
    struct fatbin_ptx line;
    if (memmem(newer->text, newer->size, probe, sizeof probe - 1) != NULL) {
        return error_set(error, STATUS_MISMATCH,
                         "PTX for %u is left out, and host code asks which one runs",
                         newer->architecture);
    }
    if (!are_alike(*newer, *kept, &line)) {
        return error_set(error, STATUS_MISMATCH,
                         "PTX for %u is left out, and is not that for %u: '%.*s'",
                         newer->architecture, kept->architecture, (int)line.size, line.text);
    }
    return STATUS_OK;
}

static bool is_kept(const char *capabilities, unsigned architecture) {
    char word[16];
    snprintf(word, sizeof word, "%u", architecture);
    return strstr(capabilities, word) != NULL;
}

enum status left_out_check(const char *capabilities, const void *code, size_t size,
                           struct error *error) {
    enum { OLDEST = 50, NEWEST = 120 };
    struct fatbin_ptx kept = {0}, ptx;
    unsigned seen = 0, compared = 0;
    for (unsigned a = OLDEST; a <= NEWEST; a++) {
        enum status found = fatbin_find_ptx(code, size, a, &ptx, NULL);
        if (found != STATUS_OK || ptx.architecture == seen) {
            continue;
        }
        seen = ptx.architecture;
        if (is_kept(capabilities, seen)) {
            kept = ptx;
        } else if (kept.text != NULL) {
            TRY(compare(&ptx, &kept, error));
            compared++;
        }
    }
    return compared > 0 ? STATUS_OK
                        : error_set(error, STATUS_MISMATCH, "no PTX is left out but older one");
}
