/**
 * @file test_cases.h
 * @brief Lists of attention problems, for the graded kernel and for each step of the ladder.
 */
#ifndef WARPBOOK_LABS_07_ATTENTION_PROBLEM_TEST_CASES_H_
#define WARPBOOK_LABS_07_ATTENTION_PROBLEM_TEST_CASES_H_

#include <stddef.h>

#include "labs/07_attention/problem/case.h"

#ifdef __cplusplus
extern "C" {
#endif

enum attention_topic {
    TOPIC_EMPTY, /**< sizes of 0 */
    TOPIC_CAUSAL,
    TOPIC_GROUPED_HEADS,
    TOPIC_MASKS, /**< masked keys are NaN on the device */
    TOPIC_PACKED,
    TOPIC_LAYOUTS,
    TOPIC_LARGE_SCORES, /**< e^x of them is infinite without the largest subtracted */
    TOPIC_LARGE_SIZES,  /**< for a GPU: seconds there, hours on simt */
    TOPICS
};

/** @return specifications (*count) of a topic, in fp32; loudness 0 stands for 1. */
const struct attention_spec *attention_list(enum attention_topic topic, size_t *count);

#ifdef __cplusplus
}
#endif

#endif
