/*
 * The common case of a history, eight words at a time. Vectors of marks are
 * looked at and changed where they stand; words that do not belong to the run
 * are written back as they were, which nobody sees: one host thread uses a
 * history at a time.
 */
#include <string.h>

#ifdef __AVX2__
#include <immintrin.h>
#endif

#include "common/simt/memory/history_words.h"

enum { WIDTH = 8, SHORT = 4 };

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

/* The first `count` of eight words, or all. */
static inline marks first_words(uint32_t count) {
    static const uint32_t ones[2 * WIDTH] = {
        UINT32_MAX, UINT32_MAX, UINT32_MAX, UINT32_MAX,
        UINT32_MAX, UINT32_MAX, UINT32_MAX, UINT32_MAX,
    };
    return load(ones + WIDTH - (count < WIDTH ? count : WIDTH));
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

/* Where the words of a request begin among all marks. */
struct place {
    uint32_t *writers, *readers;
    const uint8_t *lanes; /* NULL: not told apart */
};

static inline marks lanes_at(const struct place *place, uint32_t word) {
    return place->lanes != NULL ? lanes_of(place->lanes + word) : (marks){0};
}

/* In most cases nobody has written; and nobody has read, or several already have.
 * @return the words that need a closer look */
static inline marks read_words(const struct query *q, const struct place *place, uint32_t word,
                               marks wanted) {
    enum { SHARED = MARK_SEVERAL_AGENTS | MARK_BYTES };
    marks writer = load(place->writers + word), reader = load(place->readers + word);
    marks read = (marks)(reader >= q->stale) & wanted;
    if (is_none((marks)(writer >= q->stale) & wanted)) {
        if (is_none(read)) {
            marks fresh = lanes_at(place, word) | q->tag | MARK_BYTES;
            reader = choose(wanted, fresh, reader);
            memcpy(place->readers + word, &reader, sizeof reader);
            return read;
        }
        if (is_none(wanted & ~(read & (marks)((reader & SHARED) == SHARED)))) {
            return (marks){0};
        }
    }
    marks fine = read_eight(q, writer, &reader, lanes_at(place, word), wanted);
    memcpy(place->readers + word, &reader, sizeof reader);
    return ~fine & wanted;
}

static inline marks write_words(const struct query *q, const struct place *place, uint32_t word,
                                marks wanted) {
    marks writer = load(place->writers + word), reader = load(place->readers + word);
    marks fine = write_eight(q, &writer, reader, lanes_at(place, word), wanted);
    memcpy(place->writers + word, &writer, sizeof writer);
    return ~fine & wanted;
}

static inline marks update_words(const struct query *q, const struct place *place, uint32_t word,
                                 marks wanted) {
    return ~accepts_writer(q, load(place->writers + word), (marks){0}) & wanted;
}

/* Vectors that overlap would wait for one another: one by one. @return false when a word needs a
 * closer look */
static inline bool try_short_run(struct simt_history *h, const struct simt_agent *agent,
                                 const struct place *place, uint32_t words,
                                 enum simt_access_kind kind) {
    const struct simt_touch touch = {.kind = kind};
    struct step step = {.touch = &touch, .tag = agent->tag, .bytes = MARK_BYTES};
    struct simt_race race;
    for (uint32_t n = 0; n < words; n++) {
        step.lane = place->lanes != NULL ? (uint32_t)place->lanes[n] << MARK_LANE_SHIFT : 0;
        if (kind == SIMT_READ && place->writers[n] < h->stale && place->readers[n] < h->stale) {
            place->readers[n] = step.tag | step.lane | MARK_BYTES;
        } else if (simt_history_touch_word(h, agent, &step,
                                           (size_t)(place->writers + n - h->writers), &race)) {
            return false;
        }
    }
    return true;
}

/* @return false when a word of the run needs a closer look */
static inline bool try_run(const struct query *q, const struct place *place, uint32_t words,
                           enum simt_access_kind kind) {
    marks obstacles = {0};
    for (uint32_t word = 0; word < words; word += WIDTH) {
        marks wanted = first_words(words - word);
        obstacles |= kind == SIMT_READ    ? read_words(q, place, word, wanted)
                     : kind == SIMT_WRITE ? write_words(q, place, word, wanted)
                                          : update_words(q, place, word, wanted);
    }
    return is_none(obstacles);
}

/* `kind` and `lanes` should be constants. */
static inline __attribute__((always_inline)) bool
try_runs(struct simt_history *h, const struct simt_agent *agent, size_t offset,
         const struct simt_word_map *map, enum simt_access_kind kind, bool lanes) {
    const struct query q = {.tag = agent->tag,
                            .stale = h->stale,
                            .owner = h->owner,
                            .several = h->clock == h->first_clock ? UINT32_MAX : 0,
                            .forgiving = kind == SIMT_ATOMIC ? UINT32_MAX : 0};
    uint32_t before = 0;
    bool fine = true;
    for (uint32_t n = 0; n < map->run_count; n++) {
        const struct simt_word_run run = map->runs[n];
        size_t first = (offset + (size_t)(int64_t)run.offset) / 4;
        const struct place place = {.writers = h->writers + first,
                                    .readers = h->readers + first,
                                    .lanes = lanes ? map->lanes + before : NULL};
        if (h->pages != NULL) {
            simt_history_note(h, first, kind != SIMT_READ);
            simt_history_note(h, first + run.words - 1, kind != SIMT_READ);
        }
        bool here = run.words < SHORT ? try_short_run(h, agent, &place, run.words, kind)
                                      : try_run(&q, &place, run.words, kind);
        fine = fine && here;
        before += run.words;
    }
    return fine;
}

bool simt_history_try(struct simt_history *h, struct simt_agent *agent, size_t offset,
                      const struct simt_word_map *map, enum simt_access_kind kind) {
    simt_history_tag(h, agent);
    switch (kind) {
    case SIMT_READ:
        return h->lanes ? try_runs(h, agent, offset, map, SIMT_READ, true)
                        : try_runs(h, agent, offset, map, SIMT_READ, false);
    case SIMT_WRITE:
        return h->lanes ? try_runs(h, agent, offset, map, SIMT_WRITE, true)
                        : try_runs(h, agent, offset, map, SIMT_WRITE, false);
    case SIMT_ATOMIC:
        break;
    }
    bool unmarked = h->agents == SIMT_WARPS_OF_GLOBAL || h->agents == SIMT_BLOCKS;
    return unmarked && try_runs(h, agent, offset, map, SIMT_ATOMIC, false);
}
