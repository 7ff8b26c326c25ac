/**
 * @file perplexity.h
 * @brief The perplexity of a model on a text, and the program that measures it.
 *
 * Windows. A text of tokens t(0) .. t(n-1) is split into windows of N tokens; the last may be
 * shorter. A window begins with BOS and is independent of the windows before it: token k is
 * predicted from BOS and the earlier tokens of its window. So N positions are used, and each token
 * of the text is predicted once. Without BOS (Qwen2's tokenizer) the first token of a window is not
 * predicted, and the others are predicted from it on.
 *
 *     perplexity = exp(1/n * sum over i of -log p(t(i) | BOS, earlier tokens of its window))
 */
#ifndef WARPBOOK_COMMON_PROGRAMS_DECODER_PERPLEXITY_H_
#define WARPBOOK_COMMON_PROGRAMS_DECODER_PERPLEXITY_H_

#include <stddef.h>
#include <stdint.h>

#include "common/base/status.h"
#include "common/models/language_model.h"
#include "common/programs/decoder/decoder_stages.h"

struct perplexity {
    size_t tokens;  /**< predicted so far */
    size_t windows; /**< begun so far */
    double nats;    /**< sum of -log p */
};

/**
 * @brief Adds the tokens of a text, token by token, with progress on a terminal.
 *
 * @param sum     zero-initialised; after a failure it holds the sums until then
 * @param bos     -1: the tokenizer has none
 * @param tokens  (count), without BOS
 * @param window  N, 1 .. the model's context
 * @param logits  (V), scratch
 * @return STATUS_INTERRUPTED when a signal came (after interrupt_watch()); STATUS_BAD_FORMAT when a
 *         logit is not finite; or the failure of language_model_forward()
 */
MUST_CHECK enum status perplexity_add(struct perplexity *sum, const struct language_model *model,
                                      int32_t bos, const int32_t *tokens, size_t count,
                                      size_t window, float *logits, struct error *error);

/** Another model on the same tokens. */
struct perplexity_peer {
    const struct language_model *model;
    float *logits;         /**< (V), scratch */
    struct perplexity sum; /**< of the peer */
    double divergence;     /**< sum of KL(peer || model) over tokens, in nats */
    size_t same;           /**< tokens for which both have the same largest logit */
};

/** perplexity_add() of a model and of its peer, whose logits are compared token by token. */
MUST_CHECK enum status perplexity_add_compared(struct perplexity *sum, struct perplexity_peer *peer,
                                               const struct language_model *model, int32_t bos,
                                               const int32_t *tokens, size_t count, size_t window,
                                               float *logits, struct error *error);

/**
 * @brief The same with a window that moves through the text and is computed anew for each token: it
 *        is predicted from the last @p window tokens before it, BOS among the first.
 * @param model of a batch and a context of at least @p window
 */
MUST_CHECK enum status perplexity_add_recomputed(struct perplexity *sum,
                                                 const struct language_model *model, int32_t bos,
                                                 const int32_t *tokens, size_t count, size_t window,
                                                 float *logits, struct error *error);

/** @return -log softmax(logits (V))[token], computed in double; not finite when a logit is not. */
double perplexity_nats(const float *logits, size_t V, int32_t token);

/** @return KL(p || q) in nats, for p and q the softmax of logits (V), in double. */
double perplexity_divergence(const float *p, const float *q, size_t V);

/**
 * @brief main() of the program: reads the command line, writes figures to stdout.
 * @param stages --stage chooses one of them
 * @return exit status: 0; 1 after one line on stderr; 128 + the signal after SIGINT or SIGTERM
 */
int perplexity_main(int argc, char **argv, const struct decoder_stages *stages);

#endif
