/**
 * @file remote.h
 * @brief Lab 14's operators and its decoder in the worker in use.
 */
#ifndef WARPBOOK_GRADER_14_ENDLESS_TEXT_REMOTE_H_
#define WARPBOOK_GRADER_14_ENDLESS_TEXT_REMOTE_H_

#include "labs/14_endless_text/problem/model.h"

#ifdef __cplusplus
extern "C" {
#endif

/** As endless_attention(). */
MUST_CHECK enum status remote_endless_attention(const struct endless_attention *attention,
                                                void *workspace, device_stream stream,
                                                struct error *error);

/** As endless_add_norms(). */
MUST_CHECK enum status remote_endless_add_norms(const struct endless_add_norms *add,
                                                device_stream stream, struct error *error);

/** A decoder of the case's model, whose weights are the worker's. */
MUST_CHECK enum status remote_endless_open(void **decoder, const struct endless_case *c,
                                           struct error *error);

#ifdef __cplusplus
}
#endif

#endif
