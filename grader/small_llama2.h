/**
 * @file small_llama2.h
 * @brief A small Llama2 on the subject's engine and on the reference: what parity ends with.
 */
#ifndef WARPBOOK_GRADER_SMALL_LLAMA2_H_
#define WARPBOOK_GRADER_SMALL_LLAMA2_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/model/engine.h"
#include "common/model/llama2.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { SMALL_LLAMA2_V = 311, SMALL_LLAMA2_TOKENS = 16 };

/** A model, what it decodes, and what came of it. */
struct small_llama2 {
    struct llama2_config config;
    int32_t tokens[SMALL_LLAMA2_TOKENS];
    size_t prompt; /**< tokens of the first call; the rest come one by one, at least one */
    size_t count;  /**< tokens in all */
    float want[SMALL_LLAMA2_V], got[SMALL_LLAMA2_V]; /**< logits of the last token */
};

/** Odd sizes and grouped heads; a prompt of seven tokens and one more. */
struct small_llama2 small_llama2(void);

/**
 * @brief Decodes with random weights on the reference engine and on @p subject; the running test
 *        fails when one of them does.
 * @param what    what the subject is told when it crashes: "a small Llama2 with your matmul"
 * @param seconds most that its decoding may take
 * @return whether there are logits to compare
 */
bool small_llama2_run(struct small_llama2 *l, const struct engine *subject, const char *what,
                      unsigned seconds);

#ifdef __cplusplus
}
#endif

#endif
