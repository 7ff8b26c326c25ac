/**
 * @file beside.h
 * @brief For list_test: functions of libraries that a submission is linked with.
 */
#ifndef WARPBOOK_GRADER_SYMBOLS_TESTDATA_BESIDE_H_
#define WARPBOOK_GRADER_SYMBOLS_TESTDATA_BESIDE_H_

#ifdef __cplusplus
extern "C" {
#endif

/** In a library that the submission's BUILD names. @{ */
int given_once(int x);
int given_twice(int x);
/** @} */

/** In one that comes along with it. */
int beside_secret(int x);

/** In another one of the same program. */
int beside_time(void);

#ifdef __cplusplus
}
#endif

#endif
