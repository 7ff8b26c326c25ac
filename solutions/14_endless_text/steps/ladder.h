/**
 * @file ladder.h
 * @brief The steps of solution 14: each is an endless_attention() and an endless_add_norms().
 */
#ifndef WARPBOOK_SOLUTIONS_14_ENDLESS_TEXT_STEPS_LADDER_H_
#define WARPBOOK_SOLUTIONS_14_ENDLESS_TEXT_STEPS_LADDER_H_

#include "labs/14_endless_text/endless_text.h"
#include "labs/14_endless_text/given/decoder.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum status endless_attention_function(const struct endless_attention *attention,
                                               void *workspace, device_stream stream,
                                               struct error *error);
typedef enum status endless_add_norms_function(const struct endless_add_norms *add,
                                               device_stream stream, struct error *error);

endless_attention_function endless_attention_v1_ring;
endless_attention_function endless_attention_v2_warps;
endless_attention_function endless_attention_v3_vectors;
endless_attention_function endless_attention_v4_split;

endless_add_norms_function endless_add_norms_v2_blocks;
endless_add_norms_function endless_add_norms_v5_fused;

/** Attention of steps v3 and v4. @param split whether the places may be split over blocks */
MUST_CHECK enum status endless_team_attention(const struct endless_attention *attention,
                                              void *workspace, bool split, device_stream stream,
                                              struct error *error);

/** v6: a token of GPT-NeoX in one persistent kernel. */
extern const struct endless_whole endless_whole_v6_one_kernel;

#ifdef __cplusplus
}
#endif

#endif
