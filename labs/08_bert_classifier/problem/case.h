/**
 * @file case.h
 * @brief A random BERT in device memory, random batches for it, and their expected results.
 */
#ifndef WARPBOOK_LABS_08_BERT_CLASSIFIER_PROBLEM_CASE_H_
#define WARPBOOK_LABS_08_BERT_CLASSIFIER_PROBLEM_CASE_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/rng.h"
#include "common/base/status.h"
#include "common/checkpoints/bert/bert_random.h"
#include "common/models/bert.h"
#include "common/models/engine.h"
#include "common/testing/device_buffer.h"
#include "labs/08_bert_classifier/encoder.h"

#ifdef __cplusplus
extern "C" {
#endif

/** A model: on the device for the encoder, on the host for the reference. */
struct encoder_net {
    struct bert_random random;
    struct engine reference;
    struct bert *bert; /**< on the reference engine */
    struct encoder_model model;
    struct encoder_layer *layers;
    struct encoder_tensor *tensors; /**< of the model, in device memory */
    size_t count;
};

/**
 * @brief Makes random weights; V, T, types and labels of @p config as the others.
 * @param max_tokens most rows of a batch for the reference; 0: no reference
 */
MUST_CHECK enum status encoder_net_create(struct encoder_net *net, const struct bert_config *config,
                                          uint64_t seed, size_t max_tokens, struct error *error);

/** @return false if a weight has changed or cannot be read */
bool encoder_net_intact(const struct encoder_net *net);

void encoder_net_free(struct encoder_net *net);

/** Sizes of a batch. */
struct encoder_spec {
    const int32_t *lengths; /**< (B), in tokens */
    size_t B;
    bool types, hidden; /**< whether types are given, whether hidden is wanted */
};

/** One batch with the reference's result. */
struct encoder_case {
    char name[200]; /**< "C=32 hidden=64 L=2 NH=4, 3 sequences of 1 7 13 tokens, with types" */
    const struct encoder_net *net;
    struct encoder_batch batch;    /**< its lists in page-locked memory, copies of the next */
    int32_t *ids, *types, *starts; /**< the grader's own, which the encoder never sees */
    float *want;                   /**< (rows, C) */
    struct device_buffer first, hidden;
};

/**
 * @brief Creates a batch, and its result by the reference engine unless @p unchecked.
 * @param guarded whether canaries surround first and hidden
 */
MUST_CHECK enum status encoder_case_create(struct encoder_case *c, const struct encoder_net *net,
                                           const struct encoder_spec *spec, struct rng *rng,
                                           bool guarded, bool unchecked, struct error *error);

/** Draws other ids, and types if there are any; the reference's result is not renewed. */
void encoder_case_renew(struct encoder_case *c, struct rng *rng);

void encoder_case_free(struct encoder_case *c);

/** Fills first and hidden with NaN, as they are before every call. */
MUST_CHECK enum status encoder_case_reset(struct encoder_case *c, struct error *error);

/**
 * @brief Compares first and hidden with the reference, canaries and all; the caller has
 *        synchronised.
 * @param text receives the mistake, or ""
 */
MUST_CHECK enum status encoder_case_check(const struct encoder_case *c, char *text, size_t size,
                                          struct error *error);

/** Largest |got - want| that passes, relative to the largest |want| of the row. */
#define ENCODER_TOLERANCE 1e-4

#ifdef __cplusplus
}
#endif

#endif
