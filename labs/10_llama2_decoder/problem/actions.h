/**
 * @file actions.h
 * @brief Scripts of calls on a text: tokens fed, and steps, each checked as in case.h.
 */
#ifndef WARPBOOK_LABS_10_LLAMA2_DECODER_PROBLEM_ACTIONS_H_
#define WARPBOOK_LABS_10_LLAMA2_DECODER_PROBLEM_ACTIONS_H_

#include "labs/10_llama2_decoder/problem/case.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { ACTION_NEXT = -1 };

/** One call; the macros below spell it. */
struct decoder_action {
    int feed;                   /**< tokens of one call; 0: a step; -n: n steps at once */
    int position;               /**< of the first token; ACTION_NEXT: after those fed */
    const struct sampling *how; /**< of a step, with another state; NULL: greedy */
};

#define FEED(count, position) \
    { count, position, NULL }
#define FEED_NEXT(count) \
    { count, ACTION_NEXT, NULL }
#define STEP \
    { 0, ACTION_NEXT, NULL }
#define STEP_AT(position) \
    { 0, position, NULL }
#define STEPS_AT_ONCE(count) \
    { -(count), ACTION_NEXT, NULL }
#define DRAW(how) \
    { 0, ACTION_NEXT, how }
#define DRAW_AT(how, position) \
    { 0, position, how }

/** One action. @param text receives the mistake, or stays "" */
MUST_CHECK enum status decoder_case_act(struct decoder_case *c, const struct decoder_action *action,
                                        char *text, size_t size, struct error *error);

/** Actions in order, up to the first mistake. */
MUST_CHECK enum status decoder_case_act_all(struct decoder_case *c,
                                            const struct decoder_action *actions, size_t count,
                                            char *text, size_t size, struct error *error);

#ifdef __cplusplus
}
#endif

#endif
