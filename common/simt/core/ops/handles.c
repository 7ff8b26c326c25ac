#include "common/simt/core/ops/handles.h"

#include <inttypes.h>

#include "common/simt/core/exec.h"

/* Says what a handle is in place of an object. */
static void fail(struct simt_warp *warp, const struct simt_instruction *instruction, uint32_t lane,
                 uint64_t handle, const struct simt_texture *found, bool surface) {
    const char *uses = surface ? "surface" : "texture";
    char text[SIMT_HANDLE_TEXT];
    if (found == NULL) {
        simt_fail(warp, instruction, lane, SIMT_FAULT_TEXTURE, handle,
                  "uses 0x%" PRIx64 " as a %s object, which cudaCreate%sObject() has not made",
                  handle, uses, surface ? "Surface" : "Texture");
        return;
    }
    simt_texture_text(found, text, sizeof text);
    if (found->destroyed) {
        simt_fail(warp, instruction, lane, SIMT_FAULT_FREED, handle, "uses %s, which was destroyed",
                  text);
        warp->block->fault.hint = "move cudaDestroyTextureObject() or cudaDestroySurfaceObject() "
                                  "behind the last kernel that uses the object";
        return;
    }
    simt_fail(warp, instruction, lane, SIMT_FAULT_TEXTURE, handle, "uses %s as a %s object", text,
              uses);
}

const struct simt_texture *simt_handle_group(struct simt_warp *warp,
                                             const struct simt_instruction *instruction,
                                             uint32_t lanes, bool surface, uint32_t *same) {
    const struct simt_run *run = warp->block->run;
    const uint64_t *handles = simt_row(warp, simt_sources(instruction)[0])->u64;
    uint32_t first = (uint32_t)__builtin_ctz(lanes);
    const struct simt_texture *found = simt_textures_find(run->textures, handles[first]);
    *same = 0;
    for (uint32_t rest = lanes; rest != 0; rest &= rest - 1) {
        uint32_t lane = (uint32_t)__builtin_ctz(rest);
        *same |= (uint32_t)(handles[lane] == handles[first]) << lane;
    }
    if (found != NULL && found->surface == surface && !found->destroyed) {
        return found;
    }
    if (run->check != SIMT_CHECK_OFF) {
        fail(warp, instruction, first, handles[first], found, surface);
    }
    return NULL;
}
