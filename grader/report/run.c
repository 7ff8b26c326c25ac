#include "grader/report/run.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

static const char *const verdicts[VERDICTS] = {"pass", "slow", "fail", "skip"};
static const char *const parts[PARTS] = {"parity", "speedup"};

const char *verdict_name(enum verdict verdict) {
    return verdicts[verdict];
}

const char *part_name(enum part part) {
    return parts[part];
}

static bool has_failed(const struct program *p) {
    for (size_t i = 0; i < p->count; i++) {
        if (p->grades[i].verdict == VERDICT_FAIL || p->grades[i].verdict == VERDICT_SLOW) {
            return true;
        }
    }
    return false;
}

bool program_is_sound(const struct program *p) {
    return p->ending == ENDING_EXIT && p->complete && p->strange == 0 && p->count > 0 &&
           (p->code != 0) == has_failed(p);
}

/* Behind what happened, the last thing it said. */
static void add_said(const struct program *p, char *text, size_t size) {
    size_t length = strlen(text);
    if (p->said[0] != '\0' && length < size) {
        snprintf(text + length, size - length, ": %s", p->said);
    }
}

const char *program_trouble(const struct program *p, char *text, size_t size) {
    if (program_is_sound(p)) {
        return NULL;
    }
    if (p->ending == ENDING_NOT_RUN) {
        snprintf(text, size, "it was not run");
    } else if (p->ending == ENDING_NOT_BUILT) {
        snprintf(text, size, "it was not built");
        add_said(p, text, size);
    } else if (p->ending == ENDING_TIMEOUT) {
        snprintf(text, size, "it did not end within %.0f s and was stopped", p->seconds);
        add_said(p, text, size);
    } else if (p->ending == ENDING_SIGNAL) {
        snprintf(text, size, "it crashed (signal %d, %s)", p->code, strsignal(p->code));
        add_said(p, text, size);
    } else if (p->strange > 0) {
        snprintf(text, size, "its record holds %zu line%s that no grader writes", p->strange,
                 p->strange == 1 ? "" : "s");
    } else if (!p->complete || p->count == 0) {
        snprintf(text, size, "it exited with status %d before its tests were over", p->code);
        add_said(p, text, size);
    } else {
        snprintf(text, size, "its exit status, %d, contradicts its tests", p->code);
    }
    return text;
}

void program_free(struct program *p) {
    free(p->grades);
    p->grades = NULL;
    p->count = 0;
}

void run_free(struct run *run) {
    for (size_t i = 0; i < LAB_COUNT; i++) {
        for (int part = 0; part < PARTS; part++) {
            program_free(&run->labs[i].programs[part]);
        }
    }
}

/* Length of the UTF-8 character at text, 0 when it is none. */
static size_t character(const unsigned char *text) {
    size_t length = text[0] < 0x80                       ? 1
                    : text[0] >= 0xc2 && text[0] < 0xe0  ? 2
                    : (text[0] & 0xf0) == 0xe0           ? 3
                    : text[0] >= 0xf0 && text[0] <= 0xf4 ? 4
                                                         : 0;
    for (size_t i = 1; i < length; i++) {
        if ((text[i] & 0xc0) != 0x80) {
            return 0;
        }
    }
    bool overlong = (text[0] == 0xe0 && text[1] < 0xa0) || (text[0] == 0xf0 && text[1] < 0x90);
    bool surrogate = text[0] == 0xed && text[1] >= 0xa0;
    bool beyond = text[0] == 0xf4 && text[1] >= 0x90;
    bool outside = text[0] == 0xef && text[1] == 0xbf && text[2] >= 0xbe; /* XML has no U+FFFE */
    return overlong || surrogate || beyond || outside ? 0 : length;
}

void text_clean(char *out, size_t size, const char *text, bool newlines) {
    size_t used = 0;
    const unsigned char *in = (const unsigned char *)text;
    while (in[0] != '\0') {
        size_t length = character(in);
        bool control = in[0] < 0x20 || in[0] == 0x7f || (in[0] == 0xc2 && in[1] < 0xa0);
        bool good = length > 0 && (!control || (newlines && in[0] == '\n'));
        if (used + (good ? length : 1) >= size) {
            break;
        }
        if (good) {
            memmove(out + used, in, length); /* out may be text itself */
        } else {
            out[used] = in[0] == '\t' || in[0] == '\n' ? ' ' : '?';
        }
        used += good ? length : 1;
        in += length > 0 ? length : 1;
    }
    out[used] = '\0';
}
