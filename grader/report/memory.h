/**
 * @file memory.h
 * @brief What is remembered of labs that were graded, and whether they have changed since.
 */
#ifndef WARPBOOK_GRADER_REPORT_MEMORY_H_
#define WARPBOOK_GRADER_REPORT_MEMORY_H_

#include "grader/report/run.h"
#include "grader/report/signature.h"

#ifdef __cplusplus
extern "C" {
#endif

/**
 * @brief Moves a damaged file out of the way, so that a new one can take its place: to PATH.broken,
 *        or to PATH.broken.2 and so on: no file is replaced.
 * @param error says why the file is not understood; receives that and the new name, for the user,
 *              also on success
 * @return STATUS_OK, or STATUS_IO when the file cannot be moved
 */
MUST_CHECK enum status set_aside(const char *path, struct error *error);

/**
 * @brief Reads the file; one that is not there is an empty memory, and so is one that was not
 *        signed with this key, which memory_save() then replaces: the line in @p error says so.
 *
 * One that cannot be understood is moved to PATH.broken (PATH.broken.2, ... where that is taken),
 * and the memory is empty. The line in @p error says so, while the status is STATUS_OK.
 *
 * @return STATUS_OK, or STATUS_IO when the file can be neither read nor moved
 */
MUST_CHECK enum status memory_load(struct run *memory, const char *path,
                                   const struct signature_key *key, struct error *error);

/** Writes the memory, signed, to a file, which appears whole or not at all. */
MUST_CHECK enum status memory_save(const struct run *memory, const char *path,
                                   const struct signature_key *key, struct error *error);

/** Takes over a lab's grades: from then on they belong to @p memory. */
void memory_keep(struct run *memory, const struct lab_run *lab);

/** @return whether the lab ran to its end, so that there is something to remember. */
bool memory_wants(const struct lab_run *lab);

/** @return what is remembered of a lab with this digest, or NULL. */
const struct lab_run *memory_find(const struct run *memory, const struct lab *lab,
                                  const char *digest);

/**
 * @brief Digest of all that a lab's result hangs on: its graded programs, the worker, which has the
 *        learner's code as it was built, and the learner's file.
 * @param files paths, (count)
 */
MUST_CHECK enum status lab_digest(const char *const *files, size_t count, char digest[SHA1_TEXT],
                                  struct error *error);

#ifdef __cplusplus
}
#endif

#endif
