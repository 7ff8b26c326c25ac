/**
 * @file record.h
 * @brief What a graded test leaves behind: one JSON object a line, in grade.jsonl.
 *
 * A line says which test of which lab ended how, and for a comparison of times the speedup that
 * was reached and the one required. After the last test comes a line with the verdict "end", so
 * that a program that left in the middle can be told from one that came to its end.
 *
 * The file is $WARPBOOK_GRADES; else grade.jsonl among the outputs of a Bazel test, in results/ of
 * the workspace under `bazel run`, or in results/ here.
 */
#ifndef WARPBOOK_GRADER_HARNESS_RECORD_H_
#define WARPBOOK_GRADER_HARNESS_RECORD_H_

#include <stdbool.h>
#include <stddef.h>

#include "grader/harness/speedup.h"

#ifdef __cplusplus
extern "C" {
#endif

/** Version of the line; raised when a field changes its meaning or goes. */
enum { GRADE_SCHEMA = 1 };

/**
 * @brief Has each test of this program recorded from now on. For a constructor, before main().
 * @param lab     "04_sgemm"; the strings must live forever
 * @param subject "labs" or "solutions"; "starter" is recorded where that is graded (starter.h)
 * @param part    "parity" or "speedup"
 */
void grade_record_begin(const char *lab, const char *subject, const char *part);

/** Says what the running test runs on; without it, that is this machine's CPU. */
void grade_record_device(const char *name, bool modelled);

/** Notes the GPU's limits that the running test was measured by; the last ones count. */
void grade_record_limits(const struct device_limits *limits);

/** Notes the running test's comparison of times; the last one counts. */
void grade_record_speedup(const struct speedup *speedup, double required, bool reached);

/** Notes what the running test counted, such as launches, and the most that is allowed. */
void grade_record_count(size_t count, size_t most);

/** Longest text of grade_record_why(), with the NUL. */
enum { GRADE_WHY = 1100 };

/** Notes why the running test's kernel is not faster. */
void grade_record_why(const char *why);

/** @return the path of grade.jsonl, in @p path. */
const char *grade_record_path(char *path, size_t size);

#ifdef __cplusplus
}
#endif

#endif
