/**
 * @file history_words.h
 * @brief What a word of a history looks like. For history.c and its like, and for what
 *        request_check.c does with every request.
 *
 * One 32-bit mark for the last writer, one for the last reader; eight words'
 * writers lie together, then their readers. A mark:
 *
 *     bits 31..17  number of an interval: what one agent does between two of its
 *                  fences, meetings or barriers. Numbers count up, so that
 *                  raising `stale` makes everything older stale without touching
 *                  a word
 *     bits 16..12  the warp; where agents are blocks, more of the number
 *     bit  11      several lanes of the warp
 *     bits 10..6   the lane, where it is one
 *     bit  5       more agents than the one named
 *     bit  4       atomic
 *     bits 3..0    the bytes
 */
#ifndef WARPBOOK_COMMON_SIMT_MEMORY_RACE_HISTORY_WORDS_H_
#define WARPBOOK_COMMON_SIMT_MEMORY_RACE_HISTORY_WORDS_H_

#include <string.h>

#include "common/simt/memory/race/history.h"

enum {
    MARK_BYTES = 0xf,
    MARK_ATOMIC = 1 << 4,
    MARK_SEVERAL_AGENTS = 1 << 5,
    MARK_LANE_SHIFT = 6,
    MARK_SEVERAL_LANES = SIMT_SEVERAL_LANES << MARK_LANE_SHIFT,
    MARK_LANES = 0x3f << MARK_LANE_SHIFT, /* which lane, or several */
    MARK_TAG_SHIFT = 12,
    MARK_WARP_BITS = 5,
    MARK_PAGE_WORDS = 1024,
    MARK_GROUP = 8 /* words whose marks lie together */
};

/* What was done to a page: see simt_histories_meet(). */
enum { PAGE_READ = 1, PAGE_WRITTEN = 2 };

#define MARK_TAG (UINT32_MAX << MARK_TAG_SHIFT)

/* What one agent does between two of its fences, meetings or barriers. */
struct interval {
    uint32_t agent;
    uint32_t released;  /* clock of the first fence behind it; 0: none yet */
    uint32_t before;    /* the agent's interval before this one; 0: none that is not released */
    uint32_t published; /* clock of the first relaxed store behind it; 0: none yet */
};

/*
 * A read of several words that is not marked yet. Before anything is written, reads cannot race:
 * many kernels read what they wrote before a barrier, and at the next barrier all reads are
 * forgotten. So reads of warps are put off until somebody writes or releases.
 */
struct put_off {
    struct simt_word_map *map; /* NULL: a word of each lane, see simt_history.put_off_lanes */
    size_t offset;
    uint32_t tag;
    uint32_t mask; /* without a map: the lanes */
};

enum { MOST_PUT_OFF = 4096 };

struct simt_history {
    enum simt_agents agents;
    uint32_t *marks; /* of each group the writers, then the readers */
    size_t word_count;
    struct interval *intervals; /* by number */
    uint32_t shift;             /* of the number in a mark */
    uint32_t owner;             /* mask of the part of a mark that tells agents apart */
    uint32_t next, limit;       /* numbers of intervals */
    uint32_t stale;             /* lower marks are */
    uint32_t generation;        /* times that everything was forgotten */
    uint32_t clock;             /* releases so far */
    uint32_t first_clock;       /* when `stale` was raised last */
    bool lanes;                 /* told apart */
    bool lost;                  /* since the last advance a race was found, or all was forgotten */
    uint8_t *pages;             /* blocks: what was done to each page; else NULL */
    uint32_t *touched;          /* (touched_count) pages that something was done to */
    size_t touched_count;
    size_t before;           /* pages that were touched before, maybe the same */
    struct put_off *put_off; /* (put_off_count) reads that are not marked yet; NULL: all are */
    size_t put_off_count;
    int32_t (*put_off_lanes)[SIMT_SEVERAL_LANES]; /* of reads without a map: bytes from `offset` */
    bool written; /* since the last advance: reads are marked at once */
};

/** @return the mark of a word's last writer; that of its last reader lies MARK_GROUP behind it. */
static inline uint32_t *simt_history_mark(const struct simt_history *history, size_t word) {
    return history->marks + 2 * (word - word % MARK_GROUP) + word % MARK_GROUP;
}

/** @return whether reads are put off. */
static inline bool simt_history_puts_off(const struct simt_history *history) {
    return history->put_off != NULL && !history->written;
}

/** Something is written: reads are marked at once from here on. */
static inline void simt_history_note_write(struct simt_history *history) {
    if (simt_history_puts_off(history)) {
        simt_history_settle(history);
        history->written = true;
    }
}

/** No page is touched. */
void simt_history_clear_pages(struct simt_history *history);

/** Something is done to a page for the first time. */
void simt_history_open_page(struct simt_history *history, size_t page);

/* Remembers which pages there are marks of, and which to look at when the histories of several host
 * threads meet. */
static inline void simt_history_note(struct simt_history *history, size_t word, bool written) {
    size_t page = word / MARK_PAGE_WORDS;
    uint8_t did = written ? PAGE_WRITTEN : PAGE_READ;
    if (__builtin_expect(history->pages[page] == 0, 0)) {
        simt_history_open_page(history, page);
    }
    history->pages[page] |= did;
}

/** Takes a number for an agent that has none that counts. @return its tag */
uint32_t simt_history_take_tag(struct simt_history *history, struct simt_agent *agent);

/** @return the agent's tag: the part of its marks that names it. */
static inline uint32_t simt_history_tag(struct simt_history *history, struct simt_agent *agent) {
    bool counts = agent->tag >= history->stale && agent->generation == history->generation;
    return __builtin_expect(counts, 1) ? agent->tag : simt_history_take_tag(history, agent);
}

/**
 * @brief Puts a read off.
 * @param map is whole
 * @return false: that is not possible now, or not until the next advance
 */
static inline bool simt_history_put_off(struct simt_history *history, struct simt_agent *agent,
                                        size_t offset, struct simt_word_map *map) {
    if (!simt_history_puts_off(history)) {
        return false;
    }
    uint32_t tag = simt_history_tag(history, agent);
    if (history->put_off_count == MOST_PUT_OFF) {
        simt_history_note_write(history);
        return false;
    }
    struct put_off *read = &history->put_off[history->put_off_count++];
    read->map = map;
    read->offset = offset;
    read->tag = tag;
    return true;
}

/** The same for a read of a word of 4 bytes by each lane of a mask, without a map.
 *  @param relative (32) bytes from `offset` */
static inline bool simt_history_put_off_words(struct simt_history *history,
                                              struct simt_agent *agent, size_t offset,
                                              const int32_t *relative, uint32_t mask) {
    if (!simt_history_put_off(history, agent, offset, NULL)) {
        return false;
    }
    size_t place = history->put_off_count - 1;
    history->put_off[place].mask = mask;
    memcpy(history->put_off_lanes[place], relative, sizeof *history->put_off_lanes);
    return true;
}

/**
 * @brief A warp reads a word of 4 bytes.
 * @return true when nothing is to be checked or marked: nobody has written it, and several agents,
 *         or this one in the same interval, have read it. Else see simt_history_try()
 */
static inline bool simt_history_has_read(struct simt_history *history, struct simt_agent *agent,
                                         size_t offset) {
    uint32_t tag = simt_history_tag(history, agent);
    const uint32_t *mark = simt_history_mark(history, offset / 4);
    uint32_t reader = mark[MARK_GROUP];
    bool again =
        ((reader ^ tag) & MARK_TAG) == 0 && (!history->lanes || (reader & MARK_SEVERAL_LANES) != 0);
    return mark[0] < history->stale && reader >= history->stale &&
           (reader & MARK_BYTES) == MARK_BYTES && (again || (reader & MARK_SEVERAL_AGENTS) != 0);
}

#endif
