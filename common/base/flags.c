#include "common/base/flags.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/version.h"

static bool same_name(const char *name, const char *given, size_t length) {
    for (size_t i = 0; i < length; i++) {
        char c = given[i] == '_' ? '-' : given[i];
        if (name[i] == '\0' || name[i] != c) {
            return false;
        }
    }
    return name[length] == '\0';
}

static const struct flag *find_long(const struct flags *flags, const char *given, size_t length) {
    for (size_t i = 0; i < flags->count; i++) {
        if (same_name(flags->table[i].name, given, length)) {
            return &flags->table[i];
        }
    }
    return NULL;
}

static const struct flag *find_letter(const struct flags *flags, char letter) {
    for (size_t i = 0; i < flags->count; i++) {
        if (flags->table[i].letter != 0 && flags->table[i].letter == letter) {
            return &flags->table[i];
        }
    }
    return NULL;
}

/* *wanted receives what is accepted, for the message. */
static bool parse_int(const char *text, int *out, const char **wanted) {
    char *end;
    errno = 0;
    long value = strtol(text, &end, 10);
    bool number = end != text && *end == '\0';
    *wanted = number ? "a whole number from -2147483648 to 2147483647" : "a whole number";
    if (!number || errno != 0 || value < INT_MIN || value > INT_MAX) {
        return false;
    }
    *out = (int)value;
    return true;
}

static bool parse_u64(const char *text, uint64_t *out) {
    char *end;
    errno = 0;
    unsigned long long value = strtoull(text, &end, 10);
    if (end == text || *end != '\0' || errno != 0 || strchr(text, '-') != NULL) {
        return false;
    }
    *out = value;
    return true;
}

static bool parse_float(const char *text, float *out) {
    char *end;
    float value = strtof(text, &end);
    if (end == text || *end != '\0' || !isfinite(value)) {
        return false;
    }
    *out = value;
    return true;
}

static bool parse_switch(const char *text, bool *out) {
    bool yes = strcmp(text, "true") == 0 || strcmp(text, "1") == 0;
    if (!yes && strcmp(text, "false") != 0 && strcmp(text, "0") != 0) {
        return false;
    }
    *out = yes;
    return true;
}

static enum status set_value(const struct flag *flag, const char *text, struct error *error) {
    bool good = false;
    const char *wanted = "";
    switch (flag->type) {
    case FLAG_SWITCH:
        good = parse_switch(text, flag->value);
        wanted = "true or false";
        break;
    case FLAG_INT:
        good = parse_int(text, flag->value, &wanted);
        break;
    case FLAG_U64:
        good = parse_u64(text, flag->value);
        wanted = "a whole number, 0 or more";
        break;
    case FLAG_FLOAT:
        good = parse_float(text, flag->value);
        wanted = "a number";
        break;
    case FLAG_STRING:
        *(const char **)flag->value = text;
        good = true;
        break;
    }
    if (!good) {
        return error_set(error, STATUS_INVALID_ARGUMENT, "--%s wants %s, not '%s'", flag->name,
                         wanted, text);
    }
    return STATUS_OK;
}

/* Splits argument *index into flag and value; a value that is the next argument advances *index. */
static enum status parse_one(const struct flags *flags, int argc, char **argv, int *index,
                             struct error *error) {
    const char *word = argv[*index];
    const struct flag *flag;
    const char *value = NULL;
    if (word[1] == '-') {
        const char *equals = strchr(word, '=');
        size_t length = equals != NULL ? (size_t)(equals - word) - 2 : strlen(word) - 2;
        flag = find_long(flags, word + 2, length);
        value = equals != NULL ? equals + 1 : NULL;
    } else {
        flag = word[2] == '\0' ? find_letter(flags, word[1]) : NULL;
    }
    if (flag == NULL) {
        return error_set(error, STATUS_INVALID_ARGUMENT, "unknown flag '%s'; --help lists them",
                         word);
    }
    if (flag->type == FLAG_SWITCH && value == NULL) {
        *(bool *)flag->value = true;
        return STATUS_OK;
    }
    if (value == NULL) {
        if (*index + 1 >= argc) {
            return error_set(error, STATUS_INVALID_ARGUMENT, "%s wants a value (%s)", word,
                             flag->argument);
        }
        value = argv[++*index];
    }
    return set_value(flag, value, error);
}

static void ask(struct arguments *arguments, enum flags_question question) {
    arguments->help = true;
    arguments->question = question;
}

static enum status ask_completion(struct arguments *arguments, const char *shell,
                                  struct error *error) {
    bool bash = shell != NULL && strcmp(shell, "bash") == 0;
    if (!bash && (shell == NULL || strcmp(shell, "zsh") != 0)) {
        return error_set(error, STATUS_INVALID_ARGUMENT, "--completion wants bash or zsh");
    }
    ask(arguments, bash ? FLAGS_COMPLETION_BASH : FLAGS_COMPLETION_ZSH);
    return STATUS_OK;
}

/* Whether the word asks for help or the like; a table's own flag of that name goes first. */
static bool is_question(const struct flags *flags, const char *word, const char *name) {
    return strcmp(word + 2, name) == 0 && find_long(flags, name, strlen(name)) == NULL;
}

/* One argument that begins with a dash. */
static enum status parse_dashed(const struct flags *flags, int argc, char **argv, int *index,
                                struct arguments *arguments, struct error *error) {
    const char *word = argv[*index];
    bool is_long = word[1] == '-';
    if ((is_long && is_question(flags, word, "help")) ||
        (strcmp(word, "-h") == 0 && find_letter(flags, 'h') == NULL)) {
        ask(arguments, FLAGS_HELP);
    } else if (is_long && is_question(flags, word, "version")) {
        ask(arguments, FLAGS_VERSION);
    } else if (is_long && is_question(flags, word, "completion")) {
        TRY(ask_completion(arguments, *index + 1 < argc ? argv[*index + 1] : NULL, error));
    } else {
        TRY(parse_one(flags, argc, argv, index, error));
    }
    return STATUS_OK;
}

/* A name or letter that stands twice would always mean the first: a mistake in the program. */
static enum status check_table(const struct flags *flags, struct error *error) {
    for (size_t i = 0; i < flags->count; i++) {
        const struct flag *flag = &flags->table[i];
        if (find_long(flags, flag->name, strlen(flag->name)) != flag) {
            return error_set(error, STATUS_INVALID_ARGUMENT,
                             "%s has two flags --%s: that is a mistake in it", flags->program,
                             flag->name);
        }
        if (flag->letter != 0 && find_letter(flags, flag->letter) != flag) {
            return error_set(error, STATUS_INVALID_ARGUMENT,
                             "%s has two flags -%c: that is a mistake in it", flags->program,
                             flag->letter);
        }
    }
    return STATUS_OK;
}

enum status flags_parse(const struct flags *flags, int argc, char **argv,
                        struct arguments *arguments, struct error *error) {
    TRY(check_table(flags, error));
    arguments->count = 0;
    arguments->help = false;
    bool only_positional = false;
    for (int i = 1; i < argc && !arguments->help; i++) {
        const char *word = argv[i];
        if (only_positional || word[0] != '-' || word[1] == '\0') {
            arguments->values[arguments->count++] = word;
        } else if (strcmp(word, "--") == 0) {
            only_positional = true;
        } else {
            TRY(parse_dashed(flags, argc, argv, &i, arguments, error));
        }
    }
    return STATUS_OK;
}

static void print_default(const struct flag *flag, FILE *stream) {
    switch (flag->type) {
    case FLAG_SWITCH:
        break;
    case FLAG_INT:
        fprintf(stream, " (default %d)", *(const int *)flag->value);
        break;
    case FLAG_U64:
        fprintf(stream, " (default %" PRIu64 ")", *(const uint64_t *)flag->value);
        break;
    case FLAG_FLOAT:
        fprintf(stream, " (default %g)", (double)*(const float *)flag->value);
        break;
    case FLAG_STRING:
        if (*(const char **)flag->value != NULL) {
            fprintf(stream, " (default %s)", *(const char **)flag->value);
        }
        break;
    }
}

static void print_flag(const struct flag *flag, FILE *stream) {
    char left[64];
    char letter[5] = "    ";
    if (flag->letter != 0) {
        snprintf(letter, sizeof letter, "-%c, ", flag->letter);
    }
    snprintf(left, sizeof left, "%s--%s %s", letter, flag->name,
             flag->argument != NULL ? flag->argument : "");
    fprintf(stream, "  %-30s %s", left, flag->help);
    print_default(flag, stream);
    fputc('\n', stream);
}

void flags_help(const struct flags *flags, FILE *stream) {
    fprintf(stream, "%s: %s\n\nusage: %s [FLAGS]%s%s\n\n", flags->program, flags->summary,
            flags->program, flags->positional[0] != '\0' ? " " : "", flags->positional);
    for (size_t i = 0; i < flags->count; i++) {
        print_flag(&flags->table[i], stream);
    }
    fprintf(stream, "  %-30s %s\n", "-h, --help", "print this and exit");
    fprintf(stream, "  %-30s %s\n", "    --version", "print the version and exit");
    fprintf(stream, "  %-30s %s\n", "    --completion bash|zsh",
            "print a script by which the shell completes these flags");
    if (flags->epilogue != NULL) {
        fprintf(stream, "\n%s\n", flags->epilogue);
    }
}

void flags_answer(const struct flags *flags, const struct arguments *arguments) {
    switch (arguments->question) {
    case FLAGS_HELP:
        flags_help(flags, stdout);
        break;
    case FLAGS_VERSION:
        printf("%s (Warpbook %s)\n", flags->program, WARPBOOK_VERSION);
        break;
    case FLAGS_COMPLETION_BASH:
    case FLAGS_COMPLETION_ZSH:
        flags_completion(flags, arguments->question, stdout);
        break;
    }
}

enum status flags_read(const struct flags *flags, int argc, char **argv,
                       struct arguments *arguments, struct error *error) {
    *arguments = (struct arguments){.values = calloc((size_t)argc + 1, sizeof(char *))};
    if (arguments->values == NULL) {
        return error_set(error, STATUS_OUT_OF_MEMORY, "out of memory for the arguments");
    }
    TRY(flags_parse(flags, argc, argv, arguments, error));
    if (!arguments->help) {
        return STATUS_OK;
    }
    flags_answer(flags, arguments);
    return fflush(stdout) == 0 && !ferror(stdout)
               ? STATUS_OK
               : error_set(error, STATUS_IO, "cannot write to standard output: %s",
                           strerror(errno));
}
