#include "grader/class/slurm/slurm_words.h"

#include <stdbool.h>
#include <string.h>

/* Options by which our tasks are found again, and by which each of them runs once. */
static const char *const own[] = {"--array", "--job-name", "--comment", "--requeue",   "--output",
                                  "--error", "--wrap",     "--wait",    "--test-only", "--parsable",
                                  "--chdir", "-a",         "-J",        "-o",          "-e",
                                  "-W",      "-D"};

/* Whether a word is that option: "--array", "--array=1", "-a", "-a1". */
static bool is_option(const char *word, const char *option) {
    size_t length = strlen(option);
    return strncmp(word, option, length) == 0 &&
           (option[1] != '-' || word[length] == '\0' || word[length] == '=');
}

static enum status check(const struct slurm_words *w, struct error *error) {
    for (size_t i = 0; i < w->count; i++) {
        for (size_t k = 0; k < sizeof own / sizeof *own; k++) {
            if (is_option(w->list[i], own[k])) {
                return error_set(error, STATUS_INVALID_ARGUMENT,
                                 "--backend-options: %.100s is set by grade_class itself",
                                 w->list[i]);
            }
        }
    }
    if (w->count > 0 && w->list[0][0] != '-') {
        return error_set(error, STATUS_INVALID_ARGUMENT,
                         "--backend-options: options of sbatch are wanted, not '%.100s'",
                         w->list[0]);
    }
    return STATUS_OK;
}

/* Copies one word from *text to `to`; returns behind its NUL, or NULL for an open quote. */
static char *copy_word(char *to, const char **text) {
    char quote = '\0';
    for (; **text != '\0' && (quote != '\0' || strchr(" \t\n", **text) == NULL); ++*text) {
        if (quote == '\0' && (**text == '\'' || **text == '"')) {
            quote = **text;
        } else if (**text == quote) {
            quote = '\0';
        } else {
            *to++ = **text;
        }
    }
    *to++ = '\0';
    return quote == '\0' ? to : NULL;
}

enum status slurm_words_split(struct slurm_words *words, const char *text, struct error *error) {
    words->count = 0;
    if (text == NULL) {
        return STATUS_OK;
    }
    /* Blanks become at most one NUL each, and the last word has its own. */
    if (strlen(text) >= sizeof words->text) {
        return error_set(error, STATUS_TOO_LONG, "--backend-options: longer than %zu bytes",
                         sizeof words->text - 1);
    }
    char *to = words->text;
    for (text += strspn(text, " \t\n"); *text != '\0'; text += strspn(text, " \t\n")) {
        if (words->count == SLURM_WORDS) {
            return error_set(error, STATUS_TOO_LONG, "--backend-options: more than %d words",
                             SLURM_WORDS);
        }
        words->list[words->count++] = to;
        to = copy_word(to, &text);
        if (to == NULL) {
            return error_set(error, STATUS_INVALID_ARGUMENT,
                             "--backend-options: a quote is not closed");
        }
    }
    return check(words, error);
}

const char *slurm_words_value(const struct slurm_words *words, const char *option,
                              const char *letter) {
    const char *const forms[] = {option, letter};
    const char *value = NULL;
    for (size_t i = 0; i < words->count; i++) {
        for (size_t k = 0; k < 2; k++) {
            const char *rest = words->list[i] + strlen(forms[k]);
            if (!is_option(words->list[i], forms[k])) {
                continue;
            }
            if (*rest == '\0') {
                value = i + 1 < words->count ? words->list[i + 1] : value;
            } else {
                value = rest + (k == 0); /* behind the "=" */
            }
        }
    }
    return value;
}
