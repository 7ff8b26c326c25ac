#include "common/simt/memory/footprint.h"

#include <stdatomic.h>
#include <stdlib.h>

enum { PAGE_SHIFT = 16, WORD_SHIFT = 2, SET_WORDS = (1 << (PAGE_SHIFT - WORD_SHIFT)) / 64 };
enum { LEAF_SHIFT = 10, LEAF_PAGES = 1 << LEAF_SHIFT };

/* Sets of words, of 64 KiB of memory. */
struct page {
    atomic_uint_fast64_t sets[2][SET_WORDS]; /* read, written */
    uint64_t number;
    struct page *next;
};

/* Pages by the low bits of their numbers; NULL: not touched. */
struct leaf {
    _Atomic(struct page *) pages[LEAF_PAGES];
};

/* Made for each piece of work, whose memory is a small part of the window: a page table of two
   levels. */
struct simt_footprint {
    uint64_t begin, end;
    size_t count;
    _Atomic(struct page *) pages;    /* all of them */
    _Atomic(struct leaf *) leaves[]; /* by the high bits of a page's number; NULL: not touched */
};

struct simt_footprint *simt_footprint_create(uint64_t begin, uint64_t end) {
    const uint64_t first = begin >> PAGE_SHIFT << PAGE_SHIFT;
    const size_t count = (size_t)((end - first) >> (PAGE_SHIFT + LEAF_SHIFT)) + 1;
    struct simt_footprint *f = calloc(1, sizeof *f + count * sizeof *f->leaves);
    if (f != NULL) {
        f->begin = first;
        f->end = end;
        f->count = count;
    }
    return f;
}

void simt_footprint_free(struct simt_footprint *f) {
    if (f == NULL) {
        return;
    }
    for (struct page *page = f->pages, *next; page != NULL; page = next) {
        next = page->next;
        free(page);
    }
    for (size_t n = 0; n < f->count; n++) {
        free(f->leaves[n]);
    }
    free(f);
}

/* @return the leaf of the page of that number, made where there is none; NULL when memory is short
 */
static struct leaf *leaf_of(struct simt_footprint *f, uint64_t number) {
    _Atomic(struct leaf *) *place = &f->leaves[number >> LEAF_SHIFT];
    struct leaf *leaf = atomic_load(place), *none = NULL;
    if (leaf != NULL) {
        return leaf;
    }
    leaf = calloc(1, sizeof *leaf);
    if (leaf != NULL && !atomic_compare_exchange_strong(place, &none, leaf)) {
        free(leaf);
        return none;
    }
    return leaf;
}

/* @return the page of that number, made where there is none; NULL when memory is short */
static struct page *page_of(struct simt_footprint *f, uint64_t number) {
    struct leaf *leaf = leaf_of(f, number);
    if (leaf == NULL) {
        return NULL;
    }
    _Atomic(struct page *) *place = &leaf->pages[number % LEAF_PAGES];
    struct page *page = atomic_load(place), *none = NULL;
    if (page != NULL) {
        return page;
    }
    page = calloc(1, sizeof *page);
    if (page == NULL) {
        return NULL;
    }
    page->number = number;
    if (!atomic_compare_exchange_strong(place, &none, page)) {
        free(page);
        return none;
    }
    page->next = atomic_load(&f->pages);
    while (!atomic_compare_exchange_weak(&f->pages, &page->next, page)) {
    }
    return page;
}

/* @return the page of that number; NULL where there is none */
static const struct page *find_page(const struct simt_footprint *f, uint64_t number) {
    const struct leaf *leaf = f->leaves[number >> LEAF_SHIFT];
    return leaf == NULL ? NULL : leaf->pages[number % LEAF_PAGES];
}

void simt_footprint_note(struct simt_footprint *f, uint64_t address, size_t bytes, bool writes) {
    if (bytes == 0 || address < f->begin || address >= f->end || bytes > f->end - address) {
        return;
    }
    uint64_t last = (address - f->begin + bytes - 1) >> WORD_SHIFT;
    for (uint64_t word = (address - f->begin) >> WORD_SHIFT; word <= last;) {
        struct page *page = page_of(f, word >> (PAGE_SHIFT - WORD_SHIFT));
        uint64_t bit = word % 64, count = last - word + 1 < 64 - bit ? last - word + 1 : 64 - bit;
        uint64_t mask = (count == 64 ? UINT64_MAX : ((uint64_t)1 << count) - 1) << bit;
        if (page != NULL) {
            atomic_uint_fast64_t *set = &page->sets[writes][word / 64 % SET_WORDS];
            if ((atomic_load_explicit(set, memory_order_relaxed) & mask) != mask) {
                atomic_fetch_or_explicit(set, mask, memory_order_relaxed);
            }
        }
        word += count;
    }
}

static bool meet_in_page(const struct page *first, const struct page *second,
                         struct simt_meeting *meeting, uint64_t begin) {
    for (size_t n = 0; n < SET_WORDS; n++) {
        uint64_t read = first->sets[0][n], written = first->sets[1][n];
        uint64_t other_read = second->sets[0][n], other_written = second->sets[1][n];
        uint64_t both = (written & (other_read | other_written)) | (read & other_written);
        if (both != 0) {
            uint64_t bit = both & -both;
            uint64_t word = n * 64 + (uint64_t)__builtin_ctzll(both);
            *meeting = (struct simt_meeting){.address = begin + (first->number << PAGE_SHIFT) +
                                                        (word << WORD_SHIFT),
                                             .first_writes = (written & bit) != 0,
                                             .second_writes = (other_written & bit) != 0};
            return true;
        }
    }
    return false;
}

bool simt_footprint_meets(const struct simt_footprint *first, const struct simt_footprint *second,
                          struct simt_meeting *meeting) {
    bool met = false;
    for (const struct page *page = first->pages; page != NULL; page = page->next) {
        const struct page *other = find_page(second, page->number);
        struct simt_meeting here;
        if (other != NULL && meet_in_page(page, other, &here, first->begin) &&
            (!met || here.address < meeting->address)) { /* pages come in any order */
            *meeting = here;
            met = true;
        }
    }
    return met;
}
