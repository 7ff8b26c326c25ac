/**
 * @file honest_ways.h
 * @brief What harmless programs do beside their work; each lab's honest_NN.c does its work so.
 *
 * $WRONG_HONEST_WAY names one. A starter with it must pass parity, and be told no more than its
 * time.
 */
#ifndef WARPBOOK_GRADER_SELFTEST_HONEST_WAYS_H_
#define WARPBOOK_GRADER_SELFTEST_HONEST_WAYS_H_

#include <stdbool.h>

#include "common/base/status.h"
#include "common/device/device.h"

#ifdef __cplusplus
extern "C" {
#endif

/** The lab's own work, on @p stream. */
typedef enum status honest_work(const void *arguments, device_stream stream, struct error *error);

/**
 * @brief Does the work, and what the way asks for before and behind it; the work alone while
 *        @p stream is recorded.
 * @param moves whether the work may run on another stream than @p stream, which waits for it
 */
MUST_CHECK enum status honest_around(honest_work *work, const void *arguments, device_stream stream,
                                     bool moves, struct error *error);

#ifdef __cplusplus
}
#endif

#endif
