/**
 * @file case.h
 * @brief A random Llama2 in device memory, a text run through a decoder, and its expected results.
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
    bool own_classifier; /**< the classifier is not the embedding */
};

struct decoder_tensor;

/** A model: on the device for the decoder, on the host for the reference. */
struct decoder_net {
    struct decoder_size size;
    struct rounded_llama2 weights;
    struct engine reference;
    struct llama2 *llama2; /**< on the reference engine; NULL: not checked */
    struct llama2_device device;
    struct decoder_layer *layers;
    struct decoder_model model;
    double logit_scale;             /**< size of large logits, also where V is small */
    struct decoder_tensor *tensors; /**< the device's tensors, for decoder_net_intact() */
    size_t count;
};

/** @return the sizes as a model's configuration. */
struct llama2_config decoder_size_config(const struct decoder_size *size);

/**
 * @brief Creates random weights.
 * @param unchecked creates no reference, and no copies for decoder_net_intact()
 */
MUST_CHECK enum status decoder_net_create(struct decoder_net *net, const struct decoder_size *size,
                                          uint64_t seed, bool unchecked, struct error *error);

/** @return the model as an engine's argument. */
struct llama2_decoder_model decoder_net_for_engine(const struct decoder_net *net, size_t batch);

/** @return false if a weight has changed or cannot be read */
bool decoder_net_intact(const struct decoder_net *net);

void decoder_net_free(struct decoder_net *net);

/** A text on a decoder. */
struct decoder_case {
    char name[200]; /**< "fp32 C=32 hidden=64 L=2 NH=4 KVH=2 V=61 T=48, batch 16" */
    const struct decoder_net *net;
    struct decoder_functions functions;
    decoder_steps_function *steps; /**< runs several steps; NULL: functions.step, one by one */
    struct decoder *decoder;
    device_stream stream;
    struct rng *rng;
    struct device_buffer logits, token, sampling;
    int32_t *text;     /**< (T) */
    size_t fed;        /**< tokens of the text that the decoder has been fed */
    float *got, *want; /**< (V): logits after the last token */
};

/** Creates a decoder, whose buffers hold NaN. @param guarded whether canaries surround them */
MUST_CHECK enum status decoder_case_create(struct decoder_case *c, const struct decoder_net *net,
                                           const struct decoder_functions *functions, size_t batch,
                                           struct rng *rng, device_stream stream, bool guarded,
                                           struct error *error);

void decoder_case_free(struct decoder_case *c);

/**
 * @brief Feeds random tokens at `position` and compares the logits.
 * @param text receives the mistake, or stays ""
 */
MUST_CHECK enum status decoder_case_feed(struct decoder_case *c, size_t count, size_t position,
                                         char *text, size_t size, struct error *error);

/**
 * @brief Draws a token after those fed, feeds it, and compares token, state and logits.
 * @param own logits to draw from, (V) of host memory; NULL: those of the last call
 */
MUST_CHECK enum status decoder_case_step(struct decoder_case *c, const struct sampling *how,
                                         const float *own, char *text, size_t size,
                                         struct error *error);

/** The same at a given position: tokens fed at or after it are forgotten. */
MUST_CHECK enum status decoder_case_step_at(struct decoder_case *c, size_t position,
                                            const struct sampling *how, const float *own,
                                            char *text, size_t size, struct error *error);

/**
 * @brief Starts greedy steps after the tokens fed, and waits after the last one only; then compares
 *        each token, and the last logits.
 */
MUST_CHECK enum status decoder_case_steps_at_once(struct decoder_case *c, size_t steps, char *text,
                                                  size_t size, struct error *error);

/** Largest |got - want| that passes, relative to the larger of max |want| and logit_scale. */
double decoder_tolerance(enum nn_dtype dtype);

#ifdef __cplusplus
}
#endif

#endif
