/**
 * @file perplexity.h
 * @brief How well a Llama2 predicts a text, and the program that says it.
 *
 * Windows. A text of tokens t(0) .. t(n-1) is cut into windows of N, the last may be shorter. Each
 * begins with BOS and knows nothing of the ones before: token k of a window is predicted from BOS
 * and the window's tokens before it, so that N positions are used and each token of the text is
 * predicted once.
 *
 *     perplexity = exp(1/n * sum over i of -log p(t(i) | BOS, earlier tokens of its window))
 */
#ifndef WARPBOOK_COMMON_PROGRAMS_DECODER_PERPLEXITY_H_
#define WARPBOOK_COMMON_PROGRAMS_DECODER_PERPLEXITY_H_

#include <stddef.h>
#include <stdint.h>

#include "common/base/status.h"
#include "common/models/llama2.h"
#include "common/programs/decoder/llama2_stages.h"

#ifdef __cplusplus
extern "C" {
#endif

struct perplexity {
    size_t tokens;  /**< predicted so far */
    size_t windows; /**< begun so far */
    double nats;    /**< sum of -log p */
};

/**
 * @brief Adds the tokens of a text, token by token, with progress on a terminal.
 *
 * @param sum     zero-initialised; holds what was done also when this fails
 * @param tokens  (count), without BOS
 * @param window  N, 1 .. the model's context
 * @param logits  (V), scratch
 * @return STATUS_INTERRUPTED when a signal came (interrupt_watch() is on); STATUS_BAD_FORMAT when
 * the model gives no numbers; or what llama2_forward() says
 */
MUST_CHECK enum status perplexity_add(struct perplexity *sum, struct llama2 *model,
                                      const int32_t *tokens, size_t count, size_t window,
                                      float *logits, struct error *error);

/** @return -log softmax(logits (V))[token], computed in double; not finite when a logit is not. */
double perplexity_nats(const float *logits, size_t V, int32_t token);

/**
 * @brief main() of the program: reads the command line, writes figures to stdout.
 * @param stages with more than one, --stage chooses
 * @return exit status: 0; 1 after one line on stderr; 128 + the signal after SIGINT or SIGTERM
 */
int perplexity_main(int argc, char **argv, const struct llama2_stages *stages);

#ifdef __cplusplus
}
#endif

#endif
