/**
 * @file bert_base_test.c
 * @brief Compares a model of bert-base's size with transformers; apart from bert_test.c because it
 *        takes long.
 */
#include "common/models/bert_expectation.h"
#include "common/testing/testing.h"

C_TEST(bert, equals_the_framework_at_the_size_of_base) {
    bert_expectation_check("base");
}
