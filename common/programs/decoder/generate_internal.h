/**
 * @file generate_internal.h
 * @brief A model that writes a text, for both modes of the program, and the text as it is printed.
 */
#ifndef WARPBOOK_COMMON_PROGRAMS_DECODER_GENERATE_INTERNAL_H_
#define WARPBOOK_COMMON_PROGRAMS_DECODER_GENERATE_INTERNAL_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "common/base/status.h"
#include "common/models/llama2.h"
#include "common/models/sampler.h"
#include "common/programs/decoder/chat_template.h"
#include "common/programs/decoder/decoder_session.h"
#include "common/tokenizers/bpe/bpe.h"

/**
 * Prints text piece by piece, always as valid UTF-8. Zero-initialise all but `out`.
 *
 * A byte-fallback tokenizer may split a character into several tokens; its bytes are held back
 * until the character is complete. Control characters other than white space are dropped, so that
 * no model can move a terminal's cursor.
 */
struct text_stream {
    FILE *out;
    unsigned char pending[4]; /**< bytes of an incomplete character */
    size_t count;
    bool begun; /**< some text was written since the last end */
};

/** Prints @p length bytes and flushes. */
void text_stream_write(struct text_stream *stream, const char *bytes, size_t length);

/** Ends the text; an incomplete character becomes U+FFFD. */
void text_stream_finish(struct text_stream *stream);

/**
 * Tokens, and the seconds that they took by the session's clock. The caller of generation_next()
 * adds the seconds of many calls at once, because reading the clock waits for the device.
 */
struct generation_speed {
    size_t tokens;
    double seconds;
};

/** A model that writes a text. */
struct generation {
    struct language_model model; /**< the session's */
    struct ranks *ranks;         /**< NULL: one GPU */
    const struct bpe *tokenizer;
    struct llama2_ends ends; /**< tokens that end a text */
    double (*now)(void);
    struct sampler sampler;
    struct text_stream stream;
    size_t batch;   /**< most tokens of one forward call */
    size_t context; /**< positions that may be used */
    size_t longest; /**< the checkpoint's context, at least as many */
    bool roll;      /**< when the context is full, forget its older half instead of ending */
    bool endless;   /**< the model itself forgets: positions have no end */
    int32_t
        *tokens; /**< (context): the tokens fed at positions 0 .. position - 1; endless: unused */
    size_t position; /**< of the next token */
    int32_t pending; /**< sampled, but not fed yet; -1: none */
    float *logits;   /**< (V) */
    bool has_logits; /**< logits are those after the last token fed */
    bool draws;      /**< the engine samples tokens itself */
    bool begun;      /**< llama2_begin() was called since the last token that the host fed */
    size_t rolls;    /**< how often the older half was forgotten */
    struct generation_speed prompt, generated;
};

/**
 * @brief Makes a generation for an open session.
 * @param context positions that may be used, 1 .. the model's
 * @param sampling its seed is not 0
 */
MUST_CHECK enum status generation_create(struct generation *generation,
                                         const struct decoder_session *session, size_t context,
                                         bool roll, const struct llama2_sampling *sampling,
                                         struct error *error);

/** Frees; a zero-initialised one is allowed. */
void generation_free(struct generation *generation);

/** Begins a new text, as a new generation would, but counts on. @param seed as for creation */
void generation_restart(struct generation *generation, uint64_t seed);

/** @return whether the text ends with the context: it neither rolls nor is endless. */
bool generation_ends(const struct generation *generation);

/** @return positions that are left before the context is full; SIZE_MAX when it rolls or is
 * endless. */
size_t generation_room(const struct generation *generation);

/**
 * @brief Feeds the tokens of a prompt in batches, and shows progress on a terminal.
 * @return STATUS_INTERRUPTED when a signal came (program.h); STATUS_TOO_LONG beyond the context
 */
MUST_CHECK enum status generation_prompt(struct generation *generation, const int32_t *tokens,
                                         size_t count, struct error *error);

/**
 * @brief Samples the next token. It is fed here, or at the next call of this function or of
 *        generation_prompt().
 * @return STATUS_INTERRUPTED when a signal came; STATUS_TOO_LONG when the token before it cannot be
 *         fed
 */
MUST_CHECK enum status generation_next(struct generation *generation, int32_t *token,
                                       struct error *error);

/** Prints one token as it reads after @p previous. @return STATUS_OK or STATUS_IO */
MUST_CHECK enum status generation_print(struct generation *generation, int32_t previous,
                                        int32_t token, struct error *error);

/** Ends the text with a line feed. @return STATUS_OK or STATUS_IO */
MUST_CHECK enum status generation_end_text(struct generation *generation, struct error *error);

/**
 * @brief Ends the text after the work that wrote it: also a text that was cut short by a failure or
 *        a signal.
 * @param status of that work
 * @return status, or STATUS_IO
 */
MUST_CHECK enum status generation_end_work(struct generation *generation, enum status status,
                                           struct error *error);

/** Why a text ended. */
enum answer_stop { ANSWER_END, ANSWER_LENGTH, ANSWER_CONTEXT, ANSWER_INTERRUPTED };

/** How a prompt is answered. */
struct answer_options {
    size_t
        steps; /**< most tokens, the prompt's included, BOS not; 0: as many as there is room for */
    bool echo; /**< print the prompt before the text */
    bool marked; /**< what spells an added token in the prompt is that token */
};

/** What was written. */
struct answer {
    size_t prompt_tokens; /**< BOS included */
    int32_t *tokens;      /**< (count): written after the prompt; without the one that ended it */
    size_t count, capacity;
    double prompt_seconds, seconds;
    enum answer_stop stop;
};

/**
 * @brief Continues a prompt from the beginning of a context, and prints to the generation's stream.
 * @param answer receives what was written, also if a signal came; free with answer_free()
 * @return STATUS_INTERRUPTED when a signal came; STATUS_TOO_LONG for a prompt beyond the context;
 *         STATUS_UNSUPPORTED for an empty prompt if the tokenizer has no BOS
 */
MUST_CHECK enum status answer_write(struct generation *generation,
                                    const struct answer_options *options, const char *prompt,
                                    size_t length, struct answer *answer, struct error *error);

/** Frees; a zero-initialised one is allowed. */
void answer_free(struct answer *answer);

/** A prompt of a file. */
struct prompt {
    const char *text;       /**< @p length bytes */
    size_t length, line;    /**< line counts from 1 */
    const struct cJSON *id; /**< "id" of its JSON object, or NULL */
};

/** Called for each prompt. */
typedef enum status prompt_visitor(void *context, const struct prompt *prompt, struct error *error);

/**
 * @brief Reads a file with a prompt a line, or "-", standard input, whose lines are taken as they
 *        arrive. A line that begins with { is a JSON object with the key "prompt". Empty lines are
 *        skipped.
 * @return STATUS_OK; the first other status of @p visit, or STATUS_BAD_FORMAT, with file and line;
 *         STATUS_NOT_FOUND; STATUS_IO; STATUS_INTERRUPTED when a signal came
 */
MUST_CHECK enum status prompts_read(const char *path, prompt_visitor *visit, void *context,
                                    struct error *error);

/** Prints an answer to standard output as a line of JSON. @param text what was written */
MUST_CHECK enum status answer_print_json(const struct answer *answer, const struct prompt *prompt,
                                         const char *text, const char *stage, bool modelled,
                                         struct error *error);

/**
 * @brief Chat in a template, until standard input or the context ends.
 * @param most_answer   tokens of an answer
 * @param system_prompt NULL: ask for it
 * @param first_prompt  the first thing the user says; NULL: ask for it
 * @return STATUS_INTERRUPTED when a signal came
 */
MUST_CHECK enum status generation_chat(struct generation *generation,
                                       const struct chat_template *template, size_t most_answer,
                                       const char *system_prompt, const char *first_prompt,
                                       struct error *error);

#endif
