/*
 * What the uses of a pattern add to the counters of the launch and of the site.
 */
#include <string.h>

#include "common/simt/memory/access/pattern.h"

/* A pattern with the number of its uses: of all, and of those that are requests of their own. */
struct tally {
    struct simt_pattern *pattern;
    struct simt_pattern_key key;
    uint64_t uses, requests;
};

static void count_global(const struct tally *t, struct simt_counters *counters) {
    uint64_t sectors = t->uses * t->pattern->cost;
    for (uint32_t sector = 0; sector < 4; sector++) {
        if (t->pattern->uses[sector] > 0) {
            counters->global_lines += t->pattern->uses[sector] *
                                      simt_pattern_lines(t->pattern, 32 * sector + t->key.phase);
        }
    }
    counters->l2_sectors += sectors;
    counters->global_bytes += t->uses * t->pattern->active * t->key.bytes;
    if (t->key.kind == SIMT_READ) {
        counters->global_load_requests += t->requests;
        counters->global_load_sectors += sectors;
    } else {
        counters->global_store_requests += t->requests;
        counters->global_store_sectors += sectors;
    }
}

static void count_shared(const struct tally *t, struct simt_counters *counters) {
    uint64_t wavefronts = t->uses * t->pattern->cost;
    counters->shared_bank_conflicts += wavefronts - t->uses * t->pattern->least;
    if (t->key.kind == SIMT_READ) {
        counters->shared_load_requests += t->requests;
        counters->shared_load_wavefronts += wavefronts;
    } else {
        counters->shared_store_requests += t->requests;
        counters->shared_store_wavefronts += wavefronts;
    }
}

static void count_atomic(const struct tally *t, struct simt_counters *counters) {
    uint64_t places = (uint64_t)__builtin_popcount(simt_pattern_leaders(t->pattern));
    counters->atomic_requests += t->requests;
    counters->atomic_lanes += t->uses * t->pattern->active;
    counters->l2_sectors += t->key.cost == SIMT_COST_SECTORS ? t->uses * t->pattern->cost : 0;
    counters->atomic_serial += t->uses * (t->pattern->active - places);
}

static void count_site(const struct tally *t, struct simt_site *site) {
    uint64_t cost = t->uses * t->pattern->cost;
    uint64_t least = t->uses * t->pattern->least;
    site->requests += t->requests;
    site->lanes += t->uses * t->pattern->active;
    if (t->key.cost == SIMT_COST_WAVEFRONTS) {
        site->wavefronts += cost;
        site->least_wavefronts += least;
    } else {
        site->sectors += cost;
        site->least_sectors += least;
    }
}

void simt_pattern_tally(struct simt_pattern *pattern, struct simt_counters *counters,
                        struct simt_site *sites) {
    struct tally t = {.pattern = pattern, .key = simt_pattern_unpack(pattern->key)};
    for (int sector = 0; sector < 4; sector++) {
        t.uses += pattern->uses[sector];
    }
    t.requests = t.key.part ? 0 : t.uses;
    if (t.uses == 0 || t.key.joined == SIMT_JOINED_RIDER ||
        (t.key.cost == SIMT_COST_NONE && t.key.kind != SIMT_ATOMIC)) {
        /* nothing that is counted */
    } else if (t.key.kind == SIMT_ATOMIC) {
        count_atomic(&t, counters);
    } else if (t.key.cost == SIMT_COST_SECTORS) {
        count_global(&t, counters);
    } else if (t.key.cost == SIMT_COST_WAVEFRONTS) {
        count_shared(&t, counters);
    } else {
        counters->local_requests += t.requests;
        counters->local_sectors += t.uses * pattern->cost;
        counters->l2_sectors += t.uses * pattern->cost;
    }
    if (sites != NULL && t.key.cost != SIMT_COST_NONE && t.key.joined != SIMT_JOINED_RIDER) {
        count_site(&t, &sites[pattern->site]);
    }
    memset(pattern->uses, 0, sizeof pattern->uses);
}
