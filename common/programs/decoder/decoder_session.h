/**
 * @file decoder_session.h
 * @brief Flags, stage, engine and model of the programs with a Llama2 or a GPT-NeoX.
 */
#ifndef WARPBOOK_COMMON_PROGRAMS_DECODER_DECODER_SESSION_H_
#define WARPBOOK_COMMON_PROGRAMS_DECODER_DECODER_SESSION_H_

#include <stdbool.h>
#include <stddef.h>

#include "common/base/flags.h"
#include "common/base/folder.h"
#include "common/base/status.h"
#include "common/checkpoints/gpt_neox/gpt_neox_checkpoint.h"
#include "common/checkpoints/llama2/llama2_checkpoint.h"
#include "common/checkpoints/llama2/llama2_ends.h"
#include "common/models/engine.h"
#include "common/models/language_model.h"
#include "common/models/profile.h"
#include "common/nn/dtype.h"
#include "common/programs/decoder/decoder_stages.h"
#include "common/tokenizers/bpe/bpe.h"

/** Values of the shared flags. */
struct decoder_options {
    const char *checkpoint; /**< positional argument; default: the project's own, in shipped */
    char shipped[FOLDER_PATH_BYTES]; /**< path of the project's own checkpoint */
    const char *tokenizer;           /**< NULL: the folder's, or tokenizer.bin */
    const char *stage; /**< NULL: the last if there is a GPU, else the last one on the CPU */
    const char *dtype; /**< NULL: as the checkpoint, if the stage supports it */
    size_t positions;  /**< the most that the program will use; 0: the model's whole context */
    int sinks, window; /**< a text without end: its first tokens and its last ones are kept; window
                          0: off */
    int threads;
    bool profile;        /**< times operators; not a shared flag, as only some programs have it */
    int gpus;            /**< ranks, a GPU each; nor is this; 1 by default */
    struct ranks *ranks; /**< NULL: one GPU */
};

/** The command line of a program. */
struct decoder_command {
    const char *program, *summary, *epilogue;
    struct decoder_options *options;
    const struct flag *own; /**< (own_count) the program's flags, listed before the shared ones */
    size_t own_count;       /**< at most LLAMA2_MOST_FLAGS */
};

enum { LLAMA2_MOST_FLAGS = 16 };

/** @return the defaults. */
struct decoder_options decoder_options_defaults(void);

/** The work of a program after its command line was read. */
typedef enum status decoder_work(void *options, const struct decoder_stages *stages,
                                 struct error *error);

/**
 * @brief main() of a program: reads the command line, checks everything that can be checked without
 *        a file, and calls @p work, unless --help was given.
 * @param options passed on to @p work
 * @return exit status: 0; 1 after one line on stderr; 128 + the signal after SIGINT or SIGTERM
 */
int decoder_command_main(const struct decoder_command *command, const struct decoder_stages *stages,
                         int argc, char **argv, decoder_work *work, void *options);

/** Checkpoint, tokenizer, engine and model. */
struct decoder_session {
    struct ranks *ranks; /**< NULL: one GPU */
    struct llama2_checkpoint checkpoint;
    struct gpt_neox_checkpoint gpt_neox; /**< open in place of `checkpoint` */
    bool is_gpt_neox;
    bool folder; /**< the checkpoint is a folder, not a file of llama2.c or GGUF */
    struct bpe *tokenizer;
    struct llama2_ends ends; /**< tokens that end a text: the folder's and the tokenizer's */
    const struct decoder_stage *stage;
    struct program_device device; /**< of a stage on the device; else named "the CPU" */
    double (*now)(void);          /**< clock for this stage: the device's, or wall time */
    enum nn_dtype dtype;          /**< of matrices on the engine */
    struct engine engine;
    struct engine timed; /**< profiles engine, if options->profile */
    struct profile profile;
    struct llama2_fp32 fp32; /**< empty if the engine uses the weights as they are stored */
    struct gpt_neox_fp32 gpt_neox_fp32;
    struct language_model model;
    size_t context; /**< positions that the model was made for, at most its whole context; of a text
                       without end the tokens that it sees */
    bool endless;   /**< positions have no end: options->window */
    size_t sinks;   /**< of a text without end */
    size_t batch;   /**< most tokens of one language_model_forward() */
};

/**
 * @brief Opens files, starts the stage's engine and makes the model on it.
 *
 * Without --stage: the last stage if there is a GPU, else the last stage on the CPU, because simt
 * is slow. If no stage is on the CPU, the last stage.
 *
 * The model is made for options->positions: a context of 131,072, as Llama 3.1 has it, would take
 * gigabytes for a cache that a short text does not need. An engine with a decoder gets the weights
 * as they are stored, without an fp32 copy.
 *
 * @param most_batch most tokens of one forward call; 0: a batch suitable for prompts
 * @return also STATUS_UNSUPPORTED when options ask for a 16-bit type and the stage has only fp32
 */
MUST_CHECK enum status decoder_session_open(struct decoder_session *session,
                                            const struct decoder_options *options,
                                            const struct decoder_stages *stages, size_t most_batch,
                                            struct error *error);

/** @return the checkpoint's longest context. */
size_t decoder_session_longest(const struct decoder_session *session);

/** Frees; a zero-initialised one is allowed. */
void decoder_session_close(struct decoder_session *session);

/**
 * @brief Describes where the session computes: "stage 01_cpu_matmul on the CPU", "stage
 *        10_llama2_decoder in bf16 on NVIDIA H200", "... on simt:h200 (times are modelled)".
 * @return @p text
 */
const char *decoder_session_where(const struct decoder_session *session, char *text, size_t size);

/** @return " modelled", to print after a modelled figure; "" if times are measured. */
const char *decoder_session_modelled(const struct decoder_session *session);

#endif
