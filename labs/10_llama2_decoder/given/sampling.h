/**
 * @file sampling.h
 * @brief Given: draws the next token from logits, on the GPU.
 */
#ifndef WARPBOOK_LABS_10_LLAMA2_DECODER_GIVEN_SAMPLING_H_
#define WARPBOOK_LABS_10_LLAMA2_DECODER_GIVEN_SAMPLING_H_

#include <stddef.h>
#include <stdint.h>

#include "common/base/status.h"
#include "common/device/device.h"

#ifdef __cplusplus
extern "C" {
#endif

/** How tokens are drawn. Device memory, so that a graph of the launch serves all settings. */
struct sampling {
    uint64_t state;    /**< of the generator of common/models/sampler.h; each draw moves it on, a
                          greedy one does not. 0: the logits could not be sampled from */
    float temperature; /**< 0: greedy, the lowest of the best tokens */
    float top_p;       /**< <= 0 or >= 1: off */
    uint32_t top_k;    /**< 0: off */
};

/** @return bytes of workspace that sample_token() wants for V tokens. */
size_t sample_workspace_bytes(size_t V);

/**
 * @brief Starts drawing a token; does not wait for it.
 *
 * As sampler_next() with the same state, but for how sums are rounded: a coin that falls on the
 * edge between two tokens may give the other one. So, too, the state becomes 0 and the token is 0
 * if a logit is NaN, or the largest is not finite: the host reads the state, and ends. With top_k,
 * only the k most likely tokens, equal ones by number, keep their probability, and top_p is a share
 * of theirs.
 *
 * @param sampling device; its state moves on
 * @param logits   device, (V); not changed
 * @param token    device; receives the token
 * @param workspace device, sample_workspace_bytes(V), 256-byte aligned
 * @return STATUS_OK; STATUS_INVALID_ARGUMENT for V = 0 or above INT32_MAX; STATUS_DEVICE
 */
MUST_CHECK enum status sample_token(struct sampling *sampling, const float *logits, size_t V,
                                    int32_t *token, void *workspace, device_stream stream,
                                    struct error *error);

#ifdef __cplusplus
}
#endif

#endif
