/**
 * @file overheads.h
 * @brief What a request takes beyond the time that its answer tells.
 *
 * A worker's own clock is finer than the grader's, and cannot be believed. Of a worker whose word
 * is good the difference of the two clocks is known; another one's answers may differ by no more.
 */
#ifndef WARPBOOK_GRADER_ISOLATION_OVERHEADS_H_
#define WARPBOOK_GRADER_ISOLATION_OVERHEADS_H_

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

enum { OVERHEADS = 64 };

/** The last ones, in milliseconds. Zero-initialised: none. */
struct overheads {
    double ms[OVERHEADS];
    size_t count; /**< so far, the forgotten ones included */
};

void overheads_add(struct overheads *overheads, double ms);

/**
 * @return milliseconds: what three of four of them stay below, the longest of fewer than five, and
 * 0.1. An honest worker's times
 * stay as they are.
 */
double overheads_allow(const struct overheads *overheads);

#ifdef __cplusplus
}
#endif

#endif
