/**
 * @file symbols.h
 * @brief What a submission's own object files may refer to, and what they may define.
 *
 * list.sh has written it down when the test was built. A name that a submission refers to must be
 * on the list in tables.c, or defined by a library that the lab's BUILD names. A name that it
 * defines must be nobody else's: the linker would put it in the place of theirs.
 */
#ifndef WARPBOOK_GRADER_SYMBOLS_SYMBOLS_H_
#define WARPBOOK_GRADER_SYMBOLS_SYMBOLS_H_

#include <stdbool.h>
#include <stddef.h>

#include "common/base/status.h"

#ifdef __cplusplus
extern "C" {
#endif

struct symbol {
    const char *name;    /**< as the linker knows it */
    const char *library; /**< label of who else defines it, or NULL: nobody in the program */
    bool defined;        /**< the submission defines it; else it refers to it */
    bool strange;        /**< a name that C and C++ do not have; ? stands for such characters */
};

/**
 * @brief Judges one symbol.
 * @param lab  NN_topic, for its exceptions
 * @param line receives, for one that is not allowed: its name, that of C++ as one writes it, why,
 *             and what to do
 * @return whether it is allowed
 */
bool symbol_allowed(const struct symbol *symbol, const char *lab, char *line, size_t size);

/** Is told of each symbol that is not allowed. */
typedef void symbol_refused(const char *line);

/**
 * @brief Judges every symbol of a list.
 * @return STATUS_OK, whatever was refused; STATUS_NOT_FOUND or STATUS_IO without the file;
 *         STATUS_BAD_FORMAT for a line that is none of list.sh's, or when nothing is defined
 */
MUST_CHECK enum status symbols_check(const char *path, const char *lab, symbol_refused *refused,
                                     struct error *error);

#ifdef __cplusplus
}
#endif

#endif
