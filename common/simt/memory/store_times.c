#include "common/simt/memory/store_times.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

enum {
    WORD = 4,
    PAGE_WORDS = 256,
    PAGE_BYTES = PAGE_WORDS * WORD, /* of global memory */
    MOST_PAGES = 1 << 15,
    FIRST_PAGES = 16
};

/*
 * What is kept of a word, in 64 bits, so that the later of two is the larger number:
 *
 *      0-23  the block
 *     24-63  cycles; 0: nothing was stored
 */
enum { CYCLES = 24 };

static const uint64_t BLOCK_MASK = ((uint64_t)1 << CYCLES) - 1;
static const uint64_t MOST_CYCLES = ((uint64_t)1 << (64 - CYCLES)) - 1;

struct page {
    uint64_t number; /* of the page of global memory */
    uint64_t words[PAGE_WORDS];
};

struct simt_store_times {
    struct page *pages; /* (page_count) */
    uint32_t *slots;    /* (2 * page_room) by hash: number of a page, plus one; 0: none */
    size_t page_count, page_room;
    struct page *last; /* that was found last; NULL: none */
    bool is_full;      /* no more pages: they are shared */
};

static const uint64_t golden = 0x9e3779b97f4a7c15u;

static size_t slot_of(const struct simt_store_times *t, uint64_t number) {
    return (size_t)((number * golden) >> 32) % (2 * t->page_room);
}

static void put_slot(struct simt_store_times *t, size_t index) {
    size_t slot = slot_of(t, t->pages[index].number);
    while (t->slots[slot] != 0) {
        slot = (slot + 1) % (2 * t->page_room);
    }
    t->slots[slot] = (uint32_t)index + 1;
}

/* @return false: there is no memory for more pages, and it stays as it is */
static bool make_room(struct simt_store_times *t, size_t room) {
    uint32_t *slots = calloc(2 * room, sizeof *slots);
    struct page *pages = slots != NULL ? realloc(t->pages, room * sizeof *pages) : NULL;
    if (pages == NULL) {
        free(slots);
        return false;
    }
    free(t->slots);
    t->pages = pages;
    t->slots = slots;
    t->page_room = room;
    t->last = NULL;
    for (size_t n = 0; n < t->page_count; n++) {
        put_slot(t, n);
    }
    return true;
}

struct simt_store_times *simt_store_times_create(void) {
    struct simt_store_times *t = calloc(1, sizeof *t);
    if (t != NULL && !make_room(t, FIRST_PAGES)) {
        free(t);
        return NULL;
    }
    return t;
}

void simt_store_times_free(struct simt_store_times *t) {
    if (t != NULL) {
        free(t->pages);
        free(t->slots);
        free(t);
    }
}

void simt_store_times_clear(struct simt_store_times *t) {
    memset(t->slots, 0, 2 * t->page_room * sizeof *t->slots);
    t->page_count = 0;
    t->last = NULL;
    t->is_full = false;
}

/* The page of that number; where there are no more, one of those that there are.
 * @return NULL: nothing was stored there */
static struct page *find(struct simt_store_times *t, uint64_t number) {
    if (t->last != NULL && t->last->number == number) {
        return t->last;
    }
    size_t slot = slot_of(t, number);
    for (; t->slots[slot] != 0; slot = (slot + 1) % (2 * t->page_room)) {
        struct page *page = &t->pages[t->slots[slot] - 1];
        if (page->number == number) {
            t->last = page;
            return page;
        }
    }
    return t->is_full ? &t->pages[number % t->page_count] : NULL;
}

static struct page *find_or_add(struct simt_store_times *t, uint64_t number) {
    struct page *page = find(t, number);
    if (page != NULL) {
        return page;
    }
    bool has_room = t->page_count < t->page_room ||
                    (t->page_room < MOST_PAGES && make_room(t, 2 * t->page_room));
    if (!has_room) {
        t->is_full = true;
        return find(t, number);
    }
    page = &t->pages[t->page_count];
    memset(page, 0, sizeof *page);
    page->number = number;
    put_slot(t, t->page_count++);
    t->last = page;
    return page;
}

static uint64_t pack(const struct simt_store_time *store) {
    uint64_t cycles = store->cycles < 1 ? 1 : store->cycles;
    cycles = cycles < MOST_CYCLES ? cycles : MOST_CYCLES;
    return cycles << CYCLES | (store->block & BLOCK_MASK);
}

/* From the first byte of `address` on: words of one page. @return how many bytes of them */
static size_t words_of(uint64_t address, size_t bytes, size_t *first, size_t *count) {
    uint64_t offset = address % PAGE_BYTES;
    size_t here = bytes < PAGE_BYTES - offset ? bytes : PAGE_BYTES - (size_t)offset;
    *first = offset / WORD;
    *count = (offset + here - 1) / WORD - *first + 1;
    return here;
}

void simt_store_times_note(struct simt_store_times *t, uint64_t address, size_t bytes,
                           const struct simt_store_time *store) {
    uint64_t packed = pack(store);
    while (bytes > 0) {
        size_t first, count, here = words_of(address, bytes, &first, &count);
        uint64_t *words = find_or_add(t, address / PAGE_BYTES)->words + first;
        for (size_t n = 0; n < count; n++) {
            words[n] = words[n] > packed ? words[n] : packed;
        }
        address += here;
        bytes -= here;
    }
}

uint64_t simt_store_times_latest(struct simt_store_times *t, uint64_t address, size_t bytes,
                                 uint64_t block) {
    uint64_t latest = 0;
    while (bytes > 0) {
        size_t first, count, here = words_of(address, bytes, &first, &count);
        const struct page *page = find(t, address / PAGE_BYTES);
        for (size_t n = first; page != NULL && n < first + count; n++) {
            uint64_t word = page->words[n];
            bool others = (word & BLOCK_MASK) != (block & BLOCK_MASK);
            latest = others && word > latest ? word : latest;
        }
        address += here;
        bytes -= here;
    }
    return latest >> CYCLES;
}
