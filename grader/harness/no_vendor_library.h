/**
 * @file no_vendor_library.h
 * @brief A submission must do the work itself.
 */
#ifndef WARPBOOK_GRADER_HARNESS_NO_VENDOR_LIBRARY_H_
#define WARPBOOK_GRADER_HARNESS_NO_VENDOR_LIBRARY_H_

#ifdef __cplusplus
extern "C" {
#endif

/** Fails the running test when the learner's process has loaded a library that does the work. */
void grader_check_own_work(void);

#ifdef __cplusplus
}
#endif

#endif
