/**
 * @file classifier_session.h
 * @brief Flags, stage, model and engine of the classifier's programs.
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

/** Values of the shared flags. */
struct classifier_options {
    const char *checkpoint;          /**< default, unless random: the project's own, in shipped */
    char shipped[FOLDER_PATH_BYTES]; /**< path of the project's own checkpoint */
    const char *vocab, *shape, *device, *stage, *dtype;
    bool random;
    int max_length; /**< 0: the checkpoint's number of positions, at most 512 */
    int batch;
    int threads;
};

enum { CLASSIFIER_FLAGS = 10, CLASSIFIER_MOST_FLAGS = 24 };

/** @return the defaults. */
struct classifier_options classifier_options_defaults(void);

/** The command line of a program. */
struct classifier_command {
    const char *program, *positional, *summary, *epilogue;
    struct classifier_options *options;
    const struct flag *own; /**< (own_count) the program's flags beside the shared ones */
    size_t own_count;       /**< at most CLASSIFIER_MOST_FLAGS - CLASSIFIER_FLAGS */
    bool texts;             /**< the program takes positional arguments */
};

/** The work of a program after its command line was read. @param arguments positional ones */
typedef enum status classifier_work(void *options, const struct arguments *arguments,
                                    const struct classifier_stages *stages, struct error *error);

/**
 * @brief main() of a program: reads the command line, checks the shared flags, finds the project's
 *        own checkpoint if none is named, then calls @p work, unless --help was given.
 * @param options passed on to @p work
 * @return exit status: 0, 1 after one line on stderr, or 128 + a signal that ended the work
 */
int classifier_command_main(const struct classifier_command *command, int argc, char **argv,
                            const struct classifier_stages *stages, classifier_work *work,
                            void *options);

/** Model and engine, ready for a classifier. */
struct classifier_session {
    struct classifier_model model;
    struct engine engine;
    const struct classifier_stage *stage;
    struct program_device device; /**< of a stage on the device */
    enum nn_dtype dtype;          /**< of matmul inputs; sums and other operators are fp32 */
    double (*now)(void);          /**< clock for this stage: the device's, or wall time */
    size_t max_length, batch;
};

/**
 * @brief Makes a stage's engine for a dtype.
 * @return the stage's status; STATUS_UNSUPPORTED, naming the stages that can, when the stage does
 *         not compute in that dtype
 */
MUST_CHECK enum status classifier_engine_create(struct engine *engine,
                                                const struct classifier_stage *stage,
                                                enum nn_dtype dtype, int threads,
                                                const struct classifier_stages *stages,
                                                struct error *error);

/**
 * @brief Opens the model and makes the engine.
 *
 * Without --device and --stage: the last stage on the GPU if there is a GPU, else the last stage on
 * the CPU, because simt is slow.
 *
 * @param labels    classes of random weights, or the number that the checkpoint must have
 * @param wanted_by name of the data set with that many labels, for the message: "agnews"; NULL: any
 *                  checkpoint will do
 */
MUST_CHECK enum status classifier_session_open(struct classifier_session *session,
                                               const struct classifier_options *options,
                                               const struct classifier_stages *stages,
                                               size_t labels, const char *wanted_by,
                                               struct error *error);

/** Frees; a zero-initialised one is allowed. */
void classifier_session_close(struct classifier_session *session);

/**
 * @brief Describes where the session computes: "stage 04_sgemm on NVIDIA H200", "... on simt:h200
 *        (times are modelled)", "... on the CPU"; "stage 08_bert_classifier in bf16 on ...".
 * @return @p text
 */
const char *classifier_session_where(const struct classifier_session *session, char *text,
                                     size_t size);

#endif
