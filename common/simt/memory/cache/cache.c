#include "common/simt/memory/cache/cache.h"

#include <immintrin.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum {
    LINE_SHIFT = 7,
    LINE_BYTES = 1 << LINE_SHIFT,
    SECTOR_BYTES = 32,
    REGION_SHIFT = 9, /* lines that share a mark */
    REGION_LINES = 1 << REGION_SHIFT,
    STAMP_SHIFT = 20, /* ages count in MiB */
    STAMP_MASK = 0xffff
};

/*
 * What is kept of a line, in 64 bits:
 *
 *      0-31  parts of the running launch that touched it
 *     32-35  sectors that the running launch loads
 *     36-39  sectors that it stores
 *     40-43  sectors that L2 had when the launch began
 *     44-47  those of them that were stored to
 *     48-63  when it was touched before, in MiB of lines touched by all launches
 */
enum { LOADED = 32, STORED = 36, PRESENT = 40, DIRTY = 44, STAMP = 48, NIBBLE = 0xf };

struct simt_l2 {
    size_t lines, regions;
    uint64_t *words;       /* (lines) */
    unsigned char *marked; /* (regions): the running launch touched one of its lines */
    size_t low, high;      /* marks lie in regions low ... high - 1 */
    uint64_t position;     /* bytes of the lines touched by all launches and copies before */
};

static void *reserve(size_t bytes) {
    void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    return memory == MAP_FAILED ? NULL : memory;
}

enum status simt_l2_create(struct simt_l2 **l2, size_t bytes) {
    struct simt_l2 *made = calloc(1, sizeof *made);
    *l2 = made;
    if (made == NULL) {
        return STATUS_OUT_OF_MEMORY;
    }
    made->lines = (bytes >> LINE_SHIFT) + 1;
    made->regions = (made->lines >> REGION_SHIFT) + 1;
    made->low = made->regions;
    made->words = reserve(made->lines * sizeof *made->words);
    made->marked = reserve(made->regions);
    if (made->words == NULL || made->marked == NULL) {
        simt_l2_free(made);
        *l2 = NULL;
        return STATUS_OUT_OF_MEMORY;
    }
    return STATUS_OK;
}

void simt_l2_free(struct simt_l2 *l2) {
    if (l2 == NULL) {
        return;
    }
    if (l2->words != NULL) {
        munmap(l2->words, l2->lines * sizeof *l2->words);
    }
    if (l2->marked != NULL) {
        munmap(l2->marked, l2->regions);
    }
    free(l2);
}

/* Device memory is read 64 bytes at a time. */
static uint32_t whole_pairs(uint32_t sectors) {
    return sectors | (sectors & 5) << 1 | (sectors & 10) >> 1;
}

static uint32_t bytes_of(uint32_t sectors) {
    return SECTOR_BYTES * (uint32_t)__builtin_popcount(sectors);
}

/* Moves *bound down or up to a value; host threads do so at the same time. */
static void widen(size_t *bound, size_t value, bool up) {
    size_t old = __atomic_load_n(bound, __ATOMIC_RELAXED);
    while ((up ? old < value : old > value) &&
           !__atomic_compare_exchange_n(bound, &old, value, true, __ATOMIC_RELAXED,
                                        __ATOMIC_RELAXED)) {
    }
}

static void mark(struct simt_l2 *l2, size_t region) {
    if (__atomic_load_n(&l2->marked[region], __ATOMIC_RELAXED) == 0) {
        __atomic_store_n(&l2->marked[region], 1, __ATOMIC_RELAXED);
        widen(&l2->low, region, false);
        widen(&l2->high, region + 1, true);
    }
}

uint32_t simt_l2_touch(struct simt_l2 *l2, uint64_t line, uint32_t sectors, enum simt_l2_use use,
                       uint32_t part) {
    uint64_t add = (uint64_t)1 << part;
    uint32_t bytes = 0;
    if (line >= l2->lines) {
        return 0;
    }
    if ((use & SIMT_L2_LOAD) != 0) {
        add |= (uint64_t)sectors << LOADED;
        bytes += bytes_of(whole_pairs(sectors));
    }
    if ((use & SIMT_L2_STORE) != 0) {
        add |= (uint64_t)sectors << STORED;
        bytes += bytes_of(sectors);
    }
    uint64_t *word = &l2->words[line];
    if ((__atomic_load_n(word, __ATOMIC_RELAXED) & add) != add) {
        __atomic_fetch_or(word, add, __ATOMIC_RELAXED);
        mark(l2, line >> REGION_SHIFT);
    }
    return bytes;
}

/* Sums over the lines of a launch. */
struct launch_sums {
    uint64_t lines[SIMT_L2_PARTS + 1]; /* lines touched in parts before this one, each part's own */
    uint64_t all;                      /* different lines */
    uint64_t visits;                   /* sum of `lines` */
    uint64_t first;                    /* bytes moved for the first touch of each line */
    uint64_t again;                    /* visits that find their line gone */
};

typedef void visit_line(struct simt_l2 *l2, uint64_t *word, size_t capacity,
                        struct launch_sums *sums);

static void visit_touched(struct simt_l2 *l2, size_t capacity, struct launch_sums *sums,
                          visit_line *visit) {
    for (size_t r = l2->low; r < l2->high; r++) {
        const unsigned char *next = memchr(l2->marked + r, 1, l2->high - r);
        if (next == NULL) {
            return;
        }
        r = (size_t)(next - l2->marked);
        for (size_t n = r << REGION_SHIFT; n < (r + 1) << REGION_SHIFT && n < l2->lines; n++) {
            if ((uint32_t)l2->words[n] != 0) {
                visit(l2, &l2->words[n], capacity, sums);
            }
        }
    }
}

static void count_parts(struct simt_l2 *l2, uint64_t *word, size_t capacity,
                        struct launch_sums *sums) {
    (void)l2;
    (void)capacity;
    sums->all++;
    for (uint32_t parts = (uint32_t)*word; parts != 0; parts &= parts - 1) {
        sums->lines[__builtin_ctz(parts) + 1]++;
        sums->visits++;
    }
}

/* Visits after the first whose line had to make room in between. */
static uint64_t count_again(uint32_t parts, size_t capacity, const struct launch_sums *sums) {
    uint64_t again = 0;
    for (; (parts & (parts - 1)) != 0; parts &= parts - 1) {
        uint32_t from = (uint32_t)__builtin_ctz(parts);
        uint32_t to = (uint32_t)__builtin_ctz(parts & (parts - 1));
        again += (sums->lines[to] - sums->lines[from]) * LINE_BYTES > capacity;
    }
    return again;
}

static void settle(struct simt_l2 *l2, uint64_t *word, size_t capacity, struct launch_sums *sums) {
    uint64_t now = l2->position >> STAMP_SHIFT & STAMP_MASK;
    uint64_t age = (now - (*word >> STAMP)) & STAMP_MASK;
    bool gone = age << STAMP_SHIFT > capacity;
    uint32_t present = gone ? 0 : *word >> PRESENT & NIBBLE;
    uint32_t dirty = gone ? 0 : *word >> DIRTY & NIBBLE;
    uint32_t loaded = *word >> LOADED & NIBBLE;
    uint32_t stored = *word >> STORED & NIBBLE;
    uint32_t fetched = whole_pairs(loaded & ~present);
    sums->first += bytes_of(fetched) + bytes_of(stored & ~dirty);
    sums->again += count_again((uint32_t)*word, capacity, sums);
    *word = (uint64_t)(present | fetched | stored) << PRESENT |
            (uint64_t)(dirty | stored) << DIRTY | now << STAMP;
}

/* No line is touched by a running launch. */
static void clear_marks(struct simt_l2 *l2) {
    if (l2->low < l2->high) {
        memset(l2->marked + l2->low, 0, l2->high - l2->low);
    }
    l2->low = l2->regions;
    l2->high = 0;
}

static void cancel(struct simt_l2 *l2, uint64_t *word, size_t capacity, struct launch_sums *sums) {
    (void)l2;
    (void)capacity;
    (void)sums;
    *word &= ~(uint64_t)0 << PRESENT;
}

void simt_l2_cancel(struct simt_l2 *l2) {
    visit_touched(l2, 0, NULL, cancel);
    clear_marks(l2);
}

uint64_t simt_l2_end(struct simt_l2 *l2, size_t capacity, uint64_t uncached) {
    struct launch_sums sums = {{0}, 0, 0, 0, 0};
    visit_touched(l2, capacity, &sums, count_parts);
    for (int part = 0; part < SIMT_L2_PARTS; part++) {
        sums.lines[part + 1] += sums.lines[part];
    }
    visit_touched(l2, capacity, &sums, settle);
    clear_marks(l2);
    l2->position += sums.all * LINE_BYTES;
    /* A visit moves as much as visits do on average, and no more than a line. */
    uint64_t each = sums.visits > 0 ? uncached / sums.visits : 0;
    uint64_t moved = sums.first + sums.again * (each < LINE_BYTES ? each : LINE_BYTES);
    return moved < uncached ? moved : uncached;
}

void simt_l2_fill(struct simt_l2 *l2, uint64_t offset, size_t bytes) {
    uint64_t begin = offset >> LINE_SHIFT;
    uint64_t end = (offset + bytes + LINE_BYTES - 1) >> LINE_SHIFT;
    uint64_t now = l2->position >> STAMP_SHIFT & STAMP_MASK;
    if (bytes == 0 || begin >= l2->lines || end > l2->lines) {
        return;
    }
    for (uint64_t n = begin; n < end; n++) {
        l2->words[n] = (uint64_t)NIBBLE << PRESENT | now << STAMP;
    }
    l2->position += (end - begin) * LINE_BYTES;
}

/* L1. */

enum { WAYS = 4, SECTORS = 4 };

/* A line: its number above, the sectors that are there in the low bits; 0: empty. */
struct set {
    uint64_t lines[WAYS];
};

struct simt_l1 {
    size_t count; /* of sets */
    uint64_t random;
    uint64_t changes; /* see simt_l1_changes() */
    bool used;
    struct set sets[];
};

static const uint64_t golden = 0x9e3779b97f4a7c15u;

struct simt_l1 *simt_l1_create(size_t bytes) {
    size_t count = bytes / (WAYS * LINE_BYTES);
    count = count > 0 ? count : 1;
    struct simt_l1 *l1 = calloc(1, sizeof *l1 + count * sizeof *l1->sets);
    if (l1 != NULL) {
        l1->count = count;
        l1->random = golden;
        l1->changes = 1;
    }
    return l1;
}

void simt_l1_free(struct simt_l1 *l1) {
    free(l1);
}

void simt_l1_clear(struct simt_l1 *l1) {
    if (l1->used) {
        memset(l1->sets, 0, l1->count * sizeof *l1->sets);
    }
    l1->random = golden;
    l1->changes++;
    l1->used = false;
}

uint64_t simt_l1_changes(const struct simt_l1 *l1) {
    return l1->changes;
}

static uint32_t random_way(struct simt_l1 *l1) {
    l1->random = l1->random * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(l1->random >> 62);
}

uint32_t simt_l1_touch(struct simt_l1 *l1, uint64_t line, uint32_t sectors) {
    uint64_t mixed = (line * golden) >> 32;
    struct set *set = &l1->sets[mixed * l1->count >> 32];
    l1->used = true;
    /* All ways at once: which of them has the line is too hard to predict for a branch each. */
    __m256i numbers = _mm256_srli_epi64(_mm256_loadu_si256((const __m256i *)set->lines), SECTORS);
    __m256i equal = _mm256_cmpeq_epi64(numbers, _mm256_set1_epi64x((long long)line));
    int ways = _mm256_movemask_pd(_mm256_castsi256_pd(equal));
    if (ways != 0) {
        uint64_t *hit = &set->lines[__builtin_ctz((unsigned)ways)];
        uint32_t found = (uint32_t)*hit & sectors;
        *hit |= sectors;
        return found;
    }
    set->lines[random_way(l1)] = line << SECTORS | sectors;
    l1->changes++;
    return 0;
}
