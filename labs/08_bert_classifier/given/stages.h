/**
 * @file stages.h
 * @brief The engines of the course that lab 08's programs run on.
 */
#ifndef WARPBOOK_LABS_08_BERT_CLASSIFIER_GIVEN_STAGES_H_
#define WARPBOOK_LABS_08_BERT_CLASSIFIER_GIVEN_STAGES_H_

#include "common/programs/classifier/classifier_stages.h"

#ifdef __cplusplus
extern "C" {
#endif

/** @return every stage that this build has, in the order of the course; lives forever. */
const struct classifier_stages *stages_of_the_course(void);

#ifdef __cplusplus
}
#endif

#endif
