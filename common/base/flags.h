/**
 * @file flags.h
 * @brief Parses command lines by a table of flags, and prints `--help` from it.
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

/** Positional arguments, and whether help was asked for. */
struct arguments {
    const char **values; /**< caller's array of at least argc pointers */
    size_t count;
    bool help; /**< --help or -h was given: print help, exit 0 */
};

/**
 * @brief Sets the variables of the table from argv.
 * @param arguments `values` is given; the rest is filled in
 * @return STATUS_OK, or STATUS_INVALID_ARGUMENT with a message that names the flag
 */
MUST_CHECK enum status flags_parse(const struct flags *flags, int argc, char **argv,
                                   struct arguments *arguments, struct error *error);

/**
 * @brief flags_parse() with memory for the positional arguments, and with --help, which it prints
 *        on standard output.
 * @param arguments receives all; the caller frees `values`, also after a failure
 */
MUST_CHECK enum status flags_read(const struct flags *flags, int argc, char **argv,
                                  struct arguments *arguments, struct error *error);

/** Prints usage, every flag with its default, and the epilogue. */
void flags_help(const struct flags *flags, FILE *stream);

#ifdef __cplusplus
}
#endif

#endif
