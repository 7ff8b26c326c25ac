/*
 * Two hash tables. One finds the piece of a text: it is searched for every adjacent pair that may
 * merge, and a binary search took two thirds of the time of encoding. The other finds the merge
 * rule of two tokens, because every piece has several.
 */
#include <stdlib.h>
#include <string.h>

#include "common/base/checked.h"
#include "common/base/hash.h"
#include "common/tokenizers/bpe/bpe_vocabulary.h"

/* ---- Pieces by their text ---- */

/* The slot with this text's piece, or the empty slot where it would be added. */
static int32_t *find_piece_slot(const struct bpe *bpe, const char *text, size_t length) {
    size_t slot = (size_t)hash_bytes(text, length) & (bpe->index_slots - 1);
    for (;;) {
        int32_t id = bpe->index[slot];
        if (id < 0 ||
            (bpe->pieces[id].length == length && memcmp(bpe->pieces[id].text, text, length) == 0)) {
            return &bpe->index[slot];
        }
        slot = (slot + 1) & (bpe->index_slots - 1);
    }
}

enum status bpe_index_create(struct bpe *bpe) {
    size_t slots = 2, bytes;
    while (slots / 2 < bpe->count) {
        slots *= 2;
    }
    bpe->index = checked_multiply(slots, sizeof *bpe->index, &bytes) ? malloc(bytes) : NULL;
    if (bpe->index == NULL) {
        return STATUS_OUT_OF_MEMORY;
    }
    memset(bpe->index, 0xff, bytes); /* -1 */
    bpe->index_slots = slots;
    return STATUS_OK;
}

void bpe_index_add(struct bpe *bpe, int32_t id) {
    int32_t *slot = find_piece_slot(bpe, bpe->pieces[id].text, bpe->pieces[id].length);
    *slot = *slot < 0 ? id : *slot;
}

int32_t bpe_find(const struct bpe *bpe, const char *text, size_t length) {
    return *find_piece_slot(bpe, text, length);
}

/* ---- Merge rules ---- */

/* The slot with the rule of two tokens, or the empty slot where it would be added. */
static struct bpe_rule *find_rule_slot(const struct bpe *bpe, int32_t left, int32_t right) {
    const uint64_t golden = 0x9e3779b97f4a7c15; /* 2^64 / golden ratio: spreads close numbers */
    uint64_t key = ((uint64_t)(uint32_t)left << 32 | (uint32_t)right) * golden;
    size_t slot = (size_t)(key >> 32) & (bpe->rule_slots - 1);
    for (;;) {
        struct bpe_rule *rule = &bpe->rules[slot];
        if (rule->left < 0 || (rule->left == left && rule->right == right)) {
            return rule;
        }
        slot = (slot + 1) & (bpe->rule_slots - 1);
    }
}

enum status bpe_rules_create(struct bpe *bpe, size_t count) {
    size_t slots = 2;
    while (slots < 2 * count) {
        slots *= 2;
    }
    bpe->rules = calloc(slots, sizeof *bpe->rules);
    if (bpe->rules == NULL) {
        return STATUS_OUT_OF_MEMORY;
    }
    for (size_t i = 0; i < slots; i++) {
        bpe->rules[i].left = -1;
    }
    bpe->rule_slots = slots;
    return STATUS_OK;
}

void bpe_rules_add(struct bpe *bpe, const struct bpe_rule *rule) {
    *find_rule_slot(bpe, rule->left, rule->right) = *rule;
}

const struct bpe_rule *bpe_rules_find(const struct bpe *bpe, int32_t left, int32_t right) {
    const struct bpe_rule *rule = find_rule_slot(bpe, left, right);
    return rule->left < 0 ? NULL : rule;
}
