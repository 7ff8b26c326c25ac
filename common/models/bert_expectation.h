/**
 * @file bert_expectation.h
 * @brief BERT against the recordings of expectations/bert.json.
 */
#ifndef WARPBOOK_COMMON_MODELS_BERT_EXPECTATION_H_
#define WARPBOOK_COMMON_MODELS_BERT_EXPECTATION_H_

/**
 * @brief Writes the checkpoint of case @p name into the test's temporary folder, opens it, runs
 *        it on the reference engine and compares every output with the recording.
 *
 * Prints three relative errors, and fails the running test if one exceeds 1e-4: the largest
 * difference relative to the largest value, the norm of the differences relative to the norm of
 * the values, and the error of the norm of the whole output.
 */
void bert_expectation_check(const char *name);

#endif
