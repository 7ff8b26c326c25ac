/**
 * @file handles.h
 * @brief From the handles in a warp's registers to texture and surface objects.
 */
#ifndef WARPBOOK_COMMON_SIMT_CORE_OPS_HANDLES_H_
#define WARPBOOK_COMMON_SIMT_CORE_OPS_HANDLES_H_

#include <stdbool.h>
#include <stdint.h>

#include "common/simt/memory/run.h"
#include "common/simt/texture/texture.h"

enum { SIMT_HANDLE_TEXT = 160 };

/**
 * @brief Finds the object behind src[0] of the first of some lanes.
 * @param lanes   some active lanes, at least one
 * @param surface what it must be
 * @param same    receives those of them with the same handle
 * @return NULL when there is no such object: simt_fail() was called, or checks are off
 */
const struct simt_texture *simt_handle_group(struct simt_warp *warp,
                                             const struct simt_instruction *instruction,
                                             uint32_t lanes, bool surface, uint32_t *same);

#endif
