/* Scripts by which shells complete a program's flags. */
#include <string.h>

#include "common/base/flags.h"

/* How a flag's value is completed. */
enum kind { KIND_NOTHING, KIND_FILE, KIND_CHOICE };

static enum kind kind_of(const struct flag *flag) {
    if (flag->argument == NULL || flag->type != FLAG_STRING) {
        return KIND_NOTHING;
    }
    if (strchr(flag->argument, '|') != NULL) {
        return KIND_CHOICE;
    }
    static const char *const paths[] = {"FILE", "DIR", "FOLDER", "PATH", "CHECKPOINT"};
    for (size_t i = 0; i < sizeof paths / sizeof *paths; i++) {
        if (strstr(flag->argument, paths[i]) != NULL) {
            return KIND_FILE;
        }
    }
    return KIND_NOTHING;
}

/* "a|b" as "a b". */
static void print_choices(const char *argument, FILE *stream) {
    for (const char *c = argument; *c != '\0'; c++) {
        fputc(*c == '|' ? ' ' : *c, stream);
    }
}

/* "--steps|-n)", the value's flag in a case of bash. */
static void bash_case(const struct flag *flag, FILE *stream) {
    fprintf(stream, "    --%s", flag->name);
    if (flag->letter != 0) {
        fprintf(stream, "|-%c", flag->letter);
    }
    fputs(") ", stream);
    switch (kind_of(flag)) {
    case KIND_FILE:
        fputs("COMPREPLY=($(compgen -f -- \"$word\")) ;;\n", stream);
        break;
    case KIND_CHOICE:
        fputs("COMPREPLY=($(compgen -W '", stream);
        print_choices(flag->argument, stream);
        fputs("' -- \"$word\")) ;;\n", stream);
        break;
    case KIND_NOTHING:
        fputs("COMPREPLY=() ;;\n", stream);
        break;
    }
}

static void bash_completion(const struct flags *flags, FILE *stream) {
    fprintf(stream,
            "_warpbook_%s() {\n"
            "    local word=${COMP_WORDS[COMP_CWORD]}\n"
            "    case ${COMP_WORDS[COMP_CWORD - 1]} in\n",
            flags->program);
    for (size_t i = 0; i < flags->count; i++) {
        if (flags->table[i].type != FLAG_SWITCH) {
            bash_case(&flags->table[i], stream);
        }
    }
    fputs("    --completion) COMPREPLY=($(compgen -W 'bash zsh' -- \"$word\")) ;;\n"
          "    *)\n"
          "        if [[ $word == -* ]]; then\n"
          "            COMPREPLY=($(compgen -W '",
          stream);
    for (size_t i = 0; i < flags->count; i++) {
        fprintf(stream, "--%s ", flags->table[i].name);
    }
    fprintf(stream,
            "--help --version --completion' -- \"$word\"))\n"
            "        else\n"
            "            COMPREPLY=($(compgen -f -- \"$word\"))\n"
            "        fi\n"
            "        ;;\n"
            "    esac\n"
            "}\n"
            "complete -o filenames -F _warpbook_%s %s\n",
            flags->program, flags->program);
}

/* Text inside of '...[...]' of zsh's _arguments. */
static void print_zsh_text(const char *text, FILE *stream) {
    for (const char *c = text; *c != '\0'; c++) {
        if (*c == '\'') {
            fputs("'\\''", stream);
        } else if (strchr("[]:\\", *c) != NULL) {
            fprintf(stream, "\\%c", *c);
        } else {
            fputc(*c, stream);
        }
    }
}

static void zsh_value(const struct flag *flag, FILE *stream) {
    if (flag->type == FLAG_SWITCH) {
        return;
    }
    fputc(':', stream);
    print_zsh_text(kind_of(flag) == KIND_CHOICE ? flag->name : flag->argument, stream);
    fputc(':', stream);
    if (kind_of(flag) == KIND_FILE) {
        fputs("_files", stream);
    } else if (kind_of(flag) == KIND_CHOICE) {
        fputc('(', stream);
        print_choices(flag->argument, stream);
        fputc(')', stream);
    }
}

static void zsh_flag(const struct flag *flag, const char *dashes, const char *name, FILE *stream) {
    fprintf(stream, "    '%s%s[", dashes, name);
    print_zsh_text(flag->help, stream);
    fputc(']', stream);
    zsh_value(flag, stream);
    fputs("' \\\n", stream);
}

static void zsh_completion(const struct flags *flags, FILE *stream) {
    fprintf(stream, "#compdef %s\n_arguments \\\n", flags->program);
    for (size_t i = 0; i < flags->count; i++) {
        const struct flag *flag = &flags->table[i];
        const char letter[2] = {flag->letter, '\0'};
        zsh_flag(flag, "--", flag->name, stream);
        if (flag->letter != 0) {
            zsh_flag(flag, "-", letter, stream);
        }
    }
    fputs("    '--help[print help and exit]' \\\n"
          "    '--version[print the version and exit]' \\\n"
          "    '--completion[print a script for the shell]:shell:(bash zsh)' \\\n"
          "    '*:file:_files'\n",
          stream);
}

void flags_completion(const struct flags *flags, enum flags_question question, FILE *stream) {
    if (question == FLAGS_COMPLETION_BASH) {
        bash_completion(flags, stream);
    } else {
        zsh_completion(flags, stream);
    }
}
