/**
 * @file small_llama2.h
 * @brief A small Llama2 on the subject's engine and on the reference: what parity ends with.
 */
#ifndef WARPBOOK_GRADER_HARNESS_SMALL_LLAMA2_H_
#define WARPBOOK_GRADER_HARNESS_SMALL_LLAMA2_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/models/engine.h"
#include "common/models/llama2.h"

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

#ifdef __cplusplus
}
#endif

#endif
