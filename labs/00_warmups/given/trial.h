/**
 * @file trial.h
 * @brief Runs one exercise in a process of its own, and what its try_NAME() needs to judge it.
 *
 * trial_run() belongs to the caller. The other functions run in the process that it starts: what
 * goes wrong there ends that process with a verdict, so they return nothing that has to be checked,
 * and nothing is freed. A fault of one exercise does not reach the next.
 */
#ifndef WARPBOOK_LABS_00_WARMUPS_GIVEN_TRIAL_H_
#define WARPBOOK_LABS_00_WARMUPS_GIVEN_TRIAL_H_

#include <stdbool.h>
#include <stddef.h>

#include "common/base/rng.h"
#include "common/simt/simt.h"
#include "labs/00_warmups/given/exercises.h"

#ifdef __cplusplus
extern "C" {
#endif

enum trial_state {
    TRIAL_PASSED,
    TRIAL_NOT_YET,
    TRIAL_NOT_HERE, /**< it needs another GPU, or simt */
};

/** What became of an exercise. */
struct verdict {
    enum trial_state state;
    char message[512];  /**< of one that is not passed: what is wrong; else a remark or "" */
    char printed[4096]; /**< what simt and the learner's code printed; the beginning of it */
};

/**
 * @brief Tries an exercise; whatever it does, this returns within seconds.
 * @return STATUS_OK, or STATUS_IO when no process can be started
 */
MUST_CHECK enum status trial_run(const struct exercise *exercise, struct verdict *verdict,
                                 struct error *error);

/** One trial, inside of its process. */
struct trial {
    const struct exercise *exercise;
    struct verdict *verdict; /* shared with the process that waits */
    struct rng rng;
    bool counts; /**< it runs on simt, which counts */
    struct simt_api simt;
    struct simt_totals before;
};

/** Ends the trial as not passed. */
void trial_fail(struct trial *trial, const char *format, ...)
    __attribute__((format(printf, 2, 3), noreturn));

/** Host memory of zeros. */
void *trial_host(struct trial *trial, size_t count, size_t size);
/** Random numbers in [-1, 1) on the host, (count). */
float *trial_random(struct trial *trial, size_t count);
/** Device memory with a copy of host memory. */
void *trial_put(struct trial *trial, const void *host, size_t bytes);
/** Device floats, (count), all NaN: what nobody writes is noticed. */
float *trial_output(struct trial *trial, size_t count);
/** Device integers, (count), all @p value. */
int *trial_integers(struct trial *trial, size_t count, int value);

/** Waits for the learner's kernels; ends the trial if one failed. */
void trial_wait(struct trial *trial);

/**
 * @brief Waits, then compares a result with what is expected; ends the trial at the first
 * difference.
 * @param name of the array, for the message
 * @param d_got device, (count)
 * @param want host, (count)
 * @param columns of a matrix, whose elements are named by row and column; 0 for a vector
 * @param tolerance largest difference allowed
 */
void trial_expect(struct trial *trial, const char *name, const float *d_got, const double *want,
                  size_t count, size_t columns, double tolerance);

/** The same for integers, which must be equal. */
void trial_expect_integers(struct trial *trial, const char *name, const int *d_got, const int *want,
                           size_t count);

/** Begins to count, on simt: what the learner's function does from here on. */
void trial_count(struct trial *trial);

/**
 * @brief On simt: what was counted since trial_count(); else false, and the verdict will say that
 * the counts were left out.
 */
bool trial_counted(struct trial *trial, struct simt_counters *counters);

#ifdef __cplusplus
}
#endif

#endif
