/**
 * @file tables.h
 * @brief The lists behind symbols.h. Patterns are the shell's, with spaces between.
 */
#ifndef WARPBOOK_GRADER_SYMBOLS_TABLES_H_
#define WARPBOOK_GRADER_SYMBOLS_TABLES_H_

#include <stdbool.h>

#ifdef __cplusplus
extern "C" {
#endif

/** @return whether one of the patterns fits the whole name. */
bool symbol_matches(const char *patterns, const char *name);

/** @return whether any submission for this lab may refer to the name. */
bool symbol_listed(const char *lab, const char *name);

/** @return why a submission may not refer to this name and what to do; NULL: no reason of its own.
 */
const char *symbol_refusal(const char *name);

/** @return who owns names like this, so that a submission may not define it; NULL: nobody. */
const char *symbol_owner(const char *name);

#ifdef __cplusplus
}
#endif

#endif
