/**
 * @file case.h
 * @brief A random Llama2 in device memory, a text through a decoder, and what it must make of it.
 */
#ifndef WARPBOOK_LABS_10_LLAMA2_DECODER_PROBLEM_CASE_H_
#define WARPBOOK_LABS_10_LLAMA2_DECODER_PROBLEM_CASE_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/rng.h"
#include "common/base/status.h"
#include "common/models/engine.h"
#include "common/models/llama2.h"
#include "common/models/llama2_device.h"
#include "common/models/rounded_llama2.h"
#include "common/testing/device_buffer.h"
#include "labs/10_llama2_decoder/given/engine.h"
#include "labs/10_llama2_decoder/problem/steps.h"

#ifdef __cplusplus
extern "C" {
#endif

/** Sizes of a model; C is NH * HS. */
struct decoder_size {
    size_t NH, KVH, HS, hidden, L, V, T;
    enum nn_dtype dtype;
    enum nn_rope_layout layout;
    bool own_classifier; /**< it is not the embedding */
};

struct decoder_tensor;

/** A model: on the device for the decoder, on the host for the reference. */
struct decoder_net {
    struct decoder_size size;
    struct rounded_llama2 weights;
    struct engine reference;
    struct llama2 *llama2; /**< on the reference engine; NULL: not wanted */
    struct llama2_device device;
    struct decoder_layer *layers;
    struct decoder_model model;
    double logit_scale;             /**< of the larger logits, however few there are */
    struct decoder_tensor *tensors; /**< what the device holds */
    size_t count;
};

/** @return the sizes as models have them. */
struct llama2_config decoder_size_config(const struct decoder_size *size);

/**
 * @brief Makes random weights.
 * @param unchecked makes no model for the reference, and keeps nothing for decoder_net_intact()
 */
MUST_CHECK enum status decoder_net_create(struct decoder_net *net, const struct decoder_size *size,
                                          uint64_t seed, bool unchecked, struct error *error);

/** @return the model, as an engine is given it. */
struct llama2_decoder_model decoder_net_for_engine(const struct decoder_net *net, size_t batch);

/** @return false when a weight is not what it was, or cannot be read */
bool decoder_net_intact(const struct decoder_net *net);

void decoder_net_free(struct decoder_net *net);

/** A text on a decoder. */
struct decoder_case {
    char name[200]; /**< "fp32 C=32 hidden=64 L=2 NH=4 KVH=2 V=61 T=48, batch 16" */
    const struct decoder_net *net;
    struct decoder_functions functions;
    decoder_steps_function *steps; /**< several at once; NULL: by functions.step, one by one */
    struct decoder *decoder;
    device_stream stream;
    struct rng *rng;
    struct device_buffer logits, token, sampling;
    int32_t *text;     /**< (T) */
    size_t fed;        /**< tokens of it */
    float *got, *want; /**< (V): logits behind the last one */
};

/** Makes a decoder; all it is given holds NaN. @param guarded whether there are canaries */
MUST_CHECK enum status decoder_case_create(struct decoder_case *c, const struct decoder_net *net,
                                           const struct decoder_functions *functions, size_t batch,
                                           struct rng *rng, device_stream stream, bool guarded,
                                           struct error *error);

void decoder_case_free(struct decoder_case *c);

/**
 * @brief Feeds random tokens at `position` and compares the logits.
 * @param text receives what is wrong, or stays ""
 */
MUST_CHECK enum status decoder_case_feed(struct decoder_case *c, size_t count, size_t position,
                                         char *text, size_t size, struct error *error);

/**
 * @brief Draws a token behind those fed, feeds it, and compares token, state and logits.
 * @param own what it is drawn from, (V) of host memory; NULL: the logits there
 */
MUST_CHECK enum status decoder_case_step(struct decoder_case *c, const struct sampling *how,
                                         const float *own, char *text, size_t size,
                                         struct error *error);

/** The same with a token's position said; of tokens fed only those before it count. */
MUST_CHECK enum status decoder_case_step_at(struct decoder_case *c, size_t position,
                                            const struct sampling *how, const float *own,
                                            char *text, size_t size, struct error *error);

/**
 * @brief Starts greedy steps behind the tokens fed, one upon the other, and waits at the end alone;
 *        then compares each token, and the last logits.
 */
MUST_CHECK enum status decoder_case_steps_at_once(struct decoder_case *c, size_t steps, char *text,
                                                  size_t size, struct error *error);

/** Largest |got - want| that passes, relative to the largest |want|, or logit_scale if that is
 * more. */
double decoder_tolerance(enum nn_dtype dtype);

#ifdef __cplusplus
}
#endif

#endif
