/**
 * @file renamed_starter.h
 * @brief The two functions of starter.cu under other names, to run beside yours in one program.
 */
#ifndef WARPBOOK_LABS_14_ENDLESS_TEXT_GIVEN_RENAMED_STARTER_H_
#define WARPBOOK_LABS_14_ENDLESS_TEXT_GIVEN_RENAMED_STARTER_H_

#include "labs/14_endless_text/endless_text.h"

#ifdef __cplusplus
extern "C" {
#endif

/** As endless_attention(). */
MUST_CHECK enum status starter_endless_attention(const struct endless_attention *attention,
                                                 void *workspace, device_stream stream,
                                                 struct error *error);

/** As endless_add_norms(). */
MUST_CHECK enum status starter_endless_add_norms(const struct endless_add_norms *add,
                                                 device_stream stream, struct error *error);

/** As endless_ladder(). */
const struct endless_step *starter_endless_ladder(size_t *count);

#ifdef __cplusplus
}
#endif

#endif
