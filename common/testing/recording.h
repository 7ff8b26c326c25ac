/**
 * @file recording.h
 * @brief What a framework computed once, recorded as JSON with a list "cases", for tests to
 *        compare with.
 */
#ifndef WARPBOOK_COMMON_TESTING_RECORDING_H_
#define WARPBOOK_COMMON_TESTING_RECORDING_H_

#ifdef __cplusplus
extern "C" {
#endif

struct cJSON;

/** @return the parsed file, or NULL after noting a failure of the running test. */
struct cJSON *recording_load(const char *path);

/**
 * @brief The case of a name.
 * @param path of the recording, for the message
 * @return NULL after noting a failure, when there is none
 */
const struct cJSON *recording_case(const struct cJSON *root, const char *path, const char *name);

/** @return the member, or NULL when it is absent or null. */
const struct cJSON *recording_member(const struct cJSON *object, const char *key);

/** @return a number; NaN when there is none. */
double recording_number(const struct cJSON *object, const char *key);

/** @return a string; "" when there is none. */
const char *recording_string(const struct cJSON *object, const char *key);

#ifdef __cplusplus
}
#endif

#endif
