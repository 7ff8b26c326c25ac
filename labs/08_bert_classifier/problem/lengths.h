/**
 * @file lengths.h
 * @brief Lengths of news articles: the batch that lab 08's encoder is timed with.
 */
#ifndef WARPBOOK_LABS_08_BERT_CLASSIFIER_PROBLEM_LENGTHS_H_
#define WARPBOOK_LABS_08_BERT_CLASSIFIER_PROBLEM_LENGTHS_H_

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum { ENCODER_ARTICLES = 64 };

/**
 * Tokens of AG News's 7,600 test articles in bert-base-uncased's pieces, with [CLS] and [SEP]: the
 * quantiles at (i + 0.5) / 64, in random order. The longest has 124, all together 3345: padded, 58%
 * of the rows are padding. (Batches of 64 in the order of the file: 59% on average.)
 */
static const int32_t encoder_article_lengths[ENCODER_ARTICLES] = {
    63, 49, 51, 46, 54, 54, 49, 48, 61, 55, 60, 45, 65,  56, 71,  58, 24, 68, 53, 30, 37, 42,
    47, 50, 37, 53, 52, 45, 62, 77, 48, 67, 57, 61, 101, 39, 40,  56, 55, 64, 41, 43, 84, 40,
    43, 46, 52, 51, 42, 32, 59, 44, 52, 73, 28, 33, 35,  38, 124, 47, 58, 36, 44, 50};

#ifdef __cplusplus
}
#endif

#endif
