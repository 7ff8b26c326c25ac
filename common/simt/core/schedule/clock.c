/*
 * Clocks that kernels read: %clock64, %globaltimer.
 *
 * They tick by the instructions of the block alone, so that a kernel reads the same in every run:
 * a warp issues an instruction every four cycles, the latency of dependent arithmetic, and up to 16
 * warps fill each other's gaps on the four schedulers of a multiprocessor. What memory takes is
 * not part of it. A loop that does nothing but ask for the time would take as many instructions as
 * it waits cycles; after some rounds each takes a thirty-second more of what it has waited so far.
 */
#include "common/simt/core/schedule/warp.h"

enum { LATENCY = 4, MOST_WARPS = 16 };

static uint64_t cycles_of(const struct simt_block_run *b) {
    uint64_t warps = b->warp_count < MOST_WARPS ? b->warp_count : MOST_WARPS;
    return b->skipped_cycles + (b->instructions + b->turn_instructions) * LATENCY / warps;
}

/* Lets a waiting loop pass time: one instruction that asks again and again, with little between. */
static void skip(struct simt_block_run *b, struct simt_warp_run *w,
                 const struct simt_instruction *i) {
    enum { ROUNDS = 256, LONGEST_ROUND = 64, SHARE = 32 };
    struct simt_clock_wait *wait = &w->wait;
    uint64_t instructions = b->instructions + b->turn_instructions;
    bool goes_on =
        wait->at == i && instructions - wait->last <= (uint64_t)LONGEST_ROUND * b->warp_count;
    if (!goes_on) {
        *wait = (struct simt_clock_wait){.at = i, .since = cycles_of(b)};
    }
    /* One warp in turn: the others have seen that time has passed. */
    if (wait->polls++ > ROUNDS && wait->skipped == b->skipped_cycles) {
        b->skipped_cycles += (cycles_of(b) - wait->since) / SHARE;
    }
    wait->last = instructions;
    wait->skipped = b->skipped_cycles;
}

void simt_clock_read(struct simt_block_run *b, struct simt_warp_run *w,
                     const struct simt_instruction *i) {
    const struct simt_run *run = b->block.run;
    skip(b, w, i);
    uint64_t time = cycles_of(b);
    if (i->detail[0] >= SIMT_CLOCK_NANOSECONDS) {
        time = run->start_nanoseconds + time * 1000000 / run->clock_khz;
    }
    if (i->detail[0] == SIMT_CLOCK_CYCLES_HIGH || i->detail[0] == SIMT_CLOCK_NANOSECONDS_HIGH) {
        time >>= 32;
    }
    union simt_row *row = simt_row(&w->warp, i->dst[0]);
    for (uint32_t lane = 0; lane < SIMT_LANES; lane++) {
        if (w->warp.lanes[lane] != 0 && i->detail[1] != 0) {
            row->u64[lane] = time;
        } else if (w->warp.lanes[lane] != 0) {
            row->u32[lane] = (uint32_t)time;
        }
    }
}
