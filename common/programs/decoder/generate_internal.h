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
#include "common/programs/decoder/llama2_session.h"
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
    struct llama2 *model;
    const struct bpe *tokenizer;
    double (*now)(void);
    struct sampler sampler;
    struct text_stream stream;
    size_t batch;    /**< most tokens of one forward call */
    size_t context;  /**< positions that may be used */
    bool roll;       /**< when the context is full, forget its older half instead of ending */
    int32_t *tokens; /**< (context): the tokens fed at positions 0 .. position - 1 */
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
                                         const struct llama2_session *session, size_t context,
                                         bool roll, const struct llama2_sampling *sampling,
                                         struct error *error);

/** Frees; a zero-initialised one is allowed. */
void generation_free(struct generation *generation);

/** @return positions that are left before the context is full; SIZE_MAX when it rolls. */
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

/**
 * @brief Chat as llama2.c formats it, until standard input or the context ends.
 * @param most_answer   tokens of an answer
 * @param system_prompt NULL: ask for it
 * @param first_prompt  the first thing the user says; NULL: ask for it
 * @return STATUS_INTERRUPTED when a signal came
 */
MUST_CHECK enum status generation_chat(struct generation *generation, size_t most_answer,
                                       const char *system_prompt, const char *first_prompt,
                                       struct error *error);

#endif
