/*
 * The common case of a history, eight words at a time. Groups of marks are
 * looked at and changed where they stand; words that do not belong to the run
 * are written back as they were, which nobody sees: one host thread uses a
 * history at a time.
 */
#include <string.h>

#ifdef __AVX2__
#include <immintrin.h>
#endif

#include "common/simt/memory/race/history_words.h"

enum { WIDTH = MARK_GROUP };

/* Eight marks; a comparison gives all ones where it holds. */
typedef uint32_t marks __attribute__((vector_size(4 * WIDTH)));

/* What all words of a request are compared with. */
struct query {
    uint32_t stale, tag;
    uint32_t owner;     /* mask of what tells agents apart */
    uint32_t several;   /* all ones: readers of several agents may be marked as such */
    uint32_t forgiving; /* all ones: lanes are not told apart */
};

static inline marks load(const uint32_t *from) {
    marks value;
    memcpy(&value, from, sizeof value);
    return value;
}

static inline marks choose(marks where, marks yes, marks no) {
    return (where & yes) | (~where & no);
}

/* The lanes of eight words, as in a mark. */
static inline marks lanes_of(const uint8_t *lanes) {
    uint8_t bytes __attribute__((vector_size(WIDTH)));
    memcpy(&bytes, lanes, sizeof bytes);
    return __builtin_convertvector(bytes, marks) << MARK_LANE_SHIFT;
}

static inline marks is_own(const struct query *q, marks m) {
    return (marks)(((m ^ q->tag) & (q->owner | MARK_SEVERAL_AGENTS)) == 0);
}

static inline marks is_now(const struct query *q, marks m) {
    return (marks)(((m ^ q->tag) & MARK_TAG) == 0);
}

/* The words whose writers are no obstacle to a reader, or to another writer, of these lanes. */
static inline marks accepts_writer(const struct query *q, marks writer, marks lanes) {
    marks same_lane =
        (marks)(((writer ^ lanes) & MARK_LANES) == 0) | (marks)((writer & MARK_SEVERAL_LANES) != 0);
    return (marks)(writer < q->stale) |
           (is_own(q, writer) & (~is_now(q, writer) | same_lane | q->forgiving));
}

/* Marks a reader. @return the words where that is all there is to it */
static inline marks read_eight(const struct query *q, marks writer, marks *reader, marks lanes,
                               marks wanted) {
    marks old = *reader;
    marks current = (marks)(old >= q->stale);
    marks now = is_now(q, old);
    marks fresh = ~current | (is_own(q, old) & ~now);
    marks others = current & (marks)(((old ^ q->tag) & q->owner) != 0);
    marks other_lane = now & (marks)(((old ^ lanes) & MARK_LANES) != 0);
    marks again =
        old | MARK_BYTES | (others & MARK_SEVERAL_AGENTS) | (other_lane & MARK_SEVERAL_LANES);
    marks fine = accepts_writer(q, writer, lanes) & (~others | q->several);
    *reader = choose(fine & wanted, choose(fresh, lanes | q->tag | MARK_BYTES, again), old);
    return fine;
}

/* The same for a writer. */
static inline marks write_eight(const struct query *q, marks *writer, marks reader, marks lanes,
                                marks wanted) {
    marks at_once = (marks)((lanes & MARK_SEVERAL_LANES) != 0) | q->forgiving;
    marks same_lane = (marks)(((reader ^ lanes) & MARK_LANES) == 0) | at_once;
    marks fine_reader =
        (marks)(reader < q->stale) | (is_own(q, reader) & (~is_now(q, reader) | same_lane));
    marks fine_writer = accepts_writer(q, *writer, lanes) | (is_own(q, *writer) & at_once);
    marks fine = fine_reader & fine_writer;
    *writer = choose(fine & wanted, lanes | q->tag | MARK_BYTES, *writer);
    return fine;
}

/* Of eight words those from `first` on, before `end`. */
static inline marks words_between(size_t first, size_t end) {
    static const uint32_t ones[3 * WIDTH] = {
        [WIDTH] = UINT32_MAX, UINT32_MAX, UINT32_MAX, UINT32_MAX,
        UINT32_MAX,           UINT32_MAX, UINT32_MAX, UINT32_MAX,
    };
    return load(ones + WIDTH - first) & load(ones + 2 * WIDTH - (end < WIDTH ? end : WIDTH));
}

static inline bool is_none(marks m) {
#ifdef __AVX2__
    return _mm256_testz_si256((__m256i)m, (__m256i)m) != 0;
#else
    uint64_t parts[sizeof m / sizeof(uint64_t)], all = 0;
    memcpy(parts, &m, sizeof m);
    for (size_t n = 0; n < sizeof parts / sizeof *parts; n++) {
        all |= parts[n];
    }
    return all == 0;
#endif
}

/* Eight words of a run. */
struct group {
    uint32_t *writers, *readers;
    const uint8_t *lanes; /* NULL: not told apart */
    marks wanted;         /* those that belong to the run */
};

static inline marks lanes_of_group(const struct group *group) {
    return group->lanes != NULL ? lanes_of(group->lanes) : (marks){0};
}

/* Mostly no agent has written, and none has read or several have.
 * @return the words that need a closer look */
static inline marks read_words(const struct query *q, const struct group *g) {
    enum { SHARED = MARK_SEVERAL_AGENTS | MARK_BYTES };
    marks writer = load(g->writers), reader = load(g->readers);
    marks read = (marks)(reader >= q->stale) & g->wanted;
    if (is_none((marks)(writer >= q->stale) & g->wanted)) {
        if (is_none(read)) {
            marks fresh = lanes_of_group(g) | q->tag | MARK_BYTES;
            reader = choose(g->wanted, fresh, reader);
            memcpy(g->readers, &reader, sizeof reader);
            return read;
        }
        if (is_none(g->wanted & ~(read & (marks)((reader & SHARED) == SHARED)))) {
            return (marks){0};
        }
    }
    marks fine = read_eight(q, writer, &reader, lanes_of_group(g), g->wanted);
    memcpy(g->readers, &reader, sizeof reader);
    return ~fine & g->wanted;
}

static inline marks write_words(const struct query *q, const struct group *g) {
    marks writer = load(g->writers), reader = load(g->readers);
    marks fine = write_eight(q, &writer, reader, lanes_of_group(g), g->wanted);
    memcpy(g->writers, &writer, sizeof writer);
    return ~fine & g->wanted;
}

static inline marks update_words(const struct query *q, const struct group *g) {
    return ~accepts_writer(q, load(g->writers), (marks){0}) & g->wanted;
}

/* @return false when a word of the run needs a closer look */
static inline bool try_run(struct simt_history *h, const struct query *q, size_t first,
                           uint32_t words, const uint8_t *lanes, enum simt_access_kind kind) {
    size_t skipped = first % WIDTH, end = skipped + words;
    uint32_t *writers = h->marks + 2 * (first - skipped);
    marks obstacles = {0};
    for (size_t at = 0; at < end; at += WIDTH, writers += 2 * WIDTH) {
        const struct group group = {.writers = writers,
                                    .readers = writers + WIDTH,
                                    .lanes = lanes != NULL ? lanes + at - skipped : NULL,
                                    .wanted = words_between(at == 0 ? skipped : 0, end - at)};
        obstacles |= kind == SIMT_READ    ? read_words(q, &group)
                     : kind == SIMT_WRITE ? write_words(q, &group)
                                          : update_words(q, &group);
    }
    return is_none(obstacles);
}

/* `kind` and `lanes` should be constants. */
static inline __attribute__((always_inline)) bool try_runs(struct simt_history *h, uint32_t tag,
                                                           size_t offset,
                                                           const struct simt_word_map *map,
                                                           enum simt_access_kind kind, bool lanes) {
    const struct query q = {.tag = tag,
                            .stale = h->stale,
                            .owner = h->owner,
                            .several = h->clock == h->first_clock ? UINT32_MAX : 0,
                            .forgiving = kind == SIMT_ATOMIC ? UINT32_MAX : 0};
    const uint8_t *next = map->lanes + SIMT_MAP_SPARE;
    bool fine = true;
    for (uint32_t n = 0; n < map->run_count; n++) {
        const struct simt_word_run run = map->runs[n];
        size_t first = (offset + (size_t)(int64_t)run.offset) / 4;
        if (h->pages != NULL) {
            simt_history_note(h, first, kind != SIMT_READ);
            simt_history_note(h, first + run.words - 1, kind != SIMT_READ);
        }
        fine = try_run(h, &q, first, run.words, lanes ? next : NULL, kind) && fine;
        next += run.words;
    }
    return fine;
}

/* A lane reads a word that nobody has written: as read_eight(). */
static void read_word(const struct query *q, uint32_t *reader, uint32_t lane) {
    uint32_t old = *reader, changed = old ^ q->tag;
    bool now = (changed & MARK_TAG) == 0;
    bool own = (changed & (q->owner | MARK_SEVERAL_AGENTS)) == 0;
    bool others = (changed & q->owner) != 0;
    if (old < q->stale || (own && !now)) {
        *reader = lane | q->tag | MARK_BYTES;
    } else if (!others || q->several != 0) {
        bool other_lane = now && ((old ^ lane) & MARK_LANES) != 0;
        *reader = old | MARK_BYTES | (others ? MARK_SEVERAL_AGENTS : 0) |
                  (other_lane ? MARK_SEVERAL_LANES : 0);
    }
}

/* Marks a read that was put off without a map. */
static void settle_words(struct simt_history *h, const struct put_off *read,
                         const int32_t *relative) {
    const struct query q = {.tag = read->tag,
                            .stale = h->stale,
                            .owner = h->owner,
                            .several = h->clock == h->first_clock ? UINT32_MAX : 0};
    for (uint32_t rest = read->mask; rest != 0; rest &= rest - 1) {
        uint32_t lane = (uint32_t)__builtin_ctz(rest);
        size_t word = (read->offset + (size_t)(int64_t)relative[lane]) / 4;
        if (h->pages != NULL) {
            simt_history_note(h, word, false);
        }
        read_word(&q, simt_history_mark(h, word) + MARK_GROUP, lane << MARK_LANE_SHIFT);
    }
}

/* Nothing is written and nothing released: no word needs a closer look. */
void simt_history_settle(struct simt_history *h) {
    size_t count = h->put_off_count;
    h->put_off_count = 0;
    for (size_t n = 0; n < count; n++) {
        const struct put_off *read = &h->put_off[n];
        if (read->map == NULL) {
            settle_words(h, read, h->put_off_lanes[n]);
            continue;
        }
        simt_word_map_find(read->map);
        (void)try_runs(h, read->tag, read->offset, read->map, SIMT_READ, true);
    }
}

bool simt_history_is_settled(const struct simt_history *h) {
    return h->put_off_count == 0;
}

void simt_history_prefetch(const struct simt_history *h, size_t offset,
                           const struct simt_word_map *map) {
    enum { MOST = 4 }; /* a hint: more take longer than they save */
    if (simt_history_puts_off(h)) {
        return;
    }
    for (uint32_t n = 0; n < map->run_count && n < MOST; n++) {
        size_t word = (offset + (size_t)(int64_t)map->runs[n].offset) / 4;
        for (uint32_t at = 0; at < map->runs[n].words; at += WIDTH) {
            __builtin_prefetch(simt_history_mark(h, word + at), 1);
        }
    }
}

bool simt_history_try_words(struct simt_history *h, struct simt_agent *agent, size_t offset,
                            const int32_t *relative, uint32_t mask) {
    const struct query q = {
        .tag = simt_history_tag(h, agent), .stale = h->stale, .owner = h->owner};
    marks obstacles = {0};
    simt_history_note_write(h);
    for (uint32_t first = 0; first < SIMT_SEVERAL_LANES; first += WIDTH) {
        uint32_t *places[WIDTH];
        marks writers, readers, lanes, wanted;
        for (uint32_t n = 0; n < WIDTH; n++) {
            size_t at = offset + (size_t)(int64_t)relative[first + n];
            places[n] = simt_history_mark(h, at / 4);
            writers[n] = *places[n];
            readers[n] = places[n][MARK_GROUP];
            lanes[n] = h->lanes ? (first + n) << MARK_LANE_SHIFT : 0;
            wanted[n] = (uint32_t)0 - (mask >> (first + n) & 1);
        }
        marks fine = write_eight(&q, &writers, readers, lanes, wanted);
        for (uint32_t n = 0; n < WIDTH; n++) {
            if ((mask >> (first + n) & 1) != 0) {
                *places[n] = writers[n];
            }
        }
        obstacles |= ~fine & wanted;
    }
    return is_none(obstacles);
}

bool simt_history_try(struct simt_history *h, struct simt_agent *agent, size_t offset,
                      struct simt_word_map *map, enum simt_access_kind kind) {
    if (kind == SIMT_READ && map->whole && simt_history_put_off(h, agent, offset, map)) {
        return true;
    }
    uint32_t tag = simt_history_tag(h, agent);
    simt_word_map_find(map);
    if (map->run_count == 0) {
        return false;
    }
    switch (kind) {
    case SIMT_READ:
        return h->lanes ? try_runs(h, tag, offset, map, SIMT_READ, true)
                        : try_runs(h, tag, offset, map, SIMT_READ, false);
    case SIMT_WRITE:
        simt_history_note_write(h);
        return h->lanes ? try_runs(h, tag, offset, map, SIMT_WRITE, true)
                        : try_runs(h, tag, offset, map, SIMT_WRITE, false);
    case SIMT_ATOMIC:
        break;
    }
    bool unmarked = h->agents == SIMT_WARPS_OF_GLOBAL || h->agents == SIMT_BLOCKS;
    return unmarked && try_runs(h, tag, offset, map, SIMT_ATOMIC, false);
}
