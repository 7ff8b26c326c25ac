/**
 * @file model_sizes.h
 * @brief The sizes of a low-bit decoder's model, from a configuration.
 */
#ifndef WARPBOOK_SOLUTIONS_13_LOW_BIT_DECODER_MODEL_SIZES_H_
#define WARPBOOK_SOLUTIONS_13_LOW_BIT_DECODER_MODEL_SIZES_H_

#include "common/models/llama2.h"
#include "labs/10_llama2_decoder/decoder.h"

/** @return the model, without its weights; its embedding is bf16. */
static inline struct decoder_model model_sizes_of(const struct llama2_config *c) {
    return (struct decoder_model){.C = c->C,
                                  .hidden = c->hidden,
                                  .L = c->L,
                                  .NH = c->NH,
                                  .KVH = c->KVH,
                                  .HS = c->HS,
                                  .V = c->V,
                                  .T = c->T,
                                  .eps = c->norm_eps,
                                  .theta = c->rope_theta,
                                  .layout = c->rope_layout,
                                  .dtype = NN_BF16};
}

#endif
