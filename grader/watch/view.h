/**
 * @file view.h
 * @brief A round in words: the lines of the page, and those that follow each other without one.
 */
#ifndef WARPBOOK_GRADER_WATCH_VIEW_H_
#define WARPBOOK_GRADER_WATCH_VIEW_H_

#include "grader/watch/round.h"

/** Adds all that is known of a round: title, steps, points, failure or bottleneck, bench. */
void view_round(const struct round *round, struct lines *lines);

/** Adds a step that has ended, and what it found. */
void view_step(const struct round *round, enum watch_step step, struct lines *lines);

/** Adds the round's title: the lab, its file and the time of the save. */
void view_title(const struct round *round, struct lines *lines);

/** Adds points and what to do next, once something is graded. */
void view_points(const struct round *round, struct lines *lines);

#endif
