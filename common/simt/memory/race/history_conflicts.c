/* What blocks did on several host threads at the same time: did any get in another's way? */
#include <string.h>

#include "common/simt/memory/race/history_words.h"

/* What the histories so far did to the bytes of a word: four bits each. */
enum { WROTE = 0, UPDATED = 4, READ = 8 };

static uint32_t bytes_of(uint32_t mark, uint32_t stale) {
    return mark >= stale ? mark & MARK_BYTES : 0;
}

/* Adds one history's word to the others'. @return the bytes that are in conflict */
static uint32_t add_word(uint32_t writer, uint32_t reader, uint32_t stale, uint32_t *others) {
    uint32_t any = bytes_of(writer, stale);
    uint32_t updated = (writer & MARK_ATOMIC) != 0 ? any : 0;
    uint32_t wrote = any ^ updated;
    uint32_t read = bytes_of(reader, stale);
    uint32_t old = *others;
    uint32_t conflict = (wrote & (old >> WROTE | old >> UPDATED | old >> READ)) |
                        (updated & (old >> WROTE | old >> READ)) |
                        (read & (old >> WROTE | old >> UPDATED));
    *others = old | wrote << WROTE | updated << UPDATED | read << READ;
    return conflict;
}

static bool page_conflicts(struct simt_history *const *histories, size_t count, size_t page) {
    uint32_t others[MARK_PAGE_WORDS] = {0};
    uint32_t conflict = 0;
    for (size_t n = 0; n < count; n++) {
        const struct simt_history *h = histories[n];
        size_t left = h->word_count - page * MARK_PAGE_WORDS;
        size_t words = left < MARK_PAGE_WORDS ? left : MARK_PAGE_WORDS;
        for (size_t w = 0; w < words && h->pages[page] != 0; w++) {
            const uint32_t *mark = simt_history_mark(h, page * MARK_PAGE_WORDS + w);
            conflict |= add_word(mark[0], mark[MARK_GROUP], h->stale, &others[w]);
        }
    }
    return (conflict & MARK_BYTES) != 0;
}

/* More than one history touched the page, one of them wrote, and `first` is the first. */
static bool is_worth_a_look(struct simt_history *const *histories, size_t count, size_t page,
                            size_t first) {
    uint32_t did = 0;
    size_t touched = 0;
    for (size_t n = 0; n < count; n++) {
        uint8_t here = histories[n]->pages[page];
        if (here != 0 && n < first) {
            return false;
        }
        did |= here;
        touched += here != 0;
    }
    return touched > 1 && (did & PAGE_WRITTEN) != 0;
}

bool simt_histories_meet(struct simt_history *const *histories, size_t count) {
    bool conflict = false;
    for (size_t n = 0; n < count; n++) {
        conflict = conflict || histories[n]->lost;
    }
    for (size_t n = 0; n < count && !conflict; n++) {
        const struct simt_history *h = histories[n];
        for (size_t t = 0; t < h->touched_count && !conflict; t++) {
            conflict = is_worth_a_look(histories, count, h->touched[t], n) &&
                       page_conflicts(histories, count, h->touched[t]);
        }
    }
    for (size_t n = 0; n < count; n++) {
        simt_history_clear_pages(histories[n]);
    }
    return conflict;
}
