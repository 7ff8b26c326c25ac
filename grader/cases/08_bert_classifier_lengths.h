/**
 * @file 08_bert_classifier_lengths.h
 * @brief How long news articles are: lengths of a batch that lab 08 is timed with.
 */
#ifndef WARPBOOK_GRADER_CASES_08_BERT_CLASSIFIER_LENGTHS_H_
#define WARPBOOK_GRADER_CASES_08_BERT_CLASSIFIER_LENGTHS_H_

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum { ENCODER_ARTICLES = 64 };

/**
 * Tokens of AG News's 7,600 test articles in bert-base-uncased's pieces, [CLS] and [SEP] among
 * them: the quantiles at (i + 0.5) / 64, in an order that has no meaning. The longest has 125, all
 * together 3360: padded, 58% of the rows are padding. (Batches of 64 in the order of the file: 59%
 * on average.)
 */
static const int32_t encoder_article_lengths[ENCODER_ARTICLES] = {
    63, 49, 51, 46, 54, 55, 49, 48, 61, 56, 60, 45, 66,  56, 71,  59, 24, 69, 53, 30, 38, 42,
    47, 50, 37, 54, 53, 45, 63, 77, 48, 67, 57, 62, 102, 39, 40,  57, 55, 65, 41, 43, 84, 40,
    43, 46, 52, 51, 42, 32, 59, 44, 52, 74, 28, 33, 35,  38, 125, 47, 58, 36, 44, 50};

#ifdef __cplusplus
}
#endif

#endif
