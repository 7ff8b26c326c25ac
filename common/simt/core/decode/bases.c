/*
 * Finds accesses that repeat the base register of one before them: in one basic block, with nothing
 * in between that writes the register or hands control over. Both run for the same lanes, or for
 * lanes that simt_base.mask tells apart. A guarded access may not run at all, so it neither serves
 * others nor is served.
 */
#include "common/simt/core/decode/decode_internal.h"

enum { NO_ROW = UINT32_MAX };

/* Which row each place of simt_warp.bases stands for. */
struct places {
    uint32_t rows[SIMT_BASES];
    uint32_t next; /* to be used anew */
};

static void forget_all(struct places *places) {
    for (uint32_t n = 0; n < SIMT_BASES; n++) {
        places->rows[n] = NO_ROW;
    }
}

static void take_place(struct places *places, struct simt_instruction *i) {
    for (uint32_t n = 0; n < SIMT_BASES; n++) {
        if (places->rows[n] == i->src[0]) {
            i->base = (uint8_t)n;
            i->repeats_base = true;
            return;
        }
    }
    i->base = (uint8_t)places->next;
    places->rows[places->next] = i->src[0];
    places->next = (places->next + 1) % SIMT_BASES;
}

static void forget_written(struct places *places, const struct simt_code *code, size_t number) {
    const struct simt_uses *uses = &code->uses;
    for (uint32_t w = uses->start[2 * number + 1]; w < uses->start[2 * number + 2]; w++) {
        uint32_t row = code->cells[uses->list[w]] * SIMT_ROW32;
        for (uint32_t n = 0; n < SIMT_BASES; n++) {
            places->rows[n] = places->rows[n] == row ? NO_ROW : places->rows[n];
        }
    }
}

void simt_find_bases(struct simt_code *code) {
    struct places places = {.next = 0};
    forget_all(&places);
    for (size_t n = 0; n < code->count; n++) {
        struct simt_instruction *i = &code->instructions[n];
        if (code->leader[n] || i->next == SIMT_NEXT_FLOW) {
            forget_all(&places);
        }
        i->has_base = i->has_base && i->guard < 0;
        if (i->has_base) {
            take_place(&places, i);
        }
        forget_written(&places, code, n);
    }
}
