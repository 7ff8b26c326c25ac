/**
 * @file classifier_session.h
 * @brief What the classifier's programs share: flags, the choice of an engine, the start.
 */
#ifndef WARPBOOK_COMMON_PROGRAMS_CLASSIFIER_CLASSIFIER_SESSION_H_
#define WARPBOOK_COMMON_PROGRAMS_CLASSIFIER_CLASSIFIER_SESSION_H_

#include <stdbool.h>
#include <stddef.h>

#include "common/base/flags.h"
#include "common/base/folder.h"
#include "common/base/status.h"
#include "common/programs/classifier/classifier.h"
#include "common/programs/classifier/classifier_stages.h"

#ifdef __cplusplus
extern "C" {
#endif

/** What the shared flags say. */
struct classifier_options {
    const char *checkpoint; /**< without one, and without random: the project's own, found */
    char shipped[FOLDER_PATH_BYTES]; /**< where that is */
    const char *vocab, *shape, *device, *stage, *dtype;
    bool random;
    int max_length; /**< 0: what the checkpoint has, at most 512 */
    int batch;
    int threads;
};

enum { CLASSIFIER_FLAGS = 10, CLASSIFIER_MOST_FLAGS = 24 };

/** @return the defaults. */
struct classifier_options classifier_options_defaults(void);

/** Writes the CLASSIFIER_FLAGS shared flags to @p table. */
void classifier_flags(struct classifier_options *options, struct flag *table);

/** How a program reads its command line. */
struct classifier_command {
    const char *program, *positional, *summary, *epilogue;
    struct classifier_options *options;
    const struct flag *own; /**< (own_count) the program's flags beside the shared ones */
    size_t own_count;       /**< at most CLASSIFIER_MOST_FLAGS - CLASSIFIER_FLAGS */
    bool texts;             /**< positional arguments are wanted; else they are refused */
};

/**
 * @brief Reads the command line, checks the shared flags, and finds a checkpoint where none is
 * named.
 * @param arguments values: memory that the caller frees; help: --help was printed
 */
MUST_CHECK enum status classifier_command_parse(const struct classifier_command *command, int argc,
                                                char **argv, struct arguments *arguments,
                                                struct error *error);

/** Model and engine, ready for a classifier. */
struct classifier_session {
    struct classifier_model model;
    struct engine engine;
    const struct classifier_stage *stage;
    struct classifier_device device; /**< of a stage on the device */
    enum nn_dtype dtype;             /**< what products are made of; sums and the rest are fp32 */
    double (*now)(void);             /**< the clock that times this stage: the device's, or wall */
    size_t max_length, batch;
};

/**
 * @brief Makes a stage's engine for a dtype.
 * @return what the stage says; STATUS_UNSUPPORTED, with the stages that do, where it does not
 *         compute in that dtype
 */
MUST_CHECK enum status classifier_engine_create(struct engine *engine,
                                                const struct classifier_stage *stage,
                                                enum nn_dtype dtype, int threads,
                                                const struct classifier_stages *stages,
                                                struct error *error);

/**
 * @brief Opens the model and makes the engine.
 *
 * Without --device and --stage: the last stage on the GPU where there is a real one, else the last
 * stage on the CPU, as simt is slow.
 *
 * @param labels classes of random weights; of a checkpoint, if not 0, what it must have
 * @param wanted_by what needs that many, for the message: "agnews"; NULL: nothing
 */
MUST_CHECK enum status classifier_session_open(struct classifier_session *session,
                                               const struct classifier_options *options,
                                               const struct classifier_stages *stages,
                                               size_t labels, const char *wanted_by,
                                               struct error *error);

/** Frees; a zero-initialised one is allowed. */
void classifier_session_close(struct classifier_session *session);

/**
 * @brief Where the session computes, for people: "stage 04_sgemm on NVIDIA H200", "... on simt:h200
 *        (times are modelled)", "... on the CPU"; "stage 08_bert_classifier in bf16 on ...".
 * @return @p text
 */
const char *classifier_session_where(const struct classifier_session *session, char *text,
                                     size_t size);

#ifdef __cplusplus
}
#endif

#endif
