/*
 * Blocks that never end.
 *
 * A block that writes nothing and passes no barrier for a long time is watched:
 * if all its warps are at the same places with the same registers as at an
 * earlier time, everything since then will repeat for ever. Earlier times are
 * kept at doubling distances, so that a loop of any length is found. A loop that
 * changes something in each round, if only a counter, ends at a limit of warp
 * instructions, and at a quarter of that where nothing is written meanwhile.
 */
#include <stdio.h>
#include <string.h>

#include "common/simt/core/schedule/warp.h"
#include "common/simt/memory/access/late.h"
#include "common/simt/memory/space/memory.h"

/* Warp instructions of a block without a store: long for a kernel that ends. */
enum { QUIET_INSTRUCTIONS = 1 << 19 };

/* Warp instructions of a block before other launches have their turn: few where it may be waiting
 * for them. */
enum { TURN_INSTRUCTIONS = 16384, WAITING_INSTRUCTIONS = 1024 };

static uint64_t mix(uint64_t sum, uint64_t value) {
    sum = (sum ^ value) * 0x9e3779b97f4a7c15u;
    return sum ^ sum >> 29;
}

static uint64_t mix_bytes(uint64_t sum, const void *bytes, size_t size) {
    const unsigned char *at = bytes;
    uint64_t word = 0;
    for (; size >= sizeof word; size -= sizeof word, at += sizeof word) {
        memcpy(&word, at, sizeof word);
        sum = mix(sum, word);
    }
    word = 0;
    memcpy(&word, at, size);
    return mix(sum, word);
}

/* Where all warps are. */
static uint64_t places_of(const struct simt_block_run *b) {
    uint64_t sum = 0;
    for (uint32_t n = 0; n < b->warp_count; n++) {
        const struct simt_warp_run *w = &b->warps[n];
        sum = mix(sum, (uint64_t)w->state << 32 | w->fragment_count);
        for (uint32_t k = 0; k < w->fragment_count; k++) {
            const struct simt_fragment *f = &w->fragments[k];
            sum = mix(sum, (uint64_t)f->mask << 32 | f->pc);
            sum = mix(sum, (uint64_t)f->frame->depth << 32 | f->state);
            /* Fragments take turns by the number of their jumps. */
            sum = mix(sum, w->fragment_count > 1 ? f->jumps_back : 0);
        }
    }
    return sum;
}

/* All that decides what the warps do next, but memory. */
static uint64_t state_of(const struct simt_block_run *b) {
    uint64_t sum = mix_bytes(0, b->barriers, sizeof b->barriers);
    for (uint32_t n = 0; n < b->warp_count; n++) {
        const struct simt_warp_run *w = &b->warps[n];
        sum = mix(sum, w->warp.carry);
        sum = mix(sum, (uint64_t)w->warp.arrived << 32 | w->warp.passed);
        for (uint32_t k = 0; k < w->fragment_count; k++) {
            for (const struct simt_frame *f = w->fragments[k].frame; f != NULL; f = f->caller) {
                sum = mix_bytes(sum, f->rows, f->code->row_bytes);
                sum = mix_bytes(sum, f->predicates, f->code->predicates * sizeof *f->predicates);
                sum = mix(sum, (uint64_t)(uintptr_t)f->code ^ (uint64_t)f->return_pc << 48);
            }
        }
    }
    return sum;
}

static void forget_loops(struct simt_block_run *b) {
    for (uint32_t n = 0; n < b->warp_count; n++) {
        b->warps[n].loop.code = NULL;
    }
}

/* The line of the outermost function that an instruction belongs to; 0: not known. */
static uint32_t outer_line(const struct simt_instruction *i) {
    const struct ptx_location *at = i->source->location;
    uint32_t line = i->source->line;
    for (; at != NULL && at->caller != NULL; at = at->caller) {
        line = at->caller->line;
    }
    return line;
}

/* The first line of the loop: that is where its condition stands, mostly. */
static const struct simt_instruction *head_of(const struct simt_loop *loop) {
    const struct simt_instruction *best = &loop->code->instructions[loop->begin];
    for (uint32_t pc = loop->begin; pc <= loop->end; pc++) {
        const struct simt_instruction *i = &loop->code->instructions[pc];
        uint32_t line = outer_line(i), least = outer_line(best);
        bool inlined = i->source->location != NULL && i->source->location->caller != NULL;
        if (line != 0 && (least == 0 || line < least || (line == least && !inlined))) {
            best = i;
        }
    }
    return best;
}

/* Memory of the host that a loop reads: the host may be meant to end it. */
static bool reads_host(const struct simt_block_run *b, const struct simt_warp_run *w,
                       const struct simt_fragment *f, struct simt_allocation *found) {
    const struct simt_loop *loop = &w->loop;
    uint32_t lane = (uint32_t)__builtin_ctz(f->mask);
    for (uint32_t pc = loop->begin; loop->code == f->frame->code && pc <= loop->end; pc++) {
        const struct simt_instruction *i = &loop->code->instructions[pc];
        bool loads = i->op_class == SIMT_CLASS_ATOMIC ||
                     (i->op_class == SIMT_CLASS_GLOBAL && i->undefined == SIMT_UNDEFINED_LOAD);
        if (!loads) {
            continue;
        }
        const union simt_row *row = (const void *)(f->frame->rows + i->src[0]);
        uint64_t address = row->u64[lane] + (uint64_t)i->immediate;
        if (simt_memory_find(b->block.run->memory, address, found) && found->host) {
            return true;
        }
    }
    return false;
}

/* Fails a warp that runs, at its loop. */
static void fail_warp(struct simt_block_run *b, uint32_t n, const char *why) {
    struct simt_warp_run *w = &b->warps[n];
    const struct simt_fragment *f = &w->fragments[0];
    const struct simt_instruction *at =
        w->loop.code != NULL ? head_of(&w->loop) : &f->frame->code->instructions[f->pc];
    struct simt_allocation host;
    bool waits = reads_host(b, w, f, &host);
    char where[256] = "";
    simt_async_explain(&b->block, n, where, sizeof where);
    bool waits_for_phase = where[0] != '\0';
    if (waits) {
        snprintf(where, sizeof where, "; the loop reads memory of the host (%s, %zu bytes)",
                 host.what, host.bytes);
    }
    simt_fail(&w->warp, at, (uint32_t)__builtin_ctz(f->mask), SIMT_FAULT_ENDLESS, 0,
              "runs in this loop without an end: after %llu warp instructions of its block %s%s",
              (unsigned long long)b->instructions, why, where);
    if (waits) {
        b->block.fault.hint = "simt runs a kernel to its end before the host goes on: a kernel "
                              "cannot wait for what the host writes while it runs, as it can "
                              "on a GPU";
    } else if (waits_for_phase) {
        b->block.fault.hint = "a phase of an mbarrier ends with exactly its arrivals and announced "
                              "bytes (of each box all bytes): who should arrive or copy, and which "
                              "phase does that thread wait for?";
    }
}

/* The first warp that runs. */
static void fail_endless(struct simt_block_run *const *blocks, uint32_t count, const char *why) {
    for (uint32_t k = 0; k < count; k++) {
        for (uint32_t n = 0; n < blocks[k]->warp_count; n++) {
            const struct simt_warp_run *w = &blocks[k]->warps[n];
            if (w->state == SIMT_WARP_RUNS && w->fragment_count > 0) {
                fail_warp(blocks[k], n, why);
                return;
            }
        }
    }
}

/* Nobody else changes what the block reads: other blocks of a cooperative grid, or the host. */
static bool is_alone(const struct simt_block_run *b) {
    const struct simt_run *run = b->block.run;
    return b->block.shadow != NULL && run->grid_workspace == 0 && run->yield == NULL &&
           !simt_memory_has_host(run->memory);
}

/* Shortly before a limit loops are asked for; they are told at the limit.
 * @return true when it is reached */
static bool passes(struct simt_block_run *b, uint64_t used, uint64_t limit, bool *is_near) {
    if (used > limit - limit / 8 && !*is_near) {
        *is_near = true;
        forget_loops(b);
        return false;
    }
    return used > limit;
}

/* What all blocks did so far. */
struct activity {
    uint64_t writes, barriers, instructions;
};

static struct activity activity_of(struct simt_block_run *const *blocks, uint32_t count) {
    struct activity sum = {0};
    for (uint32_t k = 0; k < count; k++) {
        sum.writes += blocks[k]->block.writes;
        sum.barriers += blocks[k]->block.counters->barriers;
        sum.instructions += blocks[k]->instructions;
    }
    return sum;
}

static void watch(struct simt_stall *s, const struct activity *now) {
    *s = (struct simt_stall){
        .writes = now->writes, .barriers = now->barriers, .since = now->instructions, .next = 1};
}

void simt_stall_begin(struct simt_block_run *b) {
    const struct activity none = activity_of(&b, 1);
    watch(&b->stall, &none);
}

/* Ends blocks at the limit; far earlier where they write nothing. */
static void check_limit(struct simt_block_run *const *blocks, uint32_t count,
                        const struct activity *now) {
    struct simt_block_run *first = blocks[0];
    uint64_t limit = first->instruction_limit, quiet = now->instructions - first->stall.since;
    for (uint32_t k = 0; k < count && limit != 0; k++) {
        if (passes(blocks[k], blocks[k]->instructions, limit, &blocks[k]->is_near_limit)) {
            fail_endless(&blocks[k], 1,
                         "it has not ended; SIMT_INSTRUCTION_LIMIT sets how many it may take");
            return;
        }
    }
    if (limit != 0 && is_alone(first) &&
        passes(first, quiet, limit / 4 * count, &first->stall.is_near_limit)) {
        fail_endless(blocks, count,
                     "it has not ended, and the last quarter of SIMT_INSTRUCTION_LIMIT wrote "
                     "nothing");
    }
}

/* @return true when the blocks are in a state in which they were before */
static bool repeats(struct simt_block_run *const *blocks, uint32_t count) {
    struct simt_stall *s = &blocks[0]->stall;
    uint64_t places = 0, state = 0;
    bool keeps = s->rounds + 1 == s->next;
    for (uint32_t k = 0; k < count; k++) {
        places = mix(places, places_of(blocks[k]));
    }
    bool may_repeat = s->rounds++ > 0 && places == s->places;
    for (uint32_t k = 0; k < count && (may_repeat || keeps); k++) {
        state = mix(state, state_of(blocks[k]));
    }
    if (may_repeat && state == s->state) {
        return true;
    }
    if (keeps) {
        s->next *= 2;
        s->places = places;
        s->state = state;
        for (uint32_t k = 0; k < count; k++) {
            forget_loops(blocks[k]);
        }
    }
    return false;
}

/* Lets other launches run. @return false: this one has waited for them too long, and fails */
static bool take_turns(struct simt_block_run *const *blocks, uint32_t count,
                       const struct activity *now) {
    struct simt_block_run *first = blocks[0];
    struct simt_yield *yield = first->block.run->yield;
    /* Blocks of a sample take turns like those beside them. */
    bool is_known =
        first->block.shadow != NULL && (first->block.run->check & SIMT_CHECK_SAMPLED) == 0;
    bool wrote = !is_known || now->writes != first->written;
    uint64_t turn = wrote && is_known ? TURN_INSTRUCTIONS : WAITING_INSTRUCTIONS;
    if (yield == NULL || now->instructions - first->yielded < turn * count) {
        return true;
    }
    first->yielded = now->instructions;
    first->written = now->writes;
    yield->has_yielded = true;
    simt_late_settle(yield->late);
    if (yield->function(yield->context, wrote, !wrote)) {
        return true;
    }
    char why[160];
    snprintf(why, sizeof why,
             "nothing has happened for %.0f s on any device that could end it (SIMT_WAIT_SECONDS "
             "sets how long it may wait)",
             yield->patience);
    fail_endless(blocks, count, why);
    first->block.fault.hint = "it waits for what another kernel writes: is that launched, before "
                              "the host waits for this one, with as many blocks, and does it "
                              "write where this one reads, and not again before this one has "
                              "read it?";
    return false;
}

void simt_stall_check(struct simt_block_run *const *blocks, uint32_t count) {
    struct simt_stall *s = &blocks[0]->stall;
    const struct activity now = activity_of(blocks, count);
    for (uint32_t k = 0; k < count; k++) {
        if (blocks[k]->block.fault.kind != SIMT_FAULT_NONE) {
            return;
        }
    }
    if (!take_turns(blocks, count, &now)) {
        return;
    }
    if (s->writes != now.writes || s->barriers != now.barriers) {
        watch(s, &now);
    } else if (now.instructions - s->since > (uint64_t)QUIET_INSTRUCTIONS * count &&
               is_alone(blocks[0]) && repeats(blocks, count)) {
        fail_endless(blocks, count,
                     "everything is as it was before, and nothing has been written since");
        return;
    }
    check_limit(blocks, count, &now);
}
