/**
 * @file baseline.h
 * @brief The starter's encoder, as it was before anybody edited it.
 */
#ifndef WARPBOOK_GRADER_08_BERT_CLASSIFIER_BASELINE_H_
#define WARPBOOK_GRADER_08_BERT_CLASSIFIER_BASELINE_H_

#include "labs/08_bert_classifier/given/engine.h"

#ifdef __cplusplus
extern "C" {
#endif

/** As the functions of encoder.h, of which it shares nothing. */
struct encoder_functions encoder_baseline(void);

#ifdef __cplusplus
}
#endif

#endif
