/**
 * @file bert_base_test.c
 * @brief A model of bert-base's size equals transformers'. Apart from bert_test.c as it takes long.
 */
#include "common/models/bert_expectation.h"
#include "common/testing/testing.h"

C_TEST(bert, equals_the_framework_at_the_size_of_base) {
    bert_expectation_check("base");
}
