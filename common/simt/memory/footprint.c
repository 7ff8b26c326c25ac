#include "common/simt/memory/footprint.h"

#include <stdatomic.h>
#include <stdlib.h>

enum {
    PAGE_SHIFT = 16,
    WORD_SHIFT = 2,
    PAGE_WORDS = 1 << (PAGE_SHIFT - WORD_SHIFT),
    SET_WORDS = PAGE_WORDS / 64,
    PART_WORDS = SET_WORDS / 64
};

/* Sets of words, of 64 KiB of memory. */
struct page {
    atomic_uint_fast64_t sets[2][SET_WORDS]; /* read, written */
    atomic_uint_fast64_t parts;              /* a bit for each PART_WORDS of `sets` not all 0 */
    uint64_t number;
    _Atomic(atomic_uint *) sites; /* (PAGE_WORDS): by which a word was written, plus one; or NULL */
    struct page *next;            /* of its bucket */
    struct page *older;           /* of all */
};

enum { BUCKETS = 1 << 12 };

struct simt_footprint {
    _Atomic(struct page *) buckets[BUCKETS]; /* by number; in each the newest first */
    _Atomic(struct page *) newest;           /* of all */
    atomic_size_t pages;
};

static size_t bucket_of(uint64_t number) {
    return (size_t)((number ^ number >> 12) % BUCKETS);
}

struct simt_footprint *simt_footprint_create(void) {
    return calloc(1, sizeof(struct simt_footprint));
}

void simt_footprint_free(struct simt_footprint *f) {
    for (struct page *page = f != NULL ? f->newest : NULL, *older; page != NULL; page = older) {
        older = page->older;
        free(atomic_load(&page->sites));
        free(page);
    }
    free(f);
}

/* @return the page of that number among those from @p page on, or NULL */
static struct page *find_page(struct page *page, uint64_t number) {
    while (page != NULL && page->number != number) {
        page = page->next;
    }
    return page;
}

/* @return the page of that number, made where there is none; NULL when memory is short */
static struct page *page_of(struct simt_footprint *f, uint64_t number) {
    _Atomic(struct page *) *bucket = &f->buckets[bucket_of(number)];
    struct page *newest = atomic_load(bucket), *made = NULL, *page;
    while ((page = find_page(newest, number)) == NULL) {
        made = made != NULL ? made : calloc(1, sizeof *made);
        if (made == NULL) {
            return NULL;
        }
        made->number = number;
        made->next = newest;
        if (atomic_compare_exchange_strong(bucket, &newest, made)) {
            atomic_fetch_add(&f->pages, 1);
            made->older = atomic_load(&f->newest);
            while (!atomic_compare_exchange_weak(&f->newest, &made->older, made)) {
            }
            return made;
        }
    }
    free(made);
    return page;
}

static void add_bits(struct page *page, size_t set, uint64_t mask, bool writes) {
    atomic_uint_fast64_t *bits = &page->sets[writes][set];
    if ((atomic_load_explicit(bits, memory_order_relaxed) & mask) != mask) {
        atomic_fetch_or_explicit(bits, mask, memory_order_relaxed);
        atomic_fetch_or_explicit(&page->parts, (uint64_t)1 << set / PART_WORDS,
                                 memory_order_relaxed);
    }
}

void simt_footprint_note(struct simt_footprint *f, uint64_t address, size_t bytes, bool writes) {
    if (bytes == 0 || bytes - 1 > UINT64_MAX - address) {
        return;
    }
    uint64_t last = (address + bytes - 1) >> WORD_SHIFT;
    for (uint64_t word = address >> WORD_SHIFT; word <= last;) {
        struct page *page = page_of(f, word >> (PAGE_SHIFT - WORD_SHIFT));
        uint64_t bit = word % 64, count = last - word + 1 < 64 - bit ? last - word + 1 : 64 - bit;
        uint64_t mask = (count == 64 ? UINT64_MAX : ((uint64_t)1 << count) - 1) << bit;
        if (page != NULL) {
            add_bits(page, word / 64 % SET_WORDS, mask, writes);
        }
        word += count;
    }
}

/* @return the sites of a page's words; NULL when memory is short */
static atomic_uint *sites_of(struct page *page) {
    atomic_uint *sites = atomic_load(&page->sites), *none = NULL;
    if (sites != NULL) {
        return sites;
    }
    sites = calloc(PAGE_WORDS, sizeof *sites);
    if (sites != NULL && !atomic_compare_exchange_strong(&page->sites, &none, sites)) {
        free(sites);
        sites = none;
    }
    return sites;
}

void simt_footprint_note_site(struct simt_footprint *f, uint64_t address, size_t bytes,
                              uint32_t site) {
    simt_footprint_note(f, address, bytes, true);
    if (bytes == 0 || bytes - 1 > UINT64_MAX - address) {
        return;
    }
    for (uint64_t word = address >> WORD_SHIFT; word <= (address + bytes - 1) >> WORD_SHIFT;
         word++) {
        struct page *page = page_of(f, word >> (PAGE_SHIFT - WORD_SHIFT));
        atomic_uint *sites = page != NULL ? sites_of(page) : NULL;
        if (sites != NULL) {
            atomic_store_explicit(&sites[word % PAGE_WORDS], site + 1, memory_order_relaxed);
        }
    }
}

/* @return the first set from @p set on whose part is among @p parts; SET_WORDS: none */
static size_t next_set(uint64_t parts, size_t set) {
    uint64_t left = set < SET_WORDS ? parts >> set / PART_WORDS : 0;
    if (left == 0) {
        return SET_WORDS;
    }
    size_t skipped = (size_t)__builtin_ctzll(left);
    return skipped == 0 ? set : (set / PART_WORDS + skipped) * PART_WORDS;
}

void simt_footprint_visit(const struct simt_footprint *f,
                          void (*visit)(void *context, uint64_t address, unsigned words),
                          void *context) {
    for (const struct page *page = f->newest; page != NULL; page = page->older) {
        for (size_t set = next_set(page->parts, 0); set < SET_WORDS;
             set = next_set(page->parts, set + 1)) {
            uint64_t words = page->sets[0][set] | page->sets[1][set];
            if (words != 0) {
                visit(context, (page->number << PAGE_SHIFT) + (set * 64 << WORD_SHIFT),
                      (unsigned)__builtin_popcountll(words));
            }
        }
    }
}

bool simt_footprint_is_empty(const struct simt_footprint *f) {
    return f->newest == NULL;
}

static bool meet_in_page(const struct page *first, const struct page *second, bool reads_too,
                         struct simt_meeting *meeting) {
    uint64_t parts = first->parts & second->parts;
    for (size_t n = next_set(parts, 0); n < SET_WORDS; n = next_set(parts, n + 1)) {
        uint64_t read = reads_too ? first->sets[0][n] : 0, written = first->sets[1][n];
        uint64_t other_read = second->sets[0][n], other_written = second->sets[1][n];
        uint64_t both = (written & (other_read | other_written)) | (read & other_written);
        if (both != 0) {
            uint64_t bit = both & -both;
            uint64_t word = n * 64 + (uint64_t)__builtin_ctzll(both);
            *meeting = (struct simt_meeting){.address = (first->number << PAGE_SHIFT) +
                                                        (word << WORD_SHIFT),
                                             .first_writes = (written & bit) != 0,
                                             .second_writes = (other_written & bit) != 0};
            return true;
        }
    }
    return false;
}

static bool is_in(const struct page *page, const struct simt_extent *window) {
    return window == NULL ||
           (page->number << PAGE_SHIFT) - window->begin < window->end - window->begin;
}

bool simt_footprint_meets(const struct simt_footprint *first, const struct simt_footprint *second,
                          bool reads_too, const struct simt_extent *where,
                          struct simt_meeting *meeting) {
    bool met = false, walks_first = first->pages < second->pages;
    const struct simt_footprint *walked = walks_first ? first : second;
    const struct simt_footprint *searched = walks_first ? second : first;
    for (const struct page *page = walked->newest; page != NULL; page = page->older) {
        const struct page *other =
            find_page(searched->buckets[bucket_of(page->number)], page->number);
        struct simt_meeting here;
        if (other != NULL && is_in(page, where) &&
            meet_in_page(walks_first ? page : other, walks_first ? other : page, reads_too,
                         &here) &&
            (!met || here.address < meeting->address)) { /* pages come in any order */
            *meeting = here;
            met = true;
        }
    }
    return met;
}

bool simt_footprint_has(const struct simt_footprint *f, uint64_t address, bool writes) {
    uint64_t number = address >> PAGE_SHIFT, word = address >> WORD_SHIFT;
    const struct page *page = find_page(f->buckets[bucket_of(number)], number);
    return page != NULL && (page->sets[writes][word / 64 % SET_WORDS] >> word % 64 & 1) != 0;
}

bool simt_footprint_site(const struct simt_footprint *f, uint64_t address, uint32_t *site) {
    uint64_t number = address >> PAGE_SHIFT, word = address >> WORD_SHIFT;
    const struct page *page = find_page(f->buckets[bucket_of(number)], number);
    const atomic_uint *sites = page != NULL ? page->sites : NULL;
    uint32_t noted = sites != NULL ? sites[word % PAGE_WORDS] : 0;
    *site = noted - 1;
    return noted != 0;
}
