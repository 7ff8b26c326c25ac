/**
 * @file flags.h
 * @brief Parses command lines by a table of flags, and prints `--help`, `--version` and what a
 * shell needs to complete the flags, from the same table.
 *
 * Accepted: `--name VALUE`, `--name=VALUE`, `-n VALUE`, `--switch`, `--` (all
 * that follows is positional). Dashes and underscores inside names are the
 * same. The whole value must parse: `-n 12x` is an error. A flag's default is
 * the value that its variable holds before flags_parse().
 */
#ifndef WARPBOOK_COMMON_BASE_FLAGS_H_
#define WARPBOOK_COMMON_BASE_FLAGS_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "common/base/status.h"

#ifdef __cplusplus
extern "C" {
#endif

/** Type of the variable behind a flag. */
enum flag_type {
    FLAG_SWITCH, /**< bool; takes no value (`--switch=false` is allowed) */
    FLAG_INT,    /**< int */
    FLAG_U64,    /**< uint64_t */
    FLAG_FLOAT,  /**< float, finite */
    FLAG_STRING  /**< const char *, points into argv */
};

struct flag {
    const char *name;     /**< long name, without the dashes */
    char letter;          /**< one-letter name, or 0 */
    enum flag_type type;  /**< type of *value */
    void *value;          /**< variable to set; holds the default */
    const char *argument; /**< placeholder of the value in --help: "N", "FILE"; NULL: a switch */
    const char *help;     /**< one line, without the default */
};

struct flags {
    const char *program;    /**< name as the user calls it */
    const char *positional; /**< positional arguments in --help: "CHECKPOINT"; "" if none */
    const char *summary;    /**< one line: what the program does */
    const struct flag *table;
    size_t count;
    const char *epilogue; /**< examples for the end of --help, or NULL */
};

/** What the user asked to be told instead of a run. */
enum flags_question { FLAGS_HELP, FLAGS_VERSION, FLAGS_COMPLETION_BASH, FLAGS_COMPLETION_ZSH };

/** Positional arguments, and whether help was asked for. */
struct arguments {
    const char **values; /**< caller's array of at least argc pointers */
    size_t count;
    bool help; /**< --help, -h, --version or --completion was given: call flags_answer(), exit 0 */
    enum flags_question question; /**< which of them, if `help` */
};

/**
 * @brief Sets the variables of the table from argv.
 * @param arguments `values` is given; the rest is filled in
 * @return STATUS_OK, or STATUS_INVALID_ARGUMENT with a message that names the flag: one of argv, or
 *         one that stands twice in the table
 */
MUST_CHECK enum status flags_parse(const struct flags *flags, int argc, char **argv,
                                   struct arguments *arguments, struct error *error);

/**
 * @brief flags_parse() with memory for the positional arguments, and with flags_answer().
 * @param arguments receives all; the caller frees `values`, also after a failure
 */
MUST_CHECK enum status flags_read(const struct flags *flags, int argc, char **argv,
                                  struct arguments *arguments, struct error *error);

/** Prints usage, every flag with its default, and the epilogue. */
void flags_help(const struct flags *flags, FILE *stream);

/** Prints on standard output what the user asked for; only if arguments->help. */
void flags_answer(const struct flags *flags, const struct arguments *arguments);

/**
 * @brief Prints a script by which bash or zsh complete the program's flags, values of the kind
 *        "a|b|c" in `argument`, and files.
 * @param question FLAGS_COMPLETION_BASH or FLAGS_COMPLETION_ZSH
 */
void flags_completion(const struct flags *flags, enum flags_question question, FILE *stream);

#ifdef __cplusplus
}
#endif

#endif
