/**
 * @file next_hint.h
 * @brief The next hint of a lab's handout, as //grader:hint shows it, as lines.
 */
#ifndef WARPBOOK_GRADER_WATCH_NEXT_HINT_H_
#define WARPBOOK_GRADER_WATCH_NEXT_HINT_H_

#include "grader/report/labs.h"
#include "grader/watch/lines.h"

/** Writes the hint that was not shown yet, and remembers it; or why there is none. */
void next_hint(const struct lab *lab, const char *workspace, struct lines *lines);

#endif
