/**
 * @file slurm_words.h
 * @brief Splits --backend-options into the words that sbatch gets.
 */
#ifndef WARPBOOK_GRADER_CLASS_SLURM_SLURM_WORDS_H_
#define WARPBOOK_GRADER_CLASS_SLURM_SLURM_WORDS_H_

#include <stddef.h>

#include "common/base/status.h"

enum { SLURM_WORDS = 32 };

struct slurm_words {
    char text[1024];
    char *list[SLURM_WORDS]; /**< into text */
    size_t count;
};

/**
 * @brief Splits at blanks; '...' and "..." keep blanks, and nothing else is special.
 * @param text may be NULL: no words
 * @return STATUS_OK; STATUS_TOO_LONG; STATUS_INVALID_ARGUMENT: an open quote, a word that is no
 *         option, or an option that the back end sets itself
 */
MUST_CHECK enum status slurm_words_split(struct slurm_words *words, const char *text,
                                         struct error *error);

/**
 * @return the value of an option in any form: "--exclude=n7", "--exclude n7", "-xn7", "-x n7";
 * where it is given twice the last one, as for sbatch; NULL: it is not given
 */
const char *slurm_words_value(const struct slurm_words *words, const char *option,
                              const char *letter);

#endif
