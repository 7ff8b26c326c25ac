/**
 * @file recording.h
 * @brief Reads the recorded outputs of a framework, for tests to compare with: JSON with a list
 *        "cases", loaded with expectation_load().
 */
#ifndef WARPBOOK_COMMON_TESTING_RECORDING_H_
#define WARPBOOK_COMMON_TESTING_RECORDING_H_

struct cJSON;

/**
 * @brief Finds a case by its name.
 * @param path of the recording, for the message
 * @return the case; NULL, after noting a failure of the running test, if there is none
 */
const struct cJSON *recording_case(const struct cJSON *root, const char *path, const char *name);

/** @return the member, or NULL if it is absent or null. */
const struct cJSON *recording_member(const struct cJSON *object, const char *key);

/** @return a number; NaN if there is none. */
double recording_number(const struct cJSON *object, const char *key);

/** @return a string; "" if there is none. */
const char *recording_string(const struct cJSON *object, const char *key);

#endif
