/* The merge rules: a hash table, because every piece has several. */
#include <stdlib.h>

#include "common/tokenizers/bpe/bpe_vocabulary.h"

/* The slot with the rule of two tokens, or the empty slot where it would be added. */
static struct bpe_rule *find_slot(const struct bpe *bpe, int32_t left, int32_t right) {
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
    *find_slot(bpe, rule->left, rule->right) = *rule;
}

const struct bpe_rule *bpe_rules_find(const struct bpe *bpe, int32_t left, int32_t right) {
    const struct bpe_rule *rule = find_slot(bpe, left, right);
    return rule->left < 0 ? NULL : rule;
}
