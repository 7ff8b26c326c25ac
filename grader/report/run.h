/**
 * @file run.h
 * @brief What graded programs left behind, lab by lab: read from their lines, kept as JSON.
 */
#ifndef WARPBOOK_GRADER_REPORT_RUN_H_
#define WARPBOOK_GRADER_REPORT_RUN_H_

#include <stdbool.h>
#include <stddef.h>

#include "common/base/status.h"
#include "grader/report/labs.h"
#include "grader/report/sha1.h"
#include "grader/thresholds.h"

#ifdef __cplusplus
extern "C" {
#endif

struct cJSON;

/** Version of a kept run; raised when a field changes its meaning or goes. */
enum { RUN_SCHEMA = 1 };

enum verdict { VERDICT_PASS, VERDICT_SLOW, VERDICT_FAIL, VERDICT_SKIP, VERDICTS };

/** @return "pass", "slow", "fail" or "skip". */
const char *verdict_name(enum verdict verdict);

/** One graded test. Texts are UTF-8 without control characters but newlines in the message. */
struct grade {
    char test[64];
    enum verdict verdict;
    bool timed; /**< it compares times; else the numbers are 0 and the limit is "" */
    double baseline_ms, subject_ms, speedup, required;
    struct steps steps; /**< as speedups on that machine */
    double share;       /**< of what that machine can do */
    char limit[64];     /**< what sets that: "the memory's speed" */
    char device[160];
    bool modelled;
    char why[1100];     /**< why its kernel is not faster, or "" */
    char message[2048]; /**< of the first failure, or why it was skipped; "" when it passed */
    double seconds;
};

enum part { PART_PARITY, PART_SPEEDUP, PARTS };

/** @return "parity" or "speedup". */
const char *part_name(enum part part);

/** How a program ended. */
enum ending {
    ENDING_NOT_RUN,
    ENDING_NOT_BUILT,
    ENDING_EXIT,   /**< code: its status */
    ENDING_SIGNAL, /**< code: the signal */
    ENDING_TIMEOUT,
    ENDINGS
};

/** One graded program: parity or speedup of a lab. */
struct program {
    enum ending ending;
    int code;
    double seconds;
    bool complete;  /**< its last line came: no test is missing */
    size_t strange; /**< lines of its record that nobody could read */
    char said[512]; /**< the last line it printed, for one that is not complete */
    struct grade *grades;
    size_t count;
};

/** One lab. A zeroed one was not run. */
struct lab_run {
    const struct lab *lab; /**< NULL: not asked for */
    char digest[SHA1_TEXT];
    char time[32]; /**< when it was graded, UTC */
    bool starter;  /**< the learner's file is as it was handed out */
    bool kept;     /**< from an earlier run: nothing has changed since */
    struct program programs[PARTS];
};

/** The warm-ups, which give no points. */
struct warmups_run {
    int done, count; /**< count 0: nobody tried them */
    char digest[SHA1_TEXT];
};

struct run {
    char subject[16];   /**< "labs" or "solutions" */
    char commit[64];    /**< "" when it cannot be told */
    char not_held[400]; /**< what the sandbox does not hold on the machine that graded; "" for
                             nothing that matters */
    struct warmups_run warmups;
    struct lab_run labs[LAB_COUNT];
};

/** @return whether @p p ran all its tests, and its status agrees with what they said. */
bool program_is_sound(const struct program *p);

/**
 * @brief Describes what went wrong with a program that is not sound, in one line.
 * @return @p text, or NULL when it is sound
 */
const char *program_trouble(const struct program *p, char *text, size_t size);

/**
 * @brief Reads the record that a program wrote; what is no grade of this lab and part is counted
 *        in `strange`.
 * @param text of the whole record; it is changed
 */
MUST_CHECK enum status program_read(struct program *p, const struct lab *lab, enum part part,
                                    char *text, struct error *error);

/** Frees the grades; a zeroed one is allowed. */
void program_free(struct program *p);

/** Copies text, also onto itself, so that it is valid UTF-8 without control characters but, if
 * asked, newlines. */
void text_clean(char *out, size_t size, const char *text, bool newlines);

/** @return the run as JSON, or NULL without memory; the caller deletes it. */
struct cJSON *run_to_json(const struct run *run);

/** Reads what run_to_json() made; fields it does not know are let pass. */
MUST_CHECK enum status run_from_json(struct run *run, const struct cJSON *json,
                                     struct error *error);

/** Reads a recorded run from a file, whoever wrote it. */
MUST_CHECK enum status run_load(struct run *run, const char *path, struct error *error);

/** Frees all programs; a zeroed one is allowed. */
void run_free(struct run *run);

#ifdef __cplusplus
}
#endif

#endif
