/**
 * @file llama2_session.h
 * @brief What the programs with a Llama2 share: flags, the choice of a stage, the start.
 */
#ifndef WARPBOOK_COMMON_PROGRAMS_DECODER_LLAMA2_SESSION_H_
#define WARPBOOK_COMMON_PROGRAMS_DECODER_LLAMA2_SESSION_H_

#include <stdbool.h>
#include <stddef.h>

#include "common/base/flags.h"
#include "common/base/folder.h"
#include "common/base/status.h"
#include "common/checkpoints/llama2/llama2_checkpoint.h"
#include "common/models/engine.h"
#include "common/models/llama2.h"
#include "common/models/profile.h"
#include "common/nn/dtype.h"
#include "common/programs/decoder/llama2_stages.h"
#include "common/tokenizers/bpe/bpe.h"

#ifdef __cplusplus
extern "C" {
#endif

/** What the shared flags say. */
struct llama2_options {
    const char *checkpoint; /**< the one positional argument; without: the project's own, found */
    char shipped[FOLDER_PATH_BYTES]; /**< where that is */
    const char *tokenizer;           /**< NULL: the folder's, or tokenizer.bin */
    const char *stage; /**< NULL: the last on a real GPU, else the last that needs no device */
    const char *dtype; /**< NULL: as the checkpoint, where the stage takes that */
    int threads;
    bool profile; /**< times operators; no shared flag, as not every program has it */
};

/** How a program reads its command line. */
struct llama2_command {
    const char *program, *summary, *epilogue;
    struct llama2_options *options;
    const struct flag *own; /**< (own_count) the program's flags, listed before the shared ones */
    size_t own_count;       /**< at most LLAMA2_MOST_FLAGS */
};

enum { LLAMA2_MOST_FLAGS = 16 };

/** @return the defaults. */
struct llama2_options llama2_options_defaults(void);

/**
 * @brief Reads the command line, checks what can be checked without a file, and finds a checkpoint
 *        where none is named.
 * @param help receives whether --help was printed
 */
MUST_CHECK enum status llama2_command_parse(const struct llama2_command *command,
                                            const struct llama2_stages *stages, int argc,
                                            char **argv, bool *help, struct error *error);

/** Checkpoint, tokenizer, engine and model. */
struct llama2_session {
    struct llama2_checkpoint checkpoint;
    struct bpe *tokenizer;
    const struct llama2_stage *stage;
    struct llama2_place place; /**< of a stage on the device */
    double (*now)(void);       /**< the clock that times this stage: the device's, or wall */
    enum nn_dtype dtype;       /**< of matrices on the engine */
    struct engine engine;
    struct engine timed; /**< around engine, with options->profile */
    struct profile profile;
    struct llama2_fp32 fp32; /**< empty when the engine took the weights as they are stored */
    struct llama2 *model;
    size_t batch; /**< most tokens of one llama2_forward() */
};

/**
 * @brief Opens files, starts the stage's engine and makes the model on it.
 *
 * Without --stage: the last stage where there is a real GPU, else the last one on the CPU, as simt
 * is slow; where no stage is on the CPU, the last one.
 *
 * An engine with a decoder gets the weights as they are stored: no fp32 copy of them is made.
 *
 * @param most_batch most tokens of a forward call that are of use; 0: what suits a prompt
 * @return also STATUS_UNSUPPORTED when 16 bits are asked of a stage that computes in fp32 alone
 */
MUST_CHECK enum status llama2_session_open(struct llama2_session *session,
                                           const struct llama2_options *options,
                                           const struct llama2_stages *stages, size_t most_batch,
                                           struct error *error);

/** Frees; a zero-initialised one is allowed. */
void llama2_session_close(struct llama2_session *session);

/**
 * @brief Where the session computes, for people: "stage 01_cpu_matmul on the CPU", "stage
 *        10_llama2_decoder in bf16 on NVIDIA H200", "... on simt:h200 (times are modelled)".
 * @return @p text
 */
const char *llama2_session_where(const struct llama2_session *session, char *text, size_t size);

/** @return " modelled" behind a figure that was not measured, else "". */
const char *llama2_session_modelled(const struct llama2_session *session);

#ifdef __cplusplus
}
#endif

#endif
