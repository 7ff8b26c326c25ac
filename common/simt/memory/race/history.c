#include "common/simt/memory/race/history_words.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum {
    WORD_BYTES = 4,
    WARP_SHIFT = MARK_TAG_SHIFT + MARK_WARP_BITS,
    PUT_OFF_BYTES = MOST_PUT_OFF * (sizeof(struct put_off) + SIMT_SEVERAL_LANES * sizeof(int32_t))
};

static void *map(size_t bytes, int flags) {
    void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | flags, -1, 0);
    return memory == MAP_FAILED ? NULL : memory;
}

static void unmap(void *memory, size_t bytes) {
    if (memory != NULL) {
        munmap(memory, bytes);
    }
}

static size_t page_count(const struct simt_history *h) {
    return h->word_count / MARK_PAGE_WORDS + 1;
}

static bool map_pages(struct simt_history *h) {
    if (h->agents == SIMT_WARPS_OF_SHARED || h->agents == SIMT_BLOCKS_OF_SHARED) {
        return true;
    }
    h->pages = map(page_count(h) * sizeof *h->pages, 0);
    h->touched = map(page_count(h) * sizeof *h->touched, 0);
    return h->pages != NULL && h->touched != NULL;
}

static size_t mark_bytes(const struct simt_history *h) {
    return (h->word_count / MARK_GROUP + 1) * 2 * MARK_GROUP * sizeof *h->marks;
}

enum status simt_history_create(struct simt_history **history, enum simt_agents agents,
                                size_t bytes) {
    bool warps = agents == SIMT_WARPS_OF_SHARED || agents == SIMT_WARPS_OF_GLOBAL;
    struct simt_history *h = calloc(1, sizeof *h);
    *history = NULL;
    if (h == NULL) {
        return STATUS_OUT_OF_MEMORY;
    }
    h->agents = agents;
    h->lanes = warps;
    h->word_count = bytes / WORD_BYTES + 1;
    h->shift = warps ? WARP_SHIFT : MARK_TAG_SHIFT;
    h->owner = warps ? ((1u << MARK_WARP_BITS) - 1) << MARK_TAG_SHIFT : MARK_TAG;
    h->limit = 1u << (32 - h->shift);
    h->next = 1;
    h->stale = 1u << h->shift;
    h->marks = map(mark_bytes(h), agents == SIMT_WARPS_OF_SHARED ? MAP_POPULATE : 0);
    h->intervals = map(h->limit * sizeof *h->intervals, 0);
    h->put_off = warps ? map(PUT_OFF_BYTES, 0) : NULL; /* may do without */
    h->put_off_lanes = h->put_off != NULL ? (void *)(h->put_off + MOST_PUT_OFF) : NULL;
    if (h->marks == NULL || h->intervals == NULL || !map_pages(h)) {
        simt_history_free(h);
        return STATUS_OUT_OF_MEMORY;
    }
    *history = h;
    return STATUS_OK;
}

void simt_history_free(struct simt_history *h) {
    if (h != NULL) {
        unmap(h->marks, mark_bytes(h));
        unmap(h->intervals, h->limit * sizeof *h->intervals);
        unmap(h->pages, page_count(h) * sizeof *h->pages);
        unmap(h->touched, page_count(h) * sizeof *h->touched);
        unmap(h->put_off, PUT_OFF_BYTES);
        free(h);
    }
}

/* Numbers start anew, so no mark may be left. */
void simt_history_forget(struct simt_history *h) {
    simt_history_clear_pages(h);
    h->before = 0;
    h->put_off_count = 0;
    h->lost = true;
    madvise(h->marks, mark_bytes(h), MADV_DONTNEED);
    h->next = 1;
    h->stale = 1u << h->shift;
    h->generation++;
}

void simt_history_clear_pages(struct simt_history *h) {
    for (size_t n = 0; n < h->touched_count; n++) {
        h->pages[h->touched[n]] = 0;
    }
    h->before += h->touched_count;
    h->touched_count = 0;
}

/* The marks are written first: reading them first would have the system take two steps, and stop
 * all host threads for the second. */
void simt_history_open_page(struct simt_history *h, size_t page) {
    enum { MARKS_OF_PAGE = 2 * MARK_PAGE_WORDS, MARKS_OF_SYSTEM_PAGE = 4096 / sizeof(uint32_t) };
    size_t first = page * MARKS_OF_PAGE, all = mark_bytes(h) / sizeof *h->marks;
    h->touched[h->touched_count++] = (uint32_t)page;
    for (size_t at = first; at < first + MARKS_OF_PAGE && at < all; at += MARKS_OF_SYSTEM_PAGE) {
        __atomic_fetch_or(&h->marks[at], 0, __ATOMIC_RELAXED);
    }
}

bool simt_history_is_large(const struct simt_history *h) {
    enum { PAGES_KEPT = 1 << 15 };
    return h->before + h->touched_count > PAGES_KEPT;
}

void simt_history_advance(struct simt_history *h) {
    if (h->next > h->limit / 2) {
        simt_history_forget(h);
    }
    h->stale = h->next << h->shift;
    h->first_clock = h->clock;
    h->put_off_count = 0;
    h->written = false;
    h->lost = false;
}

bool simt_history_covers(const struct simt_history *h, uint64_t offset) {
    return offset / WORD_BYTES < h->word_count;
}

uint32_t simt_history_take_tag(struct simt_history *h, struct simt_agent *agent) {
    if (h->next == h->limit) {
        simt_history_forget(h);
    }
    uint32_t number = h->next++;
    uint32_t before = agent->generation == h->generation ? agent->last : 0;
    h->intervals[number] = (struct interval){.agent = agent->id, .before = before};
    agent->last = number;
    agent->tag = number << h->shift;
    agent->tag |= h->lanes ? agent->id << MARK_TAG_SHIFT & h->owner : 0;
    agent->generation = h->generation;
    return agent->tag;
}

/* Blocks that run at the same time have not happened before one another, whatever they release. */
static bool orders(const struct simt_history *h) {
    return h->agents != SIMT_BLOCKS_APART;
}

void simt_history_release(struct simt_history *h, struct simt_agent *agent) {
    if (!orders(h) || agent->last == 0 || agent->generation != h->generation) {
        return;
    }
    simt_history_note_write(h);
    h->clock++;
    for (uint32_t n = agent->last; n != 0; n = h->intervals[n].before) {
        h->intervals[n].released = h->clock;
    }
    agent->last = 0;
    agent->tag = 0;
}

/* The intervals stay the agent's: a fence may release their writes later. */
void simt_history_publish(struct simt_history *h, struct simt_agent *agent) {
    if (!orders(h) || agent->last == 0 || agent->generation != h->generation) {
        return;
    }
    h->clock++;
    for (uint32_t n = agent->last; n != 0 && h->intervals[n].published == 0;
         n = h->intervals[n].before) {
        h->intervals[n].published = h->clock;
    }
    agent->tag = 0;
}

void simt_history_observe(const struct simt_history *h, struct simt_agent *agent) {
    agent->observed = orders(h) ? h->clock : 0;
}

void simt_history_acquire(struct simt_history *h, struct simt_agent *agent) {
    agent->acquired = orders(h) ? h->clock : 0;
}

/* What a mark says against an access. */
enum conflict { NO_CONFLICT, OF_AGENTS, OF_LANES };

/* One access to the bytes of one word. */
struct step {
    const struct simt_touch *touch;
    uint32_t tag, lane; /* as in a mark */
    uint32_t bytes;
};

static bool is_mine(const struct step *step, uint32_t mark) {
    return (mark & MARK_TAG) == step->tag;
}

static bool is_own(const struct simt_history *h, const struct simt_agent *agent, uint32_t mark) {
    return h->intervals[mark >> h->shift].agent == agent->id;
}

/* The marked access happened before the agent's current one, or is its own. */
static bool is_ordered(const struct simt_history *h, const struct simt_agent *agent,
                       uint32_t mark) {
    uint32_t released = h->intervals[mark >> h->shift].released;
    return is_own(h, agent, mark) || (released != 0 && agent->acquired >= released);
}

/* The marked read was over before the agent's current write; see simt_history_publish(). */
static bool is_published(const struct simt_history *h, const struct simt_agent *agent,
                         uint32_t mark) {
    uint32_t published = h->intervals[mark >> h->shift].published;
    return published != 0 && agent->observed >= published;
}

static bool agents_conflict(const struct simt_history *h, const struct simt_agent *agent,
                            uint32_t mark, bool written) {
    /* Of what several did little is sure once the agent has met others. */
    bool met = agent->acquired > h->first_clock;
    bool several = (mark & MARK_SEVERAL_AGENTS) != 0;
    if (is_own(h, agent, mark)) {
        return several && !met;
    }
    return !is_ordered(h, agent, mark) && (written || !is_published(h, agent, mark));
}

/* Both are plain accesses of one warp since its lanes met. What several lanes stored at once is
 * not watched. */
static bool lanes_conflict(const struct step *step, uint32_t mark, bool written) {
    bool several = (mark & MARK_SEVERAL_LANES) != 0;
    bool by_several = step->lane == MARK_SEVERAL_LANES;
    bool writes = step->touch->kind == SIMT_WRITE;
    if ((written && (several || step->touch->together)) || (writes && by_several)) {
        return false;
    }
    /* Several read parts of the word: all of them only when all of it is written. */
    return several ? step->bytes == MARK_BYTES : (mark & MARK_LANES) != step->lane;
}

static enum conflict conflict_with(const struct simt_history *h, const struct simt_agent *agent,
                                   const struct step *step, uint32_t mark, bool written) {
    bool plain = step->touch->kind != SIMT_ATOMIC && (mark & MARK_ATOMIC) == 0;
    if (agents_conflict(h, agent, mark, written)) {
        return OF_AGENTS;
    }
    bool lanes = h->lanes && plain && is_mine(step, mark) && lanes_conflict(step, mark, written);
    return lanes ? OF_LANES : NO_CONFLICT;
}

static bool watches_atomics(const struct simt_history *h) {
    return h->agents == SIMT_WARPS_OF_SHARED || h->agents == SIMT_BLOCKS_OF_SHARED ||
           h->agents == SIMT_BLOCKS_APART;
}

static enum conflict conflict_with_writer(const struct simt_history *h,
                                          const struct simt_agent *agent, const struct step *step,
                                          uint32_t mark) {
    enum simt_access_kind kind = step->touch->kind;
    bool atomic = (mark & MARK_ATOMIC) != 0;
    if (mark < h->stale || (mark & step->bytes) == 0 || (atomic && kind == SIMT_ATOMIC)) {
        return NO_CONFLICT;
    }
    bool same_value = (mark & MARK_SEVERAL_AGENTS) != 0 && !atomic;
    if (same_value && kind == SIMT_READ && h->agents != SIMT_BLOCKS_APART) {
        return NO_CONFLICT;
    }
    return conflict_with(h, agent, step, mark, true);
}

static enum conflict conflict_with_reader(const struct simt_history *h,
                                          const struct simt_agent *agent, const struct step *step,
                                          uint32_t mark) {
    enum simt_access_kind kind = step->touch->kind;
    if (kind == SIMT_READ || mark < h->stale || (mark & step->bytes) == 0 ||
        (kind == SIMT_ATOMIC && !watches_atomics(h))) {
        return NO_CONFLICT;
    }
    return conflict_with(h, agent, step, mark, false);
}

/* The same agent has read or written again. */
static uint32_t mark_again(const struct step *step, uint32_t mark) {
    bool other_lane = (mark & MARK_LANES) != step->lane;
    return mark | step->bytes | (other_lane ? MARK_SEVERAL_LANES : 0);
}

static uint32_t next_reader(const struct simt_history *h, const struct simt_agent *agent,
                            const struct step *step, uint32_t mark) {
    bool several = (mark & MARK_SEVERAL_AGENTS) != 0;
    if (mark < h->stale) {
        return step->tag | step->lane | step->bytes;
    }
    if (is_mine(step, mark)) {
        return mark_again(step, mark);
    }
    if (is_ordered(h, agent, mark)) {
        return several ? mark | step->bytes : step->tag | step->lane | step->bytes;
    }
    /* Agents may each have bytes of their own in a word: those of which it is sure that several
     * read them are kept, and where there are none, the last reader. Apart no byte may be
     * forgotten. */
    uint32_t shared = mark & step->bytes;
    if (h->agents == SIMT_BLOCKS_APART) {
        return mark | MARK_SEVERAL_AGENTS | step->bytes;
    }
    if (shared == 0) {
        return step->tag | step->lane | step->bytes;
    }
    return (mark & ~(uint32_t)MARK_BYTES) | MARK_SEVERAL_AGENTS | shared;
}

static uint32_t next_writer(const struct simt_history *h, const struct simt_agent *agent,
                            const struct step *step, uint32_t mark) {
    bool atomic = step->touch->kind == SIMT_ATOMIC;
    uint32_t fresh = step->tag | (atomic ? MARK_SEVERAL_LANES | MARK_ATOMIC : step->lane);
    if (mark >= h->stale && is_mine(step, mark)) {
        bool whole = step->bytes == MARK_BYTES && !atomic;
        mark &= atomic ? UINT32_MAX : ~(uint32_t)MARK_ATOMIC;
        return whole ? (mark & ~(uint32_t)MARK_LANES) | step->lane | MARK_BYTES
                     : mark_again(step, mark);
    }
    bool meets = mark >= h->stale && !is_ordered(h, agent, mark);
    bool apart = h->agents == SIMT_BLOCKS_APART;
    bool overlaps =
        (mark & step->bytes) != 0 && (step->touch->silent || (atomic && (mark & MARK_ATOMIC) != 0));
    if (meets && (overlaps || apart)) {
        /* Apart no byte may be forgotten; where some are not atomic, none counts as it. */
        uint32_t kept = apart && (mark & MARK_ATOMIC) == 0 ? ~(uint32_t)MARK_ATOMIC : UINT32_MAX;
        return (fresh & kept) | MARK_SEVERAL_AGENTS | (mark & MARK_BYTES) | step->bytes;
    }
    return fresh | step->bytes;
}

static void name_race(const struct simt_history *h, const struct simt_agent *agent, uint32_t mark,
                      bool wrote, enum conflict conflict, struct simt_race *race) {
    uint32_t other = h->intervals[mark >> h->shift].agent;
    *race = (struct simt_race){.agent = other, .known = other != agent->id, .wrote = wrote};
    if (conflict == OF_LANES) {
        race->lanes = true;
        race->known = (mark & MARK_SEVERAL_LANES) == 0;
        race->lane = (mark & MARK_LANES) >> MARK_LANE_SHIFT;
    }
}

static bool touch_word(struct simt_history *h, const struct simt_agent *agent,
                       const struct step *step, size_t word, struct simt_race *race) {
    uint32_t *writer = simt_history_mark(h, word), *reader = writer + MARK_GROUP;
    enum conflict conflict =
        step->touch->silent ? NO_CONFLICT : conflict_with_writer(h, agent, step, *writer);
    if (conflict != NO_CONFLICT) {
        name_race(h, agent, *writer, true, conflict, race);
        return true;
    }
    conflict = step->touch->silent ? NO_CONFLICT : conflict_with_reader(h, agent, step, *reader);
    if (conflict != NO_CONFLICT) {
        name_race(h, agent, *reader, false, conflict, race);
        return true;
    }
    if (step->touch->kind == SIMT_READ) {
        *reader = next_reader(h, agent, step, *reader);
    } else if (step->touch->kind == SIMT_WRITE || watches_atomics(h)) {
        *writer = next_writer(h, agent, step, *writer);
    }
    return false;
}

bool simt_history_touch(struct simt_history *h, struct simt_agent *agent,
                        const struct simt_touch *touch, struct simt_race *race) {
    struct step step = {.touch = touch,
                        .tag = simt_history_tag(h, agent),
                        .lane = h->lanes ? touch->lane << MARK_LANE_SHIFT : 0};
    if (touch->kind == SIMT_READ) {
        simt_history_settle(h);
    } else {
        simt_history_note_write(h);
    }
    if (h->pages != NULL) {
        simt_history_note(h, touch->offset / WORD_BYTES, touch->kind != SIMT_READ);
        simt_history_note(h, (touch->offset + touch->bytes - 1) / WORD_BYTES,
                          touch->kind != SIMT_READ);
    }
    for (size_t done = 0, size; done < touch->bytes; done += size) {
        size_t first = (touch->offset + done) % WORD_BYTES;
        size_t left = touch->bytes - done;
        size = left < WORD_BYTES - first ? left : WORD_BYTES - first;
        step.bytes = ((1u << size) - 1) << first;
        if (touch_word(h, agent, &step, (touch->offset + done) / WORD_BYTES, race)) {
            h->lost = true;
            return true;
        }
    }
    return false;
}
