#include "common/simt/memory/block_costs.h"

#include <stdlib.h>
#include <string.h>

enum {
    STEPS = 16, /* of an octave */
    KINDS = 4,  /* what a block takes most of */
    LOADS = 4   /* how often it loads: what waits is to be told from what computes */
};
_Static_assert(SIMT_BLOCK_KEYS == LOADS * KINDS * 64 * STEPS, "a key for each kind and length");

/* Sixteenths of an octave. */
static uint32_t logarithm(uint64_t value) {
    if (value == 0) {
        return 0;
    }
    uint32_t octave = 63 - (uint32_t)__builtin_clzll(value);
    uint64_t rest = value << (63 - octave) >> 59; /* its 5 leading bits: 1 and four more */
    return octave * STEPS + (uint32_t)(rest & (STEPS - 1));
}

/* Loads that may be waited for: none, up to one in 64 instructions, one in 16, or more. */
static uint32_t loads_of(const struct simt_counters *c) {
    uint64_t loads = c->global_load_requests + c->local_requests + c->atomic_requests;
    return loads == 0                             ? 0
           : 64 * loads < c->machine_instructions ? 1
           : 16 * loads < c->machine_instructions ? 2
                                                  : 3;
}

/* Roughly the cycles that a block takes of each unit, of four at a time, and what it takes most. */
static uint32_t key_of(const struct simt_counters *c) {
    enum { TENSOR_SHARE = 256 };
    uint64_t passes = c->global_lines + c->shared_load_wavefronts + c->shared_store_wavefronts +
                      c->atomic_serial + c->constant_serial + c->local_sectors / 4 +
                      c->peer_served_sectors + c->peer_served_passes + c->peer_served_atomics;
    const uint64_t *products = c->tensor_operations;
    uint64_t longer = products[SIMT_TENSOR_TF32] + 9 * products[SIMT_TENSOR_F64] +
                      products[SIMT_TENSOR_INT8] / 2 + products[SIMT_TENSOR_INT4] / 2;
    const uint64_t costs[KINDS] = {c->machine_instructions, 4 * passes,
                                   4 * (c->l2_sectors - c->l1_hit_sectors),
                                   (c->flops + longer) / TENSOR_SHARE};
    uint64_t all = 4 * c->longest_warps;
    uint32_t most = 0;
    for (uint32_t kind = 0; kind < KINDS; kind++) {
        all += costs[kind];
        most = costs[kind] > costs[most] ? kind : most;
    }
    return (loads_of(c) * KINDS + most) * 64 * STEPS + logarithm(all);
}

bool simt_block_costs_begin(struct simt_block_costs *costs, uint64_t blocks) {
    *costs = (struct simt_block_costs){.window = 1};
    while (blocks / costs->window > SIMT_ORDERED_BLOCKS) {
        costs->window *= 2;
    }
    costs->by_key = calloc(SIMT_BLOCK_KEYS, sizeof *costs->by_key);
    return costs->by_key != NULL;
}

/* Makes room for one more. */
static bool grow(void **list, size_t count, size_t *room, size_t size) {
    if (count < *room) {
        return true;
    }
    size_t wanted = *room > 0 ? 2 * *room : 4;
    void *larger = realloc(*list, wanted * size);
    if (larger == NULL) {
        return false;
    }
    *list = larger;
    *room = wanted;
    return true;
}

static struct simt_block_class *class_of(struct simt_block_costs *costs, uint32_t key) {
    if (costs->by_key[key] == 0) {
        void *list = costs->classes;
        if (!grow(&list, costs->class_count, &costs->class_room, sizeof *costs->classes)) {
            return NULL;
        }
        costs->classes = list;
        costs->classes[costs->class_count++] = (struct simt_block_class){.key = key};
        costs->by_key[key] = (uint16_t)costs->class_count;
    }
    return &costs->classes[costs->by_key[key] - 1];
}

/* Of spans in a row: whether another one of the same class goes into the last, or into one of the
 * same window. */
static struct simt_block_span *find_span(const struct simt_block_costs *costs, uint64_t first,
                                         uint32_t of) {
    for (size_t n = costs->span_count; n > 0; n--) {
        struct simt_block_span *span = &costs->spans[n - 1];
        bool joins =
            costs->window == 1 ? span->first + span->blocks == first : span->first == first;
        if (!joins) {
            return NULL;
        }
        if (span->of == of) {
            return span;
        }
        if (costs->window == 1) {
            return NULL;
        }
    }
    return NULL;
}

static bool add_span(struct simt_block_costs *costs, uint64_t first, uint64_t blocks, uint32_t of) {
    first -= first % costs->window;
    struct simt_block_span *span = find_span(costs, first, of);
    if (span != NULL) {
        span->blocks += blocks;
        return true;
    }
    void *list = costs->spans;
    if (!grow(&list, costs->span_count, &costs->span_room, sizeof *costs->spans)) {
        return false;
    }
    costs->spans = list;
    costs->spans[costs->span_count++] =
        (struct simt_block_span){.first = first, .blocks = blocks, .of = of};
    return true;
}

bool simt_block_costs_note(struct simt_block_costs *costs, uint64_t order,
                           const struct simt_counters *own) {
    struct simt_block_class *c = class_of(costs, key_of(own));
    if (c == NULL) {
        return false;
    }
    c->blocks++;
    simt_counters_add(&c->sum, own);
    return add_span(costs, order, 1, (uint32_t)(c - costs->classes));
}

bool simt_block_costs_add(struct simt_block_costs *to, const struct simt_block_costs *from) {
    for (size_t n = 0; n < from->class_count; n++) {
        struct simt_block_class *c = class_of(to, from->classes[n].key);
        if (c == NULL) {
            return false;
        }
        c->blocks += from->classes[n].blocks;
        simt_counters_add(&c->sum, &from->classes[n].sum);
    }
    for (size_t n = 0; n < from->span_count; n++) {
        const struct simt_block_span *span = &from->spans[n];
        uint32_t of = to->by_key[from->classes[span->of].key] - 1u;
        if (!add_span(to, span->first, span->blocks, of)) {
            return false;
        }
    }
    return true;
}

static int compare_classes(const void *left, const void *right) {
    const struct simt_block_class *a = left;
    const struct simt_block_class *b = right;
    return (a->key > b->key) - (a->key < b->key);
}

static int compare_spans(const void *left, const void *right) {
    const struct simt_block_span *a = left;
    const struct simt_block_span *b = right;
    int by_place = (a->first > b->first) - (a->first < b->first);
    return by_place != 0 ? by_place : (a->of > b->of) - (a->of < b->of);
}

/* Spans of one class that meet become one. */
static void join_spans(struct simt_block_costs *costs) {
    size_t count = costs->span_count;
    costs->span_count = 0;
    for (size_t n = 0; n < count; n++) {
        struct simt_block_span span = costs->spans[n];
        struct simt_block_span *last =
            costs->span_count > 0 ? &costs->spans[costs->span_count - 1] : NULL;
        bool joins = last != NULL && last->of == span.of;
        if (joins) {
            last->blocks += span.blocks;
        } else {
            costs->spans[costs->span_count++] = span;
        }
    }
}

void simt_block_costs_sort(struct simt_block_costs *costs) {
    for (size_t n = 0; n < costs->span_count; n++) {
        costs->spans[n].of = costs->classes[costs->spans[n].of].key;
    }
    qsort(costs->classes, costs->class_count, sizeof *costs->classes, compare_classes);
    for (size_t n = 0; n < costs->class_count; n++) {
        costs->by_key[costs->classes[n].key] = (uint16_t)(n + 1);
    }
    for (size_t n = 0; n < costs->span_count; n++) {
        costs->spans[n].of = costs->by_key[costs->spans[n].of] - 1u;
    }
    qsort(costs->spans, costs->span_count, sizeof *costs->spans, compare_spans);
    join_spans(costs);
}

void simt_block_costs_free(struct simt_block_costs *costs) {
    free(costs->classes);
    free(costs->spans);
    free(costs->by_key);
    *costs = (struct simt_block_costs){.window = 0};
}
