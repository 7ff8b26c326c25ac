/*
 * Loops that poll what another device writes. A round in vain takes no time: waiting ends when the
 * flag has come, not after as many rounds as the emulator happened to run meanwhile.
 *
 * Such a loop stores nothing, waits for nothing else, and loads words of the scope of the system. A
 * round after which the warp is as it was after the round before has done nothing; from then on
 * rounds are not charged until the warp leaves the loop or changes. The round by which it does is:
 * it may have done work.
 */
#include "common/simt/core/schedule/warp.h"
#include "common/simt/memory/access/request.h"

static uint64_t mix(uint64_t sum, uint64_t value) {
    sum = (sum ^ value) * 0x9e3779b97f4a7c15u;
    return sum ^ sum >> 29;
}

/* @return whether the instructions may be a loop that only polls */
static bool only_polls(const struct simt_code *code, uint32_t begin, uint32_t end) {
    bool polls = false;
    for (uint32_t pc = begin; pc <= end; pc++) {
        const struct simt_instruction *i = &code->instructions[pc];
        bool loads = i->undefined == SIMT_UNDEFINED_LOAD;
        bool reaches_memory = i->op_class == SIMT_CLASS_GLOBAL || i->op_class == SIMT_CLASS_SHARED;
        if (i->op_class == SIMT_CLASS_ATOMIC || i->op_class == SIMT_CLASS_BARRIER ||
            i->op_class == SIMT_CLASS_LOCAL || i->op_class == SIMT_CLASS_TENSOR ||
            i->undefined == SIMT_UNDEFINED_STORE || (i->op_class == SIMT_CLASS_SHARED && !loads)) {
            return false;
        }
        polls = polls || (reaches_memory && loads && (i->detail[0] & SIMT_SYSTEM) != 0);
    }
    return polls;
}

/* What the loop's instructions have left in their registers: others stay as they are. */
static uint64_t state_of(const struct simt_fragment *f, uint32_t begin, uint32_t end) {
    const struct simt_frame *frame = f->frame;
    uint64_t sum = mix(f->mask, (uint64_t)(uintptr_t)frame);
    for (uint32_t pc = begin; pc <= end; pc++) {
        const struct simt_instruction *i = &frame->code->instructions[pc];
        for (uint32_t d = 0; d < i->dst_count; d++) {
            const uint64_t *words = (const void *)(frame->rows + i->dst[d]);
            size_t left = (frame->code->row_bytes - i->dst[d]) / sizeof *words;
            for (size_t n = 0; n < SIMT_LANES && n < left; n++) {
                sum = mix(sum, words[n]);
            }
        }
    }
    return sum;
}

/* What was counted of the round so far: charges it after all, or forgets it. */
static void end_round(struct simt_block_run *b, struct simt_warp_run *w, bool charged) {
    struct simt_vain *v = &w->vain;
    if (v->idle && charged) {
        simt_counters_add(&b->own, &v->round);
    }
    if (v->idle) {
        v->round = (struct simt_counters){.flops = 0};
    }
    v->idle = !charged;
    b->block.counters = charged ? &b->own : &v->round;
}

void simt_vain_round(struct simt_block_run *b, struct simt_warp_run *w,
                     const struct simt_fragment *f, uint32_t target) {
    struct simt_vain *v = &w->vain;
    const struct simt_code *code = f->frame->code;
    if (v->code != code || v->begin != target || v->end != f->pc) {
        end_round(b, w, true);
        *v = (struct simt_vain){
            .code = code, .begin = target, .end = f->pc, .polls = only_polls(code, target, f->pc)};
    }
    if (v->polls) {
        uint64_t state = state_of(f, v->begin, v->end);
        end_round(b, w, state != v->state);
        v->state = state;
    }
}

void simt_vain_leave(struct simt_block_run *b, struct simt_warp_run *w) {
    w->vain.state = 0;
    end_round(b, w, true);
}

void simt_vain_enter(struct simt_block_run *b, struct simt_warp_run *w,
                     const struct simt_fragment *f) {
    struct simt_vain *v = &w->vain;
    bool inside = v->idle && f->frame->code == v->code && f->pc >= v->begin && f->pc <= v->end;
    b->block.counters = inside ? &v->round : &b->own;
}
