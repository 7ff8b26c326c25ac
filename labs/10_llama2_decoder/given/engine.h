/**
 * @file engine.h
 * @brief Stage 10 of the course: the stage before it with lab 10's decoder.
 */
#ifndef WARPBOOK_LABS_10_LLAMA2_DECODER_GIVEN_ENGINE_H_
#define WARPBOOK_LABS_10_LLAMA2_DECODER_GIVEN_ENGINE_H_

#include "common/base/status.h"
#include "common/models/engine.h"
#include "common/models/llama2_decoder.h"
#include "labs/10_llama2_decoder/decoder.h"

#ifdef __cplusplus
extern "C" {
#endif

/** A decoder: the four functions of decoder.h, or four like them. */
struct decoder_functions {
    enum status (*create)(struct decoder **decoder, const struct decoder_model *model,
                          const struct decoder_io *io, size_t batch, device_stream stream,
                          struct error *error);
    enum status (*prefill)(struct decoder *decoder, const int32_t *tokens, size_t count,
                           size_t position, struct error *error);
    enum status (*step)(struct decoder *decoder, size_t position, struct error *error);
    void (*free)(struct decoder *decoder);
};

/**
 * @brief Makes the engine.
 *
 * Its decoder takes heads of up to KV_MAX_HS channels; other models run operator by operator. It
 * draws tokens itself (decoder_begin(), decoder_next()), one step ahead of who reads them.
 *
 * @return STATUS_OK, STATUS_OUT_OF_MEMORY, or what device_open() says
 */
MUST_CHECK enum status engine_decoder_create(struct engine *engine, struct error *error);

/** As engine_decoder_create() with another decoder, for comparing. @param functions copied */
MUST_CHECK enum status engine_decoder_create_with(struct engine *engine,
                                                  const struct decoder_functions *functions,
                                                  struct error *error);

/** How a decoder gets other weights than the whole model's: lab 15's parts. */
struct decoder_loading {
    void *context;
    /** Loads what the decoder reads. @param loaded receives it, for the two functions below */
    enum status (*load)(void *context, const struct llama2_decoder_model *whole,
                        struct decoder_model *model, void **loaded, struct error *error);
    void (*unload)(void *loaded);
    /** In place of decoder_functions.create. */
    enum status (*create)(void *loaded, struct decoder **decoder, const struct decoder_model *model,
                          const struct decoder_io *io, size_t batch, device_stream stream,
                          struct error *error);
};

/** As engine_decoder_create_with(), with other weights. @param loading copied */
MUST_CHECK enum status engine_decoder_create_loading(struct engine *engine,
                                                     const struct decoder_functions *functions,
                                                     const struct decoder_loading *loading,
                                                     struct error *error);

#ifdef __cplusplus
}
#endif

#endif
