/**
 * @file prefill_in_bands.cu
 * @brief d6's prefill for a band of the prompt's tokens at a time, for the middling submission.
 *
 * Activations need room for a band only, but every band reads all weights again, and computes
 * logits that nobody reads but the last one's.
 */
#include "solutions/10_llama2_decoder/steps/ladder.h"

enum { BAND = 32 /* tokens */ };

enum status decoder_prefill_in_bands(struct decoder *d, const int32_t *tokens, size_t count,
                                     size_t position, struct error *error) {
    for (size_t first = 0; first < count; first += BAND) {
        size_t band = count - first < BAND ? count - first : BAND;
        TRY(decoder_d6_prefill(d, tokens + first, band, position + first, error));
    }
    return STATUS_OK;
}
