#include "common/tokenizers/training/learn_internal.h"

#include <stdlib.h>
#include <string.h>

#include "common/base/grow.h"

enum { FIRST_SLOTS = 1 << 12 };

/* ---- Memory ---- */

enum status pairs_create(struct pairs *p) {
    *p = (struct pairs){.slot_count = FIRST_SLOTS};
    p->slots = calloc(p->slot_count, sizeof *p->slots);
    return p->slots != NULL ? STATUS_OK : STATUS_OUT_OF_MEMORY;
}

void pairs_free(struct pairs *p) {
    for (size_t i = 0; i < p->count; i++) {
        free(p->candidates[i].words);
    }
    free(p->text);
    free(p->pieces);
    free(p->candidates);
    free(p->slots);
    free(p->heap);
    free(p->touched);
    *p = (struct pairs){0};
}

static enum status add_piece(struct pairs *p, size_t start, uint32_t length, bool inner) {
    if (p->piece_count >= INT32_MAX) {
        return STATUS_OVERFLOW;
    }
    if (!array_grow(&p->pieces, &p->piece_capacity, p->piece_count + 1, sizeof *p->pieces)) {
        return STATUS_OUT_OF_MEMORY;
    }
    p->pieces[p->piece_count++] = (struct vocab_piece){start, length, inner};
    return STATUS_OK;
}

enum status pairs_add_character(struct pairs *p, const char *bytes, size_t length, bool inner) {
    if (!array_grow(&p->text, &p->text_capacity, p->text_size + length, 1)) {
        return STATUS_OUT_OF_MEMORY;
    }
    memcpy(p->text + p->text_size, bytes, length);
    TRY(add_piece(p, p->text_size, (uint32_t)length, inner));
    p->text_size += length;
    return STATUS_OK;
}

/* ---- Candidates ---- */

/* The slot with the candidate of two pieces, or the empty slot where it would be added. */
static size_t find_slot(const struct pairs *p, int32_t left, int32_t right) {
    const uint64_t golden = 0x9e3779b97f4a7c15; /* 2^64 / golden ratio: spreads close numbers */
    uint64_t key = ((uint64_t)(uint32_t)left << 32 | (uint32_t)right) * golden;
    size_t slot = (size_t)(key >> 32) & (p->slot_count - 1);
    for (;;) {
        uint32_t entry = p->slots[slot];
        if (entry == 0 ||
            (p->candidates[entry - 1].left == left && p->candidates[entry - 1].right == right)) {
            return slot;
        }
        slot = (slot + 1) & (p->slot_count - 1);
    }
}

static enum status grow_slots(struct pairs *p) {
    uint32_t *slots = calloc(2 * p->slot_count, sizeof *slots);
    if (slots == NULL) {
        return STATUS_OUT_OF_MEMORY;
    }
    free(p->slots);
    p->slots = slots;
    p->slot_count *= 2;
    for (size_t i = 0; i < p->count; i++) {
        slots[find_slot(p, p->candidates[i].left, p->candidates[i].right)] = (uint32_t)i + 1;
    }
    return STATUS_OK;
}

static enum status add_candidate(struct pairs *p, int32_t left, int32_t right) {
    const struct vocab_piece *a = &p->pieces[left], *b = &p->pieces[right];
    if (p->count >= UINT32_MAX - 1) {
        return STATUS_OVERFLOW;
    }
    size_t text_size = p->text_size + a->length + b->length;
    if (!array_grow(&p->candidates, &p->capacity, p->count + 1, sizeof *p->candidates) ||
        !array_grow(&p->text, &p->text_capacity, text_size, 1)) {
        return STATUS_OUT_OF_MEMORY;
    }
    p->candidates[p->count++] = (struct candidate){.left = left,
                                                   .right = right,
                                                   .start = p->text_size,
                                                   .length = a->length + b->length,
                                                   .inner = a->inner};
    memcpy(p->text + p->text_size, p->text + a->start, a->length);
    memcpy(p->text + p->text_size + a->length, p->text + b->start, b->length);
    p->text_size = text_size;
    return STATUS_OK;
}

enum status pairs_find(struct pairs *p, int32_t left, int32_t right, uint32_t *candidate) {
    size_t slot = find_slot(p, left, right);
    if (p->slots[slot] == 0) {
        if (2 * (p->count + 1) > p->slot_count) {
            TRY(grow_slots(p));
            slot = find_slot(p, left, right);
        }
        TRY(add_candidate(p, left, right));
        p->slots[slot] = (uint32_t)p->count;
    }
    *candidate = p->slots[slot] - 1;
    return STATUS_OK;
}

/* ---- Counts ---- */

static enum status touch(struct pairs *p, uint32_t candidate) {
    if (p->candidates[candidate].touched) {
        return STATUS_OK;
    }
    if (!array_grow(&p->touched, &p->touched_capacity, p->touched_count + 1, sizeof *p->touched)) {
        return STATUS_OUT_OF_MEMORY;
    }
    p->touched[p->touched_count++] = candidate;
    p->candidates[candidate].touched = true;
    return STATUS_OK;
}

enum status pairs_add(struct pairs *p, uint32_t candidate, uint32_t word, uint64_t count) {
    struct candidate *c = &p->candidates[candidate];
    c->count += count;
    if (c->word_count == 0 || c->words[c->word_count - 1] != word) {
        if (!array_grow(&c->words, &c->word_capacity, c->word_count + 1, sizeof *c->words)) {
            return STATUS_OUT_OF_MEMORY;
        }
        c->words[c->word_count++] = word;
    }
    return touch(p, candidate);
}

/* ---- The most frequent candidate ---- */

static int compare_text(const struct pairs *p, const struct candidate *a,
                        const struct candidate *b) {
    size_t common = a->length < b->length ? a->length : b->length;
    int order = memcmp(p->text + a->start, p->text + b->start, common);
    return order != 0               ? order
           : a->length != b->length ? (a->length > b->length) - (a->length < b->length)
                                    : (int)a->inner - (int)b->inner;
}

static bool before(const struct pairs *p, struct heap_entry x, struct heap_entry y) {
    const struct candidate *a = &p->candidates[x.candidate], *b = &p->candidates[y.candidate];
    return x.count != y.count ? x.count > y.count : compare_text(p, a, b) < 0;
}

static enum status push(struct pairs *p, uint32_t candidate) {
    if (!array_grow(&p->heap, &p->heap_capacity, p->heap_count + 1, sizeof *p->heap)) {
        return STATUS_OUT_OF_MEMORY;
    }
    struct heap_entry *heap = p->heap, entry = {p->candidates[candidate].count, candidate};
    size_t hole = p->heap_count++;
    while (hole > 0 && before(p, entry, heap[(hole - 1) / 2])) {
        heap[hole] = heap[(hole - 1) / 2];
        hole = (hole - 1) / 2;
    }
    heap[hole] = entry;
    return STATUS_OK;
}

static struct heap_entry pop(struct pairs *p) {
    struct heap_entry *heap = p->heap, top = heap[0], last = heap[--p->heap_count];
    size_t hole = 0;
    for (;;) {
        size_t child = 2 * hole + 1;
        if (child + 1 < p->heap_count && before(p, heap[child + 1], heap[child])) {
            child++;
        }
        if (child >= p->heap_count || !before(p, heap[child], last)) {
            break;
        }
        heap[hole] = heap[child];
        hole = child;
    }
    heap[hole] = last;
    return top;
}

enum status pairs_update_heap(struct pairs *p) {
    for (size_t i = 0; i < p->touched_count; i++) {
        uint32_t candidate = p->touched[i];
        p->candidates[candidate].touched = false;
        if (p->candidates[candidate].count > 0) {
            TRY(push(p, candidate));
        }
    }
    p->touched_count = 0;
    return STATUS_OK;
}

/* A candidate's count may have fallen since it was pushed: then it is pushed again with its count.
 */
enum status pairs_take(struct pairs *p, uint32_t *candidate, bool *found) {
    *found = false;
    while (p->heap_count > 0 && !*found) {
        struct heap_entry entry = pop(p);
        const struct candidate *c = &p->candidates[entry.candidate];
        if (c->count > 0 && entry.count == c->count) {
            *candidate = entry.candidate;
            *found = true;
        } else if (c->count > 0 && entry.count > c->count) {
            TRY(push(p, entry.candidate));
        }
    }
    return STATUS_OK;
}

enum status pairs_make_piece(struct pairs *p, uint32_t candidate) {
    const struct candidate *c = &p->candidates[candidate];
    return add_piece(p, c->start, c->length, c->inner);
}
