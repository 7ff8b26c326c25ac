/**
 * @file sabotage.h
 * @brief Submissions to lab 04 that try to get a verdict without having earned it.
 *
 * $WRONG_SABOTAGE names one. sabotage_sgemm.cu has the honest kernel, which is slow; each file of
 * tricks has a table. README.md says which row of the list of threats each one is, and what stops
 * it.
 */
#ifndef WARPBOOK_GRADER_SELFTEST_SABOTAGE_H_
#define WARPBOOK_GRADER_SELFTEST_SABOTAGE_H_

#include <stdbool.h>
#include <stddef.h>

#include "common/base/status.h"
#include "common/device/device.h"
#include "labs/04_sgemm/sgemm.h"

#ifdef __cplusplus
extern "C" {
#endif

/** One call of sgemm(). */
struct sabotage_call {
    const struct sgemm_problem *problem;
    device_stream stream;
    size_t number; /**< of the calls in this process, from 0 */
};

typedef enum status sabotage_trick(const struct sabotage_call *call, struct error *error);

struct sabotage {
    const char *name;
    sabotage_trick *run;
};

/** A row of a table: a trick is called what its function is called. */
#define SABOTAGE(function) \
    { #function, function }

/** Tables of tricks; each ends with a name of NULL. */
extern const struct sabotage sabotage_work[], sabotage_grader[], sabotage_process[],
    sabotage_device[], sabotage_runtime[];

/** What the kernel leaves out; all 1: nothing. */
struct sabotage_shortcut {
    size_t rows; /**< this many rows get the result of the first of them */
    size_t part; /**< each sum has this many parts: one is computed, and multiplied */
};

/** Computes it, honestly but for the shortcut. */
MUST_CHECK enum status sabotage_launch(const struct sgemm_problem *problem,
                                       struct sabotage_shortcut shortcut, device_stream stream,
                                       struct error *error);

/** Computes what was asked for. */
MUST_CHECK enum status sabotage_right(const struct sabotage_call *call, struct error *error);

/** The same with a race in shared memory that changes no result. */
MUST_CHECK enum status sabotage_race(const struct sabotage_call *call, struct error *error);

/** Tries to start a kernel that no GPU can start: a block of @p threads, with @p shared bytes. */
void sabotage_launch_too_large(const struct sgemm_problem *problem, unsigned threads,
                               size_t shared);

/** Kernels beside the honest one. */
enum sabotage_kernel {
    SABOTAGE_ENDLESS, /**< does not come to an end */
    SABOTAGE_TRAP,    /**< ends with a fault of its own making */
    SABOTAGE_PRINT,   /**< prints what a terminal takes for commands */
    SABOTAGE_TENSOR   /**< multiplies zeros on tensor cores, as often as the problem has products */
};

/** Starts one of them. */
void sabotage_special(const struct sgemm_problem *problem, enum sabotage_kernel which,
                      device_stream stream);

/** @return the name in $WRONG_SABOTAGE; a self-test without one is at fault: it aborts. */
const char *sabotage_name(void);

/** @return whether this is what only the timed test asks for. */
static inline bool sabotage_is_timed(const struct sgemm_problem *problem) {
    return problem->M >= 256 && problem->N >= 256;
}

#ifdef __cplusplus
}
#endif

#endif
