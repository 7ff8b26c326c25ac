/*
 * A word of the shadow is 64 bits: last writer in the low half, last reader in
 * the high one. Each half: a tag of 26 bits, two flags, a mask of 4 bytes. A
 * tag names what one agent does between two of its fences; tags count up, so
 * that raising `first` makes everything older stale without touching a word.
 */
#include "common/simt/memory/shadow.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum {
    BYTES_MASK = 0xf,
    MULTIPLE = 1 << 4, /* more agents than the one named */
    ATOMIC = 1 << 5,
    TAG_SHIFT = 6,
    SHARED_TAGS = 1 << 14,
    GLOBAL_TAGS = 1 << 26,
    GLOBAL_TAGS_KEPT = 1 << 22 /* beyond these a launch starts anew */
};

struct tag {
    uint32_t agent;
    uint32_t released; /* clock of the fence that ended it; 0: none yet */
};

/* What shared and global shadow have in common. Global ones are used by several host threads. */
struct domain {
    uint64_t *words;
    size_t word_count;
    struct tag *tags;
    uint32_t tag_limit;
    uint32_t first; /* lower tags are stale */
    uint32_t next;
    uint32_t clock;       /* releases so far */
    uint32_t first_clock; /* when `first` was raised last */
    bool watch_atomics;   /* atomic operations are remembered too */
};

struct simt_shadow {
    struct domain domain;
    struct simt_agent *agents;
    struct simt_lane_shadow *lanes;
    uint32_t warps;
    uint64_t *written; /* one bit a byte */
    size_t shared_bytes;
};

struct simt_global_shadow {
    struct domain domain;
    uint64_t begin;
};

static void *map(size_t bytes) {
    void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    return memory == MAP_FAILED ? NULL : memory;
}

static void unmap(void *memory, size_t bytes) {
    if (memory != NULL) {
        munmap(memory, bytes);
    }
}

static enum status domain_create(struct domain *domain, size_t bytes, uint32_t tag_limit,
                                 bool watch_atomics) {
    *domain = (struct domain){.word_count = bytes / 4 + 1,
                              .tag_limit = tag_limit,
                              .first = 1,
                              .next = 1,
                              .watch_atomics = watch_atomics};
    domain->words = map(domain->word_count * sizeof *domain->words);
    domain->tags = map(tag_limit * sizeof *domain->tags);
    return domain->words != NULL && domain->tags != NULL ? STATUS_OK : STATUS_OUT_OF_MEMORY;
}

static void domain_free(struct domain *domain) {
    unmap(domain->words, domain->word_count * sizeof *domain->words);
    unmap(domain->tags, domain->tag_limit * sizeof *domain->tags);
}

/* Everything up to now is over. Tags used up to `keep` start anew at 1. */
static void domain_advance(struct domain *domain, uint32_t keep) {
    if (domain->next > keep) {
        madvise(domain->words, domain->word_count * sizeof *domain->words, MADV_DONTNEED);
        madvise(domain->tags, domain->tag_limit * sizeof *domain->tags, MADV_DONTNEED);
        domain->next = 1;
    }
    domain->first = domain->next;
    domain->first_clock = domain->clock;
}

/* The agent's tag, a new one if it has none that counts; 0 when there are no more. */
static inline uint32_t current_tag(struct domain *domain, struct simt_agent *agent) {
    if (agent->tag >= domain->first) {
        return agent->tag;
    }
    if (__atomic_load_n(&domain->next, __ATOMIC_RELAXED) >= domain->tag_limit) {
        return 0;
    }
    uint32_t tag = __atomic_fetch_add(&domain->next, 1, __ATOMIC_RELAXED);
    if (tag >= domain->tag_limit) {
        return 0;
    }
    domain->tags[tag] = (struct tag){.agent = agent->id};
    agent->tag = tag;
    return tag;
}

/* What the tag names happened before what the agent does now, or is its own. */
static bool is_ordered(const struct domain *domain, const struct simt_agent *agent, uint32_t tag) {
    const struct tag *other = &domain->tags[tag];
    uint32_t released = __atomic_load_n(&other->released, __ATOMIC_ACQUIRE);
    return other->agent == agent->id || (released != 0 && agent->acquired >= released);
}

/* The agent has met others since everything older became stale: nothing is sure about the rest. */
static bool has_met(const struct domain *domain, const struct simt_agent *agent) {
    return agent->acquired > domain->first_clock;
}

static bool races_with_writer(const struct domain *domain, const struct simt_agent *agent,
                              uint32_t writer, uint32_t mask, enum simt_access_kind kind) {
    uint32_t tag = writer >> TAG_SHIFT;
    if (tag < domain->first || (writer & mask) == 0 ||
        ((writer & ATOMIC) != 0 && kind == SIMT_ATOMIC)) {
        return false;
    }
    bool same_value_by_several = (writer & MULTIPLE) != 0 && (writer & ATOMIC) == 0;
    if (same_value_by_several && kind == SIMT_READ) {
        return false;
    }
    if (tag == agent->tag) {
        return (writer & MULTIPLE) != 0 && !has_met(domain, agent);
    }
    return !is_ordered(domain, agent, tag);
}

static bool races_with_reader(const struct domain *domain, const struct simt_agent *agent,
                              uint32_t reader, uint32_t mask, enum simt_access_kind kind) {
    uint32_t tag = reader >> TAG_SHIFT;
    if (kind == SIMT_READ || tag < domain->first || (reader & mask) == 0 ||
        (kind == SIMT_ATOMIC && !domain->watch_atomics)) {
        return false;
    }
    if (tag == agent->tag) {
        return (reader & MULTIPLE) != 0 && !has_met(domain, agent);
    }
    return !is_ordered(domain, agent, tag);
}

static uint32_t next_reader(const struct domain *domain, const struct simt_agent *agent,
                            uint32_t reader, uint32_t mask) {
    uint32_t tag = reader >> TAG_SHIFT;
    if (tag == agent->tag) {
        return reader | mask;
    }
    if (tag < domain->first || is_ordered(domain, agent, tag)) {
        return agent->tag << TAG_SHIFT | mask;
    }
    return reader | MULTIPLE | mask;
}

static uint32_t next_writer(const struct domain *domain, const struct simt_agent *agent,
                            uint32_t writer, uint32_t mask, bool atomic, bool silent) {
    uint32_t tag = writer >> TAG_SHIFT;
    uint32_t flags = atomic ? ATOMIC : 0;
    uint32_t mine = agent->tag << TAG_SHIFT;
    if (tag == agent->tag) {
        uint32_t kept = atomic ? writer : writer & ~(uint32_t)ATOMIC;
        return kept | mask;
    }
    bool several = tag >= domain->first && (writer & mask) != 0 &&
                   (silent || (atomic && (writer & ATOMIC) != 0)) &&
                   !is_ordered(domain, agent, tag);
    return several ? mine | flags | MULTIPLE | (writer & BYTES_MASK) | mask : mine | flags | mask;
}

static void name_race(const struct domain *domain, const struct simt_agent *agent, uint32_t half,
                      bool wrote, struct simt_race *race) {
    uint32_t other = domain->tags[half >> TAG_SHIFT].agent;
    *race = (struct simt_race){.agent = other, .known = other != agent->id, .wrote = wrote};
}

static inline bool touch_word(struct domain *domain, struct simt_agent *agent, size_t index,
                              uint32_t mask, enum simt_access_kind kind, bool silent,
                              struct simt_race *race) {
    uint64_t *word = &domain->words[index];
    uint64_t old = __atomic_load_n(word, __ATOMIC_RELAXED);
    uint32_t writer = (uint32_t)old;
    uint32_t reader = (uint32_t)(old >> 32);
    if (!silent && races_with_writer(domain, agent, writer, mask, kind)) {
        name_race(domain, agent, writer, true, race);
        return true;
    }
    if (!silent && races_with_reader(domain, agent, reader, mask, kind)) {
        name_race(domain, agent, reader, false, race);
        return true;
    }
    if (kind == SIMT_READ) {
        reader = next_reader(domain, agent, reader, mask);
    } else if (kind == SIMT_WRITE || domain->watch_atomics) {
        writer = next_writer(domain, agent, writer, mask, kind == SIMT_ATOMIC, silent);
    }
    uint64_t new = (uint64_t)reader << 32 | writer;
    if (new != old) {
        __atomic_store_n(word, new, __ATOMIC_RELEASE);
    }
    return false;
}

static inline bool touch(struct domain *domain, struct simt_agent *agent, size_t offset,
                         size_t bytes, enum simt_access_kind kind, bool silent,
                         struct simt_race *race) {
    if (current_tag(domain, agent) == 0) {
        return false;
    }
    for (size_t done = 0, step; done < bytes; done += step) {
        size_t first = (offset + done) % 4;
        step = bytes - done < 4 - first ? bytes - done : 4 - first;
        uint32_t mask = ((1u << step) - 1) << first;
        if (touch_word(domain, agent, (offset + done) / 4, mask, kind, silent, race)) {
            return true;
        }
    }
    return false;
}

/* Halves below `stale`, or with these bits, are no obstacle: nobody else's, and nobody's share. */
struct harmless {
    uint32_t stale, mine;
};

static inline bool is_harmless(struct harmless harmless, uint32_t half) {
    return half < harmless.stale || (half & ~(uint32_t)(BYTES_MASK | ATOMIC)) == harmless.mine;
}

/*
 * Whole words whose halves are all harmless. Written so that the compiler makes vector code of it:
 * the words are plain here. Where another host thread changes one at the same time, one of the two
 * is forgotten.
 */
static bool try_words(struct domain *domain, struct harmless harmless, size_t first, size_t count,
                      enum simt_access_kind kind) {
    uint32_t *halves = (uint32_t *)(void *)(domain->words + first);
    uint32_t obstacles = 0;
    for (size_t n = 0; n < 2 * count; n++) {
        obstacles |= !is_harmless(harmless, halves[n]);
    }
    if (obstacles != 0) {
        return false;
    }
    uint32_t *written = halves + (kind == SIMT_READ ? 1 : 0);
    for (size_t n = 0; n < count; n++) {
        written[2 * n] = harmless.mine | BYTES_MASK;
    }
    return true;
}

static bool try_run(struct domain *domain, struct simt_agent *agent, size_t offset, size_t bytes,
                    enum simt_access_kind kind) {
    if (offset % 4 != 0 || bytes % 4 != 0 || kind == SIMT_ATOMIC ||
        current_tag(domain, agent) == 0) {
        return false;
    }
    const struct harmless harmless = {domain->first << TAG_SHIFT, agent->tag << TAG_SHIFT};
    return try_words(domain, harmless, offset / 4, bytes / 4, kind);
}

static uint32_t try_lanes(struct domain *domain, struct simt_agent *agent, size_t offset,
                          const int32_t relative[32], uint32_t lanes, size_t bytes,
                          enum simt_access_kind kind) {
    if (offset % 4 != 0 || bytes % 4 != 0 || kind == SIMT_ATOMIC ||
        current_tag(domain, agent) == 0) {
        return lanes;
    }
    const struct harmless harmless = {domain->first << TAG_SHIFT, agent->tag << TAG_SHIFT};
    uint32_t left = 0;
    for (uint32_t rest = lanes; rest != 0; rest &= rest - 1) {
        uint32_t lane = (uint32_t)__builtin_ctz(rest);
        size_t word = (offset + (size_t)(int64_t)relative[lane]) / 4;
        bool done = true;
        for (size_t n = 0; n < bytes / 4; n++) {
            uint64_t old = __atomic_load_n(&domain->words[word + n], __ATOMIC_RELAXED);
            uint64_t reader = old >> 32;
            uint64_t writer = (uint32_t)old;
            done = done && is_harmless(harmless, (uint32_t)reader) &&
                   is_harmless(harmless, (uint32_t)writer);
            reader = kind == SIMT_READ ? harmless.mine | BYTES_MASK : reader;
            writer = kind == SIMT_READ ? writer : harmless.mine | BYTES_MASK;
            uint64_t new = reader << 32 | writer;
            if (done && new != old) {
                __atomic_store_n(&domain->words[word + n], new, __ATOMIC_RELEASE);
            }
        }
        left |= done ? 0 : 1u << lane;
    }
    return left;
}

static void domain_release(struct domain *domain, struct simt_agent *agent) {
    if (agent->tag >= domain->first) {
        uint32_t now = __atomic_add_fetch(&domain->clock, 1, __ATOMIC_SEQ_CST);
        __atomic_store_n(&domain->tags[agent->tag].released, now, __ATOMIC_RELEASE);
        agent->tag = 0;
    }
}

static void domain_acquire(struct domain *domain, struct simt_agent *agent) {
    agent->acquired = __atomic_load_n(&domain->clock, __ATOMIC_SEQ_CST);
}

enum status simt_shadow_create(struct simt_shadow **shadow, size_t shared_bytes, uint32_t warps) {
    *shadow = NULL;
    struct simt_shadow *made = calloc(1, sizeof *made);
    if (made == NULL) {
        return STATUS_OUT_OF_MEMORY;
    }
    made->shared_bytes = shared_bytes;
    made->warps = warps;
    made->agents = calloc((size_t)warps + 1, sizeof *made->agents);
    made->written = calloc(shared_bytes / 64 + 1, sizeof *made->written);
    if (made->agents == NULL || made->written == NULL ||
        simt_lane_shadow_create(&made->lanes, shared_bytes, warps) != STATUS_OK ||
        domain_create(&made->domain, shared_bytes, SHARED_TAGS, true) != STATUS_OK) {
        simt_shadow_free(made);
        return STATUS_OUT_OF_MEMORY;
    }
    simt_shadow_reset(made);
    *shadow = made;
    return STATUS_OK;
}

void simt_shadow_free(struct simt_shadow *shadow) {
    if (shadow != NULL) {
        domain_free(&shadow->domain);
        simt_lane_shadow_free(shadow->lanes);
        free(shadow->agents);
        free(shadow->written);
        free(shadow);
    }
}

void simt_shadow_reset(struct simt_shadow *shadow) {
    simt_shadow_barrier(shadow);
    memset(shadow->written, 0, (shadow->shared_bytes / 64 + 1) * sizeof *shadow->written);
    for (uint32_t n = 0; n < shadow->warps; n++) {
        shadow->agents[n] = (struct simt_agent){.id = n};
    }
}

void simt_shadow_barrier(struct simt_shadow *shadow) {
    simt_lane_shadow_meet_all(shadow->lanes);
    domain_advance(&shadow->domain, SHARED_TAGS / 2);
    if (shadow->domain.next == 1) {
        for (uint32_t n = 0; n < shadow->warps; n++) {
            shadow->agents[n].tag = 0;
        }
    }
}

struct simt_agent *simt_shadow_agent(struct simt_shadow *shadow, uint32_t warp) {
    return &shadow->agents[warp];
}

struct simt_lane_shadow *simt_shadow_lanes(struct simt_shadow *shadow) {
    return shadow->lanes;
}

bool simt_shadow_touch(struct simt_shadow *shadow, struct simt_agent *agent, size_t offset,
                       size_t bytes, enum simt_access_kind kind, bool silent,
                       struct simt_race *race) {
    return touch(&shadow->domain, agent, offset, bytes, kind, silent, race);
}

uint32_t simt_shadow_try(struct simt_shadow *shadow, struct simt_agent *agent, size_t offset,
                         const int32_t relative[32], uint32_t lanes, size_t bytes,
                         enum simt_access_kind kind) {
    return try_lanes(&shadow->domain, agent, offset, relative, lanes, bytes, kind);
}

bool simt_shadow_try_run(struct simt_shadow *shadow, struct simt_agent *agent, size_t offset,
                         size_t bytes, enum simt_access_kind kind) {
    return try_run(&shadow->domain, agent, offset, bytes, kind);
}

void simt_shadow_release(struct simt_shadow *shadow, struct simt_agent *agent) {
    domain_release(&shadow->domain, agent);
}

void simt_shadow_acquire(struct simt_shadow *shadow, struct simt_agent *agent) {
    simt_lane_shadow_meet(shadow->lanes, agent->id); /* a lane may have waited for another one */
    domain_acquire(&shadow->domain, agent);
}

static uint64_t bits_of(size_t offset, size_t bytes) {
    uint64_t ones = bytes >= 64 ? UINT64_MAX : ((uint64_t)1 << bytes) - 1;
    return ones << (offset % 64);
}

void simt_shadow_mark(struct simt_shadow *shadow, size_t offset, size_t bytes) {
    for (size_t done = 0, step; done < bytes; done += step) {
        size_t at = offset + done;
        step = bytes - done < 64 - at % 64 ? bytes - done : 64 - at % 64;
        shadow->written[at / 64] |= bits_of(at, step);
    }
}

bool simt_shadow_written(const struct simt_shadow *shadow, size_t offset, size_t bytes) {
    for (size_t done = 0, step; done < bytes; done += step) {
        size_t at = offset + done;
        step = bytes - done < 64 - at % 64 ? bytes - done : 64 - at % 64;
        uint64_t bits = bits_of(at, step);
        if ((shadow->written[at / 64] & bits) != bits) {
            return false;
        }
    }
    return true;
}

enum status simt_global_shadow_create(struct simt_global_shadow **shadow,
                                      const struct simt_memory *memory) {
    const struct simt_extent window = simt_memory_window(memory);
    *shadow = NULL;
    struct simt_global_shadow *made = calloc(1, sizeof *made);
    if (made == NULL) {
        return STATUS_OUT_OF_MEMORY;
    }
    made->begin = window.begin;
    if (domain_create(&made->domain, window.end - window.begin, GLOBAL_TAGS, false) != STATUS_OK) {
        simt_global_shadow_free(made);
        return STATUS_OUT_OF_MEMORY;
    }
    *shadow = made;
    return STATUS_OK;
}

void simt_global_shadow_free(struct simt_global_shadow *shadow) {
    if (shadow != NULL) {
        domain_free(&shadow->domain);
        free(shadow);
    }
}

void simt_global_shadow_begin(struct simt_global_shadow *shadow) {
    domain_advance(&shadow->domain, GLOBAL_TAGS_KEPT);
}

bool simt_global_shadow_touch(struct simt_global_shadow *shadow, struct simt_agent *agent,
                              uint64_t address, size_t bytes, enum simt_access_kind kind,
                              bool silent, struct simt_race *race) {
    uint64_t offset = address - shadow->begin;
    if (offset / 4 >= shadow->domain.word_count) {
        return false; /* host memory */
    }
    return touch(&shadow->domain, agent, offset, bytes, kind, silent, race);
}

/* Host memory has no shadow. */
static bool is_covered(const struct simt_global_shadow *shadow, uint64_t address) {
    return (address - shadow->begin) / 4 < shadow->domain.word_count;
}

uint32_t simt_global_shadow_try(struct simt_global_shadow *shadow, struct simt_agent *agent,
                                uint64_t address, const int32_t relative[32], uint32_t lanes,
                                size_t bytes, enum simt_access_kind kind) {
    return is_covered(shadow, address) ? try_lanes(&shadow->domain, agent, address - shadow->begin,
                                                   relative, lanes, bytes, kind)
                                       : lanes;
}

bool simt_global_shadow_try_run(struct simt_global_shadow *shadow, struct simt_agent *agent,
                                uint64_t address, size_t bytes, enum simt_access_kind kind) {
    return is_covered(shadow, address) &&
           try_run(&shadow->domain, agent, address - shadow->begin, bytes, kind);
}

void simt_global_shadow_release(struct simt_global_shadow *shadow, struct simt_agent *agent) {
    domain_release(&shadow->domain, agent);
}

void simt_global_shadow_acquire(struct simt_global_shadow *shadow, struct simt_agent *agent) {
    domain_acquire(&shadow->domain, agent);
}
