/**
 * @file expectation.h
 * @brief Recorded expectations of tests: an expectations/NAME.json beside the test.
 *
 * Texts are recorded as hexadecimal digits of their UTF-8, so that NUL and
 * control characters survive; long id sequences as their count and hash.
 */
#ifndef WARPBOOK_COMMON_TESTING_EXPECTATION_H_
#define WARPBOOK_COMMON_TESTING_EXPECTATION_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct cJSON;

/** @return the parsed file at @p path, as seen from the workspace, or NULL after noting a failure
 * of the running test. */
struct cJSON *expectation_load(const char *path);

/**
 * @brief Decodes the hexadecimal text in member @p name of @p object.
 * @param length receives its bytes
 * @return memory that the caller frees, of exactly that size; NULL after noting a failure
 */
char *expectation_text(const struct cJSON *object, const char *name, size_t *length);

/** @return the string in member @p name of @p object; "" after noting a failure. */
const char *expectation_string(const struct cJSON *object, const char *name);

/**
 * @brief Notes a failure of the running test if @p ids (@p count) differ from the recorded ones.
 * @param recorded array of numbers
 * @param what     name of the case, for the message
 */
void expectation_check_ids(const struct cJSON *recorded, const int32_t *ids, size_t count,
                           const char *what);

/** Notes a failure if @p hash differs from the recorded one, 16 hexadecimal digits. */
void expectation_check_hash(const char *recorded, uint64_t hash, const char *what);

/** @return 64-bit FNV-1a hash of an empty sequence. */
uint64_t expectation_hash_start(void);

/** @return @p hash continued over @p count ids, each as 4 bytes, little-endian. */
uint64_t expectation_hash(uint64_t hash, const int32_t *ids, size_t count);

/** @name Outputs of a framework: a recording with a list "cases"
 * @{ */
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
/** @} */

#endif
