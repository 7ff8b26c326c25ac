#include "common/simt/memory/access/sync.h"

void simt_sync_release(struct simt_warp *warp, uint32_t flags) {
    struct simt_block *block = warp->block;
    if (block->shadow == NULL) {
        return;
    }
    if ((flags & (SIMT_RELEASES_BLOCK | SIMT_RELEASES_DEVICE)) != 0) {
        simt_shadow_release(block->shadow, warp->index);
    }
    if ((flags & SIMT_RELEASES_DEVICE) != 0 && block->shadow->watch != NULL) {
        simt_history_release(block->shadow->watch->blocks, &block->agent);
    }
}

void simt_sync_acquire(struct simt_warp *warp, uint32_t flags) {
    struct simt_block *block = warp->block;
    if ((flags & SIMT_ACQUIRES) == 0 || block->shadow == NULL) {
        return;
    }
    simt_shadow_acquire(block->shadow, warp->index);
    if (block->shadow->watch != NULL) {
        simt_history_acquire(block->shadow->watch->blocks, &block->agent);
    }
}

static bool has_any(const struct ptx_instruction *source, const char *const *names) {
    for (; *names != NULL; names++) {
        if (ptx_has_modifier(source, *names)) {
            return true;
        }
    }
    return false;
}

uint32_t simt_sync_flags(const struct ptx_instruction *source) {
    static const char *const releasing[] = {"release", "acq_rel", "sc", NULL};
    static const char *const acquiring[] = {"acquire",  "acq_rel", "sc", "relaxed",
                                            "volatile", "mmio",    NULL};
    bool fence = strcmp(source->base, "fence") == 0 || strcmp(source->base, "membar") == 0;
    bool atomic = strcmp(source->base, "atom") == 0 || strcmp(source->base, "red") == 0;
    uint32_t flags = 0;
    if (fence || atomic || has_any(source, acquiring)) {
        flags |= SIMT_ACQUIRES;
    }
    if (fence || has_any(source, releasing)) {
        flags |= ptx_has_modifier(source, "cta") ? SIMT_RELEASES_BLOCK : SIMT_RELEASES_DEVICE;
    }
    return flags;
}
