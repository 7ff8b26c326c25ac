/**
 * @file llama2_place.h
 * @brief What a table of stages on the device says of it: struct llama2_stages, open_place.
 */
#ifndef WARPBOOK_COMMON_PROGRAMS_DECODER_LLAMA2_PLACE_H_
#define WARPBOOK_COMMON_PROGRAMS_DECODER_LLAMA2_PLACE_H_

#include "common/base/status.h"
#include "common/programs/decoder/llama2_stages.h"

#ifdef __cplusplus
extern "C" {
#endif

/** Opens the GPU or simt and says which it is. @return what device_open() says */
MUST_CHECK enum status llama2_place_open(struct llama2_place *place, struct error *error);

#ifdef __cplusplus
}
#endif

#endif
