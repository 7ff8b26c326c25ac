#include "common/simt/memory/access/request.h"

#include <pthread.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "common/simt/memory/cache/cache.h"
#include "common/simt/memory/xray.h"

enum { SCRATCH_BYTES = 32 };

/* Lanes of one part lie at most this far from the first: 32 bits hold the distance. */
#define REACH ((uint64_t)1 << 30)

bool simt_request_lookup(const struct simt_request *request, struct simt_extent *extent,
                         uint64_t address) {
    const struct simt_run *run = request->warp->block->run;
    if (run->check == SIMT_CHECK_OFF) {
        const struct simt_extent window = simt_memory_window(run->memory);
        if (address >= window.begin && address < window.end) {
            *extent = window;
            return true;
        }
    }
    return simt_memory_extent(run->memory, address, extent);
}

/* Addresses as the instruction has them: in its space, or generic. */
static void addresses_of(const struct simt_request *request, uint64_t addresses[SIMT_LANES]) {
    const struct simt_instruction *instruction = request->instruction;
    if (request->addresses != NULL) {
        memcpy(addresses, request->addresses, SIMT_LANES * sizeof *addresses);
        return;
    }
    const union simt_row *base = simt_row(request->warp, instruction->src[0]);
    for (size_t n = 0; n < SIMT_LANES; n++) {
        uint64_t offset = (uint64_t)instruction->immediate;
        addresses[n] =
            request->narrow ? (uint32_t)(base->u32[n] + (uint32_t)offset) : base->u64[n] + offset;
    }
}

/* The bytes that an address may be part of: an allocation, or the whole of another space. */
static bool find_limits(const struct simt_request *request, enum ptx_space space, uint64_t address,
                        const struct simt_block *home, struct simt_extent *limits) {
    const struct simt_block *block = request->warp->block;
    const struct simt_origin *origin = request->instruction->origin;
    *limits = (struct simt_extent){0};
    switch (space) {
    case PTX_SHARED:
        limits->end = home->shared_bytes;
        if (origin != NULL && block->run->check != SIMT_CHECK_OFF) {
            limits->begin = origin->begin;
            limits->end = origin->end < limits->end ? origin->end : limits->end;
        }
        break;
    case PTX_LOCAL:
        limits->end = block->local_bytes;
        break;
    case PTX_PARAM:
        limits->end = request->kind == SIMT_READ ? block->run->parameter_bytes : 0;
        break;
    default:
        return simt_request_lookup(request, limits, address);
    }
    return address >= limits->begin && address < limits->end;
}

static bool is_inside(const struct simt_request *request, const struct simt_extent *limits,
                      uint64_t address) {
    bool aligned = (address & (request->bytes - 1)) == 0;
    return address >= limits->begin && address < limits->end &&
           limits->end - address >= request->bytes &&
           (aligned || request->warp->block->run->check == SIMT_CHECK_OFF);
}

/* The part of the lowest lane left, with all lanes that can go with it. */
struct part {
    struct simt_request request;
    struct simt_pattern pattern; /* of a dropped lane */
    uint32_t lanes[SIMT_LANES];
    unsigned char scratch[SCRATCH_BYTES];
};

/* With checks off an invalid access reads zeros, and its writes are dropped. */
static void drop_lane(struct part *part) {
    memset(part->scratch, 0, sizeof part->scratch);
    part->request.host = part->scratch;
    part->pattern = (struct simt_pattern){.shape = SIMT_SHAPE_SAME};
    part->request.pattern = &part->pattern;
    part->request.dropped = true;
}

static void add_lane(struct part *part, uint32_t lane, uint64_t address) {
    part->request.mask |= 1u << lane;
    part->request.offsets[lane] = (int32_t)(address - part->request.first);
    part->lanes[lane] = UINT32_MAX;
}

static enum ptx_space space_of(const struct simt_request *request, uint64_t *address) {
    return request->space == PTX_GENERIC ? simt_generic_space(address) : request->space;
}

/* The same, and whose shared memory it is. */
static enum ptx_space find_home(const struct simt_request *request, uint64_t *address,
                                struct simt_block **home) {
    enum ptx_space space = space_of(request, address);
    *home = request->warp->block;
    if (space == PTX_SHARED) {
        *home = simt_block_at(*home, address);
    }
    return space;
}

/* A part lies in the shared memory of another block. @return false after a fault */
static bool reach(const struct simt_request *part, uint32_t leader) {
    if (part->home->over && part->warp->block->run->check != SIMT_CHECK_OFF) {
        simt_request_fault_over(part, leader, part->first);
        return false;
    }
    part->home->is_reached = true;
    return true;
}

/* Fills in the next part. @return false after a fault */
static bool next_part(const struct simt_request *whole, const uint64_t addresses[SIMT_LANES],
                      uint32_t rest, struct part *part) {
    uint32_t leader = simt_first_lane(rest);
    uint64_t first = addresses[leader];
    struct simt_extent limits;
    struct simt_block *home, *other;
    enum ptx_space space = find_home(whole, &first, &home);
    part->request = *whole;
    part->request.space = space;
    part->request.home = home;
    part->request.first = first;
    part->request.mask = 0;
    part->request.far = false;
    part->request.lanes = part->lanes;
    memset(part->request.offsets, 0, sizeof part->request.offsets);
    part->request.relative = part->request.offsets;
    memset(part->lanes, 0, sizeof part->lanes);
    add_lane(part, leader, first);
    if (home != whole->warp->block && !reach(&part->request, leader)) {
        return false;
    }
    if (!find_limits(whole, space, first, home, &limits) || !is_inside(whole, &limits, first)) {
        if (whole->warp->block->run->check != SIMT_CHECK_OFF) {
            simt_request_fault(&part->request, leader, space, first);
            return false;
        }
        drop_lane(part);
        return true;
    }
    for (rest &= rest - 1; rest != 0; rest &= rest - 1) {
        uint32_t lane = simt_first_lane(rest);
        uint64_t address = addresses[lane];
        if (find_home(whole, &address, &other) == space && other == home &&
            is_inside(whole, &limits, address) && address - first + REACH < 2 * REACH) {
            add_lane(part, lane, address);
        }
    }
    return true;
}

/* Different sectors of 32 bytes that the lanes ask for. */
static uint64_t count_sectors(const struct simt_request *part) {
    enum { SECTOR = 32 };
    uint64_t sectors[SIMT_LANES];
    uint32_t count = 0;
    for (uint32_t rest = part->mask; rest != 0; rest &= rest - 1) {
        int64_t offset = part->offsets[simt_first_lane(rest)];
        uint64_t sector = (part->first + (uint64_t)offset) / SECTOR;
        uint32_t n = count;
        while (n > 0 && sectors[n - 1] != sector) {
            n--;
        }
        if (n == 0) {
            sectors[count++] = sector;
        }
    }
    return count;
}

/* Passes of the shared memory that is asked: of each bank one word at a time, which all lanes get
   that load it; one lane at a time of atomics. */
static uint64_t count_passes(const struct simt_request *part) {
    enum { WORD = 4, BANKS = 32 };
    uint64_t words[SIMT_LANES];
    uint32_t of_bank[BANKS] = {0}, count = 0, most = 0;
    for (uint32_t rest = part->mask; rest != 0; rest &= rest - 1) {
        int64_t offset = part->offsets[simt_first_lane(rest)];
        uint64_t word = (part->first + (uint64_t)offset) / WORD;
        uint32_t n = part->kind == SIMT_ATOMIC ? 0 : count;
        while (n > 0 && words[n - 1] != word) {
            n--;
        }
        if (n == 0) {
            words[count++] = word;
            most = ++of_bank[word % BANKS] > most ? of_bank[word % BANKS] : most;
        }
    }
    return most;
}

/* For the model of time. */
static void count_peer(const struct simt_request *part) {
    const struct simt_block *block = part->warp->block;
    uint64_t sectors = count_sectors(part) * (part->kind == SIMT_ATOMIC ? 2 : 1);
    block->counters->peer_requests++;
    block->counters->peer_sectors += sectors;
    block->counters->peer_far_sectors += block->cluster->size > 2 ? sectors : 0;
    part->home->counters->peer_served_sectors += sectors;
    if (part->kind == SIMT_ATOMIC) {
        part->home->counters->peer_served_atomics += count_passes(part);
    } else {
        part->home->counters->peer_served_passes += count_passes(part);
    }
    part->warp->reached_peer = true;
}

SIMT_COLD void simt_request_split(const struct simt_request *request, simt_move *move) {
    uint64_t addresses[SIMT_LANES];
    uint32_t rest = request->mask;
    struct part part;
    bool counted = false;
    addresses_of(request, addresses);
    while (rest != 0) {
        if (!next_part(request, addresses, rest, &part)) {
            return;
        }
        part.request.part = counted;
        rest &= ~part.request.mask;
        if (!part.request.dropped) {
            if (!simt_request_resolve(&part.request, part.request.space)) {
                return;
            }
            counted = true;
        }
        if (simt_request_is_remote(&part.request) && !part.request.async) {
            count_peer(&part.request);
        }
        move(&part.request);
    }
}

static void tell_places(const struct simt_request *request) {
    for (uint32_t rest = request->mask; rest != 0; rest &= rest - 1) {
        uint32_t lane = simt_first_lane(rest);
        request->places[lane] = request->dropped ? NULL : request->host + request->relative[lane];
    }
}

bool simt_access_resolve(struct simt_warp *warp, const struct simt_instruction *instruction,
                         const struct simt_access *access, unsigned char *host[SIMT_LANES]) {
    if (warp->mask == 0) {
        return true;
    }
    struct simt_request request = {
        .warp = warp,
        .home = warp->block,
        .instruction = instruction,
        .lanes = warp->lanes,
        .addresses = access->addresses,
        .places = host,
        .mask = warp->mask,
        .bytes = access->bytes,
        .space = access->space,
        .kind = access->kind,
        .strong = access->strong,
        .counted = access->counted,
        .async = access->async,
        .early = access->early,
    };
    simt_request_wide(&request, access->addresses, 0);
    struct simt_request whole = request;
    if (!request.far) {
        request.space = space_of(&request, &request.first);
    }
    if (simt_request_resolve(&request, request.space)) {
        tell_places(&request);
    } else if (warp->fault == NULL) {
        simt_request_split(&whole, tell_places);
    }
    return warp->fault == NULL;
}

/* Every first request of a site comes by here: no pattern is remembered for it yet. */
static void keep(const struct simt_request *request, const struct simt_pattern *pattern) {
    const struct simt_pattern_key key = simt_pattern_unpack(pattern->key);
    struct simt_block *block = request->warp->block;
    if (key.cost == SIMT_COST_NONE || key.cost == SIMT_COST_CONSTANT || key.part ||
        key.joined == SIMT_JOINED_RIDER) {
        return;
    }
    struct simt_xray_request kept = {.block = block->order,
                                     .warp = request->warp->index,
                                     .mask = request->mask,
                                     .bytes = key.joined > 0 ? key.joined : key.bytes,
                                     .first = request->first,
                                     .cost = pattern->cost,
                                     .least = pattern->least,
                                     .kind = key.kind,
                                     .space = key.cost == SIMT_COST_SECTORS      ? PTX_GLOBAL
                                              : key.cost == SIMT_COST_WAVEFRONTS ? PTX_SHARED
                                                                                 : PTX_LOCAL};
    struct simt_extent extent;
    if (kept.space == PTX_GLOBAL &&
        simt_memory_extent(block->run->memory, request->first, &extent)) {
        kept.allocation = extent.begin;
    }
    memcpy(kept.relative, request->offsets, sizeof kept.relative);
    simt_xray_keep(block->xray, request->instruction->site, &kept);
}

/* More places for maps: while reads are put off, their maps stay. */
struct simt_words_chunk {
    struct simt_words_chunk *next;
    struct simt_words_place places[64];
};

static void free_place(struct simt_access_cache *cache, struct simt_words_place *place) {
    place->next = cache->free;
    cache->free = place;
}

static void free_waiting(struct simt_access_cache *cache) {
    if (cache->waiting != NULL) {
        cache->waiting_last->next = cache->free;
        cache->free = cache->waiting;
        cache->waiting = NULL;
    }
}

static void add_chunk(struct simt_access_cache *cache) {
    enum { MOST_CHUNKS = 256 };
    struct simt_words_chunk *chunk =
        cache->chunk_count < MOST_CHUNKS ? malloc(sizeof *chunk) : NULL;
    if (chunk == NULL) {
        return;
    }
    chunk->next = cache->chunks;
    cache->chunks = chunk;
    cache->chunk_count++;
    for (size_t n = sizeof chunk->places / sizeof *chunk->places; n > 0; n--) {
        free_place(cache, &chunk->places[n - 1]);
    }
}

/* A read of the pattern may be put off: another map takes the place of its own, which waits. */
static void replace_words(struct simt_access_cache *cache, struct simt_pattern *pattern,
                          struct simt_shadow *shadow) {
    struct simt_words_place *own = (struct simt_words_place *)pattern->words;
    if (cache->free == NULL && !simt_shadow_is_settled(shadow)) {
        add_chunk(cache);
        if (cache->free == NULL) {
            simt_shadow_settle(shadow);
        }
    }
    if (simt_shadow_is_settled(shadow)) {
        free_waiting(cache);
        return;
    }
    cache->waiting_last = cache->waiting != NULL ? cache->waiting_last : own;
    own->next = cache->waiting;
    cache->waiting = own;
    pattern->words = &cache->free->map;
    cache->free = cache->free->next;
}

void simt_request_learn(const struct simt_request *request, size_t slot, uint64_t key) {
    struct simt_block *block = request->warp->block;
    struct simt_access_cache *cache = block->cache;
    struct simt_pattern *pattern = &cache->patterns[slot];
    if (pattern->key != 0) {
        simt_pattern_tally(pattern, block->counters, block->sites);
    } else {
        cache->learned[cache->learned_count++] = (uint16_t)slot;
        pattern->words = &cache->places[slot].map;
    }
    if ((pattern->words_state & SIMT_WORDS_PUT_OFF) != 0) {
        replace_words(cache, pattern, block->shadow);
    }
    pattern->key = key;
    pattern->site = request->instruction->site;
    memcpy(pattern->relative, request->offsets, sizeof pattern->relative);
    pattern->serial = ++cache->serial;
    pattern->base_serial = 0;
    pattern->quick_count = 0;
    simt_pattern_build(pattern);
    if (block->xray != NULL) {
        keep(request, pattern);
    }
}

void simt_request_allow(const struct simt_request *request) {
    struct simt_pattern *pattern = request->pattern;
    const struct simt_block *block = request->warp->block;
    struct simt_extent limits;
    bool found = find_limits(request, PTX_SHARED, request->first, block, &limits);
    int64_t low = (int64_t)limits.begin - pattern->low;
    int64_t end = (int64_t)limits.end - pattern->high - request->bytes + 1;
    bool is_plain =
        (request->first & 3) == 0 && (pattern->misalignment & (request->bytes - 1)) == 0;
    if (found && is_plain && low < end && end <= INT32_MAX) {
        pattern->quick_low = (uint32_t)low;
        pattern->quick_count = (uint32_t)(end - low);
    }
}

/* Launches may be short: caches that ended ones have left empty serve the next. */
static struct {
    pthread_mutex_t lock;
    struct simt_access_cache *first;
    uint32_t count;
} spare = {.lock = PTHREAD_MUTEX_INITIALIZER};

static struct simt_access_cache *take_spare(void) {
    pthread_mutex_lock(&spare.lock);
    struct simt_access_cache *cache = spare.first;
    if (cache != NULL) {
        spare.first = cache->next;
        spare.count--;
    }
    pthread_mutex_unlock(&spare.lock);
    return cache;
}

/* @return whether the cache is kept */
static bool keep_spare(struct simt_access_cache *cache) {
    enum { MOST_SPARE = 16 };
    pthread_mutex_lock(&spare.lock);
    bool kept = spare.count < MOST_SPARE;
    if (kept) {
        cache->next = spare.first;
        spare.first = cache;
        spare.count++;
    }
    pthread_mutex_unlock(&spare.lock);
    return kept;
}

/* Pages of a new one that nobody needs are never touched. */
static struct simt_access_cache *map_cache(void) {
    const size_t bytes = sizeof(struct simt_access_cache);
    void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) {
        return NULL;
    }
    (void)madvise(memory, bytes, MADV_NOHUGEPAGE); /* a hint */
    return memory;
}

struct simt_access_cache *simt_access_cache_create(void) {
    struct simt_access_cache *cache = take_spare();
    return cache != NULL ? cache : map_cache();
}

static void empty_cache(struct simt_access_cache *cache) {
    for (uint32_t n = 0; n < cache->learned_count; n++) {
        cache->patterns[cache->learned[n]] = (struct simt_pattern){.key = 0};
    }
    cache->learned_count = 0;
    cache->used_count = 0;
    while (cache->chunks != NULL) {
        struct simt_words_chunk *chunk = cache->chunks;
        cache->chunks = chunk->next;
        free(chunk);
    }
    cache->chunk_count = 0;
    cache->free = NULL;
    cache->waiting = NULL;
    memset(cache->found, 0, sizeof cache->found);
    simt_access_cache_reset(cache);
}

void simt_access_cache_free(struct simt_access_cache *cache) {
    if (cache != NULL) {
        empty_cache(cache);
        if (!keep_spare(cache)) {
            (void)munmap(cache, sizeof *cache);
        }
    }
}

void simt_access_cache_tally(struct simt_access_cache *cache, struct simt_counters *counters,
                             struct simt_site *sites) {
    for (uint32_t n = 0; n < cache->used_count; n++) {
        struct simt_pattern *pattern = &cache->patterns[cache->used[n]];
        simt_pattern_tally(pattern, counters, sites);
        pattern->listed = false;
    }
    cache->used_count = 0;
}

void simt_access_cache_reset(struct simt_access_cache *cache) {
    memset(cache->extents, 0, sizeof cache->extents);
}

/*
 * Where the sectors of a global request come from: L1, L2 or device memory.
 */

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

static void visit_lines(const struct visit *v, const struct simt_pattern *pattern, int64_t base) {
    uint64_t line = 0;
    uint32_t sectors = 0;
    for (uint32_t n = 0; n < pattern->cost; n++) {
        uint64_t sector = (uint64_t)(base + pattern->sectors[n]);
        if (sector / SECTORS != line && sectors != 0) {
            visit_line(v, line, sectors);
            sectors = 0;
        }
        line = sector / SECTORS;
        sectors |= 1u << sector % SECTORS;
    }
    if (sectors != 0) {
        visit_line(v, line, sectors);
    }
}

/* Loops load the next bytes of sectors that they have loaded from: those are all in L1, unless a
 * line was replaced since they were found there. */
static bool is_known(const struct simt_found *found, const struct simt_pattern *pattern,
                     int64_t base, uint64_t changes) {
    return found->changes == changes && found->base == base && found->cost == pattern->cost &&
           memcmp(found->sectors, pattern->sectors, found->cost * sizeof *found->sectors) == 0;
}

static void note_found(struct simt_found *found, const struct simt_pattern *pattern, int64_t base,
                       uint64_t changes) {
    found->changes = changes;
    found->base = base;
    found->cost = pattern->cost;
    memcpy(found->sectors, pattern->sectors, sizeof found->sectors);
}

/* Sectors of a load that go through L1. */
static void load_lines(const struct visit *v, struct simt_found *found,
                       const struct simt_pattern *pattern, int64_t base) {
    uint64_t before = v->counters->l1_hit_sectors;
    uint64_t changes = simt_l1_changes(v->caches->l1);
    if (is_known(found, pattern, base, changes)) {
        v->counters->l1_hit_sectors += pattern->cost;
        return;
    }
    visit_lines(v, pattern, base);
    if (v->counters->l1_hit_sectors - before == pattern->cost) {
        note_found(found, pattern, base, changes);
    }
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
    uint64_t hits = block->counters->l1_hit_sectors;
    if (v.l1 && v.use == SIMT_L2_LOAD) {
        load_lines(&v, &block->cache->found[(uint64_t)base % SIMT_FOUND_SLOTS], pattern, base);
    } else {
        visit_lines(&v, pattern, base);
    }
    hits = block->counters->l1_hit_sectors - hits;
    if (block->sites != NULL) {
        block->sites[pattern->site].l1_hit_sectors += hits;
    }
    if (block->clock != NULL) {
        simt_block_clock_request(request, hits > 0 && hits == pattern->cost);
    }
}
