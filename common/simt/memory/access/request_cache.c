/*
 * Where the sectors of a global request come from: L1, L2 or device memory.
 */
#include "common/simt/memory/access/request.h"
#include "common/simt/memory/cache/l1.h"
#include "common/simt/memory/cache/l2.h"

enum { SECTORS = 4 };

struct visit {
    const struct simt_caches *caches;
    struct simt_counters *counters;
    enum simt_l2_use use;
    bool l1;
};

static void visit_line(const struct visit *v, uint64_t line, uint32_t sectors) {
    uint32_t found = v->l1 ? simt_l1_touch(v->caches->l1, line, sectors) : 0;
    if (v->use == SIMT_L2_LOAD) { /* the others go through */
        v->counters->l1_hit_sectors += (uint64_t)__builtin_popcount(found);
        sectors &= ~found;
    }
    if (v->caches->l2 != NULL && sectors != 0) {
        v->counters->dram_bytes +=
            simt_l2_touch(v->caches->l2, line, sectors, v->use, v->caches->part);
    }
}

static enum simt_l2_use use_of(enum simt_access_kind kind) {
    return kind == SIMT_READ ? SIMT_L2_LOAD : kind == SIMT_WRITE ? SIMT_L2_STORE : SIMT_L2_UPDATE;
}

void simt_request_cache(const struct simt_request *request) {
    const struct simt_block *block = request->warp->block;
    const struct simt_pattern *pattern = request->pattern;
    const struct visit v = {.caches = &block->caches,
                            .counters = block->counters,
                            .use = use_of(request->kind),
                            .l1 = block->caches.l1 != NULL && request->kind != SIMT_ATOMIC &&
                                  !request->instruction->bypasses_l1};
    int64_t base = (int64_t)(request->first / 32 - SECTORS * block->caches.first_line);
    uint64_t line = 0;
    uint32_t sectors = 0;
    for (uint32_t n = 0; n < pattern->cost; n++) {
        uint64_t sector = (uint64_t)(base + pattern->sectors[n]);
        if (sector / SECTORS != line && sectors != 0) {
            visit_line(&v, line, sectors);
            sectors = 0;
        }
        line = sector / SECTORS;
        sectors |= 1u << sector % SECTORS;
    }
    if (sectors != 0) {
        visit_line(&v, line, sectors);
    }
}
