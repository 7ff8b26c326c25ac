/*
 * Drives one warp. Lanes that are at the same place of the same frame form a
 * fragment; a warp that has not split up is one fragment and runs without
 * looking at anything else.
 */
#include "common/simt/core/schedule/warp.h"

#include "common/simt/core/schedule/timeline.h"
#include "common/simt/memory/access/access.h"
#include "common/simt/memory/pipeline.h"

#include <string.h>

enum {
    MAX_JUMPS_BACK = 1024, /* of a fragment while others wait: then it may be waiting for them */
    MAX_POLLS = 64         /* in vain in one turn of a warp: then other warps may have to run */
};

enum go { GO_ON, GO_PICK, GO_CLOCK };

enum status simt_warp_start(struct simt_block_run *block, uint32_t index) {
    struct simt_warp_run *w = &block->warps[index];
    const struct simt_run *run = block->block.run;
    uint32_t threads = run->threads[0] * run->threads[1] * run->threads[2];
    uint32_t left = threads - index * SIMT_LANES;
    uint32_t members = left >= SIMT_LANES ? UINT32_MAX : ((uint32_t)1 << left) - 1;
    struct simt_frame *spare = w->spare;
    *w = (struct simt_warp_run){.warp = {.block = &block->block, .index = index}};
    w->warp.members = members;
    struct simt_frame *frame = spare != NULL ? simt_frame_renew(block, w, spare)
                                             : simt_frame_create(block, w, block->code, NULL);
    if (frame == NULL) {
        w->state = SIMT_WARP_DONE;
        return STATUS_OUT_OF_MEMORY;
    }
    frame->lanes = members;
    w->fragments[0] = (struct simt_fragment){.mask = members, .frame = frame};
    w->fragment_count = 1;
    const uint32_t *grid = run->grid;
    const struct simt_timeline_grid all = {.blocks = (uint64_t)grid[0] * grid[1] * grid[2],
                                           .warps = block->warp_count,
                                           .seed = block->seed};
    if (block->block.pipeline != NULL) {
        w->clock = block->timelines[index];
    }
    if (block->is_followed) {
        w->timeline = w->clock;
    } else if (simt_timeline_follows(&all, block->block.order, index)) {
        w->timeline = block->timeline;
    }
    if (w->timeline != NULL) {
        simt_timeline_begin(w->timeline, block->block.xray);
    }
    if (w->clock != NULL && w->clock != w->timeline) {
        simt_timeline_begin(w->clock, NULL);
    }
    w->warp.attention =
        w->timeline != NULL || block->block.xray != NULL ? SIMT_ATTENTION_FOLLOWED : 0;
    return STATUS_OK;
}

/* Frees frames that no lane is in any more; that of the kernel serves the next block. */
static void drop_lanes(struct simt_warp_run *w, struct simt_frame *frame, uint32_t lanes) {
    while (frame != NULL) {
        struct simt_frame *caller = frame->caller;
        frame->lanes &= ~lanes;
        if (frame->lanes == 0 && caller == NULL) {
            w->spare = frame;
        } else if (frame->lanes == 0) {
            simt_frame_free(frame);
        }
        frame = caller;
    }
}

void simt_warp_finish(struct simt_warp_run *w) {
    while (w->fragment_count > 0) {
        const struct simt_fragment *f = &w->fragments[--w->fragment_count];
        drop_lanes(w, f->frame, f->mask);
    }
    simt_products_free(w->products);
    w->products = NULL;
    w->state = SIMT_WARP_DONE;
}

static void remove_fragment(struct simt_warp_run *w, uint32_t index) {
    w->fragments[index] = w->fragments[--w->fragment_count];
}

static struct simt_fragment *split(struct simt_warp_run *w, uint32_t mask, uint32_t pc,
                                   struct simt_frame *frame) {
    struct simt_fragment *f = &w->fragments[w->fragment_count++];
    *f = (struct simt_fragment){.mask = mask, .pc = pc, .frame = frame};
    return f;
}

/* Fragments at the same place become one, ready to run again. */
static void merge(struct simt_warp_run *w) {
    for (uint32_t a = 0; a < w->fragment_count; a++) {
        for (uint32_t b = a + 1; b < w->fragment_count;) {
            struct simt_fragment *fa = &w->fragments[a];
            struct simt_fragment *fb = &w->fragments[b];
            if (fa->frame != fb->frame || fa->pc != fb->pc) {
                b++;
                continue;
            }
            fa->mask |= fb->mask;
            fa->jumps_back = 0;
            fa->state = SIMT_FRAGMENT_RUNS;
            remove_fragment(w, b);
        }
    }
}

static bool goes_before(const struct simt_fragment *a, const struct simt_fragment *b) {
    bool a_spins = a->jumps_back >= MAX_JUMPS_BACK;
    bool b_spins = b->jumps_back >= MAX_JUMPS_BACK;
    if (a_spins != b_spins) {
        return b_spins;
    }
    if (a->frame->depth != b->frame->depth) {
        return a->frame->depth > b->frame->depth;
    }
    uint32_t rank_a = a->frame->code->rank[a->pc];
    uint32_t rank_b = b->frame->code->rank[b->pc];
    return rank_a != rank_b ? rank_a < rank_b : a->pc < b->pc;
}

/* The fragment that runs next; NULL when all wait. */
static struct simt_fragment *pick(struct simt_warp_run *w) {
    struct simt_fragment *best = NULL;
    bool all_spin = true;
    for (uint32_t n = 0; n < w->fragment_count; n++) {
        struct simt_fragment *f = &w->fragments[n];
        if (f->state != SIMT_FRAGMENT_RUNS) {
            continue;
        }
        all_spin = all_spin && f->jumps_back >= MAX_JUMPS_BACK;
        if (best == NULL || goes_before(f, best)) {
            best = f;
        }
    }
    for (uint32_t n = 0; n < w->fragment_count && all_spin; n++) {
        w->fragments[n].jumps_back = 0;
    }
    return best;
}

static uint32_t lowest_lane(uint32_t mask) {
    return (uint32_t)__builtin_ctz(mask);
}

/* Makes a fragment the one that handlers see. */
static const struct simt_instruction *enter(struct simt_warp_run *w,
                                            const struct simt_fragment *f) {
    simt_set_mask(&w->warp, f->mask);
    w->warp.rows = f->frame->rows;
    w->warp.predicates = f->frame->predicates;
    w->warp.cells = &f->frame->cells;
    w->warp.cell_count = simt_cell_count(f->frame->code);
    return &f->frame->code->instructions[f->pc];
}

/* Reads number and count of the barrier that a fragment has reached. @return false: no such one */
static bool read_barrier(struct simt_warp_run *w, const struct simt_instruction *i,
                         uint32_t *number, uint32_t *count) {
    uint32_t lane = lowest_lane(w->warp.mask);
    *number = simt_row(&w->warp, i->src[0])->u32[lane];
    *count = i->detail[SIMT_BARRIER_COUNTED] ? simt_row(&w->warp, i->src[1])->u32[lane] : 0;
    bool cluster = ptx_has_modifier(i->source, "cluster");
    if ((*number < SIMT_CLUSTER_BARRIER || cluster) && *count % SIMT_LANES == 0) {
        return true;
    }
    simt_fail(&w->warp, i, lane, SIMT_FAULT_BARRIER, 0,
              "uses barrier %u for %u threads: barriers are numbered 0 to %d, and whole warps of "
              "32 threads take part",
              *number, *count, SIMT_CLUSTER_BARRIER - 1);
    return false;
}

/* All fragments of a warp are at one barrier: one instruction, or several that are not aligned. */
static bool reach_barrier(struct simt_warp_run *w) {
    for (uint32_t n = 0; n < w->fragment_count; n++) {
        const struct simt_fragment *f = &w->fragments[n];
        uint32_t number, count;
        if (f->state != SIMT_FRAGMENT_AT_BARRIER) {
            return false;
        }
        const struct simt_instruction *i = enter(w, f);
        if (!read_barrier(w, i, &number, &count)) {
            return true;
        }
        if (n > 0 && (i->detail[SIMT_BARRIER_ALIGNED] ||
                      w->barrier_at->detail[SIMT_BARRIER_ALIGNED] || number != w->barrier)) {
            return false;
        }
        w->barrier = number;
        w->barrier_count = count;
        w->barrier_at = i;
    }
    w->state = SIMT_WARP_AT_BARRIER;
    return true;
}

uint32_t simt_warp_vote(struct simt_warp_run *w, uint32_t *lanes) {
    uint32_t yes = 0;
    *lanes = 0;
    for (uint32_t n = 0; n < w->fragment_count; n++) {
        const struct simt_fragment *f = &w->fragments[n];
        const struct simt_instruction *i = enter(w, f);
        if (i->detail[SIMT_BARRIER_MODE] > SIMT_BARRIER_ARRIVE) {
            uint32_t last = i->src_count - 1u;
            uint32_t bits = w->warp.predicates[i->src[last]];
            yes |= (i->src_negated[last] ? ~bits : bits) & f->mask;
        }
        *lanes |= f->mask;
    }
    return yes;
}

static void write_result(struct simt_warp_run *w, const struct simt_instruction *i, uint32_t yes,
                         uint32_t threads) {
    uint32_t mode = i->detail[SIMT_BARRIER_MODE];
    if (mode == SIMT_BARRIER_POPC) {
        for (uint32_t lane = 0; lane < SIMT_LANES; lane++) {
            uint32_t *out = &simt_row(&w->warp, i->dst[0])->u32[lane];
            *out = w->warp.lanes[lane] ? yes : *out;
        }
    } else if (mode == SIMT_BARRIER_AND || mode == SIMT_BARRIER_OR) {
        bool result = mode == SIMT_BARRIER_AND ? yes == threads : yes > 0;
        uint32_t *p = &w->warp.predicates[i->pred_dst[0]];
        *p = (*p & ~w->warp.mask) | (result ? w->warp.mask : 0);
    }
}

void simt_warp_release(struct simt_warp_run *w, uint32_t yes, uint32_t threads) {
    w->state = SIMT_WARP_RUNS;
    for (uint32_t n = 0; n < w->fragment_count; n++) {
        struct simt_fragment *f = &w->fragments[n];
        write_result(w, enter(w, f), yes, threads);
        f->state = SIMT_FRAGMENT_RUNS;
        f->pc++;
    }
}

/* Of fragments that all wait, the one the others have passed by. */
static const struct simt_fragment *left_behind(const struct simt_warp_run *w) {
    const struct simt_fragment *first = &w->fragments[0];
    for (uint32_t n = 1; n < w->fragment_count; n++) {
        const struct simt_fragment *f = &w->fragments[n];
        if (f->frame->depth == first->frame->depth &&
            f->frame->code->rank[f->pc] < first->frame->code->rank[first->pc]) {
            first = f;
        }
    }
    return first;
}

/* The mask each lane of a warp-wide operation names. */
static const uint32_t *named_lanes(const struct simt_warp_run *w,
                                   const struct simt_instruction *i) {
    static const uint32_t all[SIMT_LANES] = {[0 ... SIMT_LANES - 1] = UINT32_MAX};
    return i->detail[0] == SIMT_ALL_LANES ? all : simt_row(&w->warp, i->src[i->detail[0]])->u32;
}

/* All fragments wait. At one barrier together: so does the warp. Else they wait for ever. */
static void settle(struct simt_warp_run *w) {
    if (reach_barrier(w)) {
        return;
    }
    const struct simt_fragment *f = left_behind(w);
    const struct simt_instruction *i = enter(w, f);
    bool barrier = f->state == SIMT_FRAGMENT_AT_BARRIER;
    uint32_t absent = w->warp.members & ~f->mask;
    if (!barrier) {
        absent &= named_lanes(w, i)[lowest_lane(f->mask)];
    }
    simt_fail(&w->warp, i, lowest_lane(f->mask), SIMT_FAULT_BARRIER, 0,
              barrier ? "waits at __syncthreads() that lanes 0x%08x of its warp never reach (a bit "
                        "a lane): all threads of a block must reach the same barrier"
                      : "waits at a warp-wide operation for lanes 0x%08x (a bit a lane) that wait "
                        "elsewhere: every lane named in the mask must execute it",
              absent);
}

/* Keeps the outermost of the loops that the warp goes round. */
static inline void note_loop(struct simt_warp_run *w, const struct simt_fragment *f,
                             uint32_t target) {
    const struct simt_frame *frame = f->frame;
    struct simt_loop *loop = &w->loop;
    if (loop->code == NULL || frame->depth < loop->depth ||
        (frame->depth == loop->depth && target < loop->begin)) {
        *loop = (struct simt_loop){frame->code, target, f->pc, frame->depth};
    }
}

static enum go branch(struct simt_block_run *b, struct simt_warp_run *w, struct simt_fragment *f,
                      uint32_t taken, uint32_t target) {
    uint32_t rest = f->mask & ~taken;
    bool leaves = target < w->vain.begin || target > w->vain.end;
    if (w->vain.idle && b->block.counters == &w->vain.round &&
        (taken == 0 ? f->pc == w->vain.end : leaves)) {
        simt_vain_leave(b, w);
    }
    if (taken == 0) {
        f->pc++;
        return GO_ON;
    }
    if (target <= f->pc) {
        f->jumps_back++;
        note_loop(w, f, target);
        if (b->block.run->yield != NULL) {
            simt_vain_round(b, w, f, target);
        }
    }
    if (rest == 0) {
        f->pc = target;
        return w->fragment_count == 1 ? GO_ON : GO_PICK;
    }
    b->block.counters->divergent_branches++;
    split(w, rest, f->pc + 1, f->frame);
    f->mask = taken;
    f->pc = target;
    return GO_PICK;
}

/* brx.idx: every lane has its own target. */
static enum go branch_by_table(struct simt_block_run *b, struct simt_warp_run *w,
                               struct simt_fragment *f, uint32_t taken) {
    const struct simt_instruction *i = &f->frame->code->instructions[f->pc];
    const union simt_row *index = simt_row(&w->warp, i->src[0]);
    uint32_t pc = f->pc;
    uint32_t left = taken;
    f->mask &= ~taken;
    f->pc++;
    while (left != 0) {
        uint32_t entry = index->u32[lowest_lane(left)];
        uint32_t same = 0;
        for (uint32_t lane = 0; lane < SIMT_LANES; lane++) {
            same |= (left >> lane & 1) != 0 && index->u32[lane] == entry ? (uint32_t)1 << lane : 0;
        }
        if (entry >= i->source->target_count) {
            simt_fail(&w->warp, i, lowest_lane(left), SIMT_FAULT_OUT_OF_BOUNDS, entry,
                      "jumps to entry %u of a table of %zu", entry, i->source->target_count);
            return GO_PICK;
        }
        uint32_t target = i->source->target_indices[entry];
        if (f->mask == 0) {
            f->mask = same;
            f->pc = target;
        } else {
            split(w, same, target, f->frame);
            b->block.counters->divergent_branches++;
        }
        f->jumps_back += target <= pc;
        left &= ~same;
    }
    return GO_PICK;
}

/* Copies the words of one .param variable from frame to frame, for some lanes. */
static void copy_parameter(const struct simt_frame *from, uint32_t from_number,
                           struct simt_frame *to, uint32_t to_number, uint32_t lanes) {
    const struct simt_parameter *a = &from->code->parameters[from_number];
    const struct simt_parameter *b = &to->code->parameters[to_number];
    for (uint32_t word = 0; word < a->words && word < b->words; word++) {
        const uint32_t *in = (const uint32_t *)(void *)(from->rows + a->offset + word * SIMT_ROW32);
        uint32_t *out = (uint32_t *)(void *)(to->rows + b->offset + word * SIMT_ROW32);
        for (uint32_t lane = 0; lane < SIMT_LANES; lane++) {
            out[lane] = lanes >> lane & 1 ? in[lane] : out[lane];
        }
    }
    simt_undefined_pass(from, from_number, to, to_number, lanes);
}

/*
 * The function of a call. Through a pointer, lanes may mean different ones: those that mean
 * another than the first stay before the call as a fragment of their own. NULL: not found.
 */
static const struct simt_code *find_callee(struct simt_warp_run *w, struct simt_fragment *f,
                                           const struct simt_call *site, uint32_t *taken) {
    if (site->callee != NULL) {
        return site->code;
    }
    const struct simt_code *own = f->frame->code;
    const union simt_row *pointers = simt_row(&w->warp, site->pointer);
    uint64_t address = pointers->u64[lowest_lane(*taken)];
    uint32_t others = 0;
    for (uint32_t lane = 0; lane < SIMT_LANES; lane++) {
        others |= pointers->u64[lane] != address ? (uint32_t)1 << lane : 0;
    }
    others &= *taken;
    if (others != 0) {
        split(w, others, f->pc, f->frame);
        f->mask &= ~others;
        *taken &= ~others;
    }
    for (size_t n = 0; n < own->linked_count; n++) {
        if (address != 0 && own->linked[n]->address == address) {
            return own->linked[n];
        }
    }
    return NULL;
}

/* A function that the kernel does not have: the system's, or a pointer that is none. */
static enum go call_system(struct simt_warp_run *w, struct simt_fragment *f,
                           const struct simt_instruction *i, const struct simt_call *site,
                           uint32_t taken) {
    simt_set_mask(&w->warp, taken);
    if (!simt_undefined_arguments(w, f, site, taken)) {
        return GO_PICK;
    }
    f->pc++;
    if (site->callee == NULL) {
        uint32_t lane = lowest_lane(taken);
        uint64_t address = simt_row(&w->warp, site->pointer)->u64[lane];
        simt_fail(&w->warp, i, lane, SIMT_FAULT_OUT_OF_BOUNDS, address,
                  "calls the function at 0x%llx, where there is none", (unsigned long long)address);
    } else if (!simt_system_call(w, f, i, site)) {
        simt_fail(&w->warp, i, lowest_lane(taken), SIMT_FAULT_UNSUPPORTED, 0,
                  "calls %s, which simt does not have", site->callee);
    }
    return GO_ON;
}

static void fail_stack(struct simt_warp_run *w, const struct simt_fragment *f,
                       const struct simt_instruction *i, const struct simt_code *code,
                       uint32_t taken) {
    char name[128];
    simt_function_text(code->function->name, name, sizeof name);
    simt_fail(&w->warp, i, lowest_lane(taken), SIMT_FAULT_STACK, 0,
              "calls %s(), %u calls deep: the stack of a thread is full (%zu bytes, and a call of "
              "%s() takes %zu)",
              name, f->frame->depth + 1, w->warp.block->run->stack_bytes, name,
              simt_frame_bytes(code));
}

static enum go call(struct simt_block_run *b, struct simt_warp_run *w, struct simt_fragment *f,
                    const struct simt_instruction *i, uint32_t taken) {
    const struct simt_call *site = &f->frame->code->calls[i->immediate];
    if (taken == 0) {
        f->pc++;
        return GO_ON;
    }
    const struct simt_code *code = find_callee(w, f, site, &taken);
    if (code == NULL) {
        return call_system(w, f, i, site, taken);
    }
    if (!simt_frame_fits(b->block.run, code, f->frame)) {
        fail_stack(w, f, i, code, taken);
        return GO_PICK;
    }
    struct simt_frame *frame = simt_frame_create(b, w, code, f->frame);
    if (frame == NULL) {
        b->out_of_memory = true;
        simt_fail(&w->warp, i, lowest_lane(taken), SIMT_FAULT_STACK, 0,
                  "calls a function, and there is no memory for its registers");
        return GO_PICK;
    }
    frame->call = site;
    frame->return_pc = f->pc + 1;
    frame->lanes = taken;
    for (uint32_t n = 0; n < site->argument_count; n++) {
        copy_parameter(f->frame, site->arguments[n], frame, n, taken);
    }
    if (f->mask != taken) {
        split(w, f->mask & ~taken, f->pc + 1, f->frame);
    }
    f->mask = taken;
    f->frame = frame;
    f->pc = 0;
    return GO_PICK;
}

static void remove_lanes(struct simt_warp_run *w, struct simt_fragment *f, uint32_t lanes) {
    f->mask &= ~lanes;
    f->pc++;
    if (f->mask == 0) {
        remove_fragment(w, (uint32_t)(f - w->fragments));
    }
}

/* Nobody waits for lanes that have ended: who waits for others looks again. */
static void wake(struct simt_warp_run *w) {
    for (uint32_t n = 0; n < w->fragment_count; n++) {
        if (w->fragments[n].state == SIMT_FRAGMENT_WAITS_FOR_LANES) {
            w->fragments[n].state = SIMT_FRAGMENT_RUNS;
        }
    }
}

static enum go leave(struct simt_block_run *b, struct simt_warp_run *w, struct simt_fragment *f,
                     uint32_t lanes, bool exits) {
    struct simt_frame *frame = f->frame;
    if (lanes == 0) {
        f->pc++;
        return GO_ON;
    }
    if (exits || frame->caller == NULL) {
        w->warp.members &= ~lanes;
        w->warp.block->returned += (uint32_t)__builtin_popcount(lanes);
        b->last = w;
        b->last_instruction = &f->frame->code->instructions[f->pc];
        remove_lanes(w, f, lanes);
        drop_lanes(w, frame, lanes);
        wake(w);
        return GO_PICK;
    }
    struct simt_frame *caller = frame->caller;
    const struct simt_call *site = frame->call;
    uint32_t first_result = (uint32_t)frame->code->function->parameter_count;
    for (uint32_t n = 0; n < site->result_count; n++) {
        copy_parameter(frame, first_result + n, caller, site->results[n], lanes);
    }
    uint32_t return_pc = frame->return_pc;
    remove_lanes(w, f, lanes);
    split(w, lanes, return_pc, caller);
    frame->lanes &= ~lanes;
    if (frame->lanes == 0) {
        simt_frame_free(frame);
    }
    return GO_PICK;
}

static uint32_t lanes_with(const uint32_t values[SIMT_LANES], uint32_t value, uint32_t lanes) {
    uint32_t found = 0;
    for (uint32_t lane = 0; lane < SIMT_LANES; lane++) {
        found |= (uint32_t)(values[lane] == value) << lane;
    }
    return found & lanes;
}

/* Runs the operation for each group of lanes that name the same mask and are all here.
 * @return the lanes that have to wait for others */
static uint32_t run_groups(struct simt_warp_run *w, const struct simt_instruction *i,
                           uint32_t active) {
    uint32_t named[SIMT_LANES]; /* a copy: the result may go to the same register */
    uint32_t waiting = 0;
    memcpy(named, named_lanes(w, i), sizeof named);
    for (uint32_t left = active; left != 0;) {
        uint32_t mask = named[lowest_lane(left)];
        uint32_t group = lanes_with(named, mask, left);
        left &= ~group;
        if ((group & ~mask) != 0) {
            simt_fail(&w->warp, i, lowest_lane(group & ~mask), SIMT_FAULT_BARRIER, 0,
                      "executes a warp-wide operation with mask 0x%08x, in which its own lane is "
                      "missing",
                      mask);
            return 0;
        }
        if ((mask & w->warp.members & ~group) != 0) {
            waiting |= group;
            continue;
        }
        simt_set_mask(&w->warp, group);
        i->run(&w->warp, i);
        if (i->undefined == SIMT_UNDEFINED_SHUFFLE &&
            (w->warp.attention & SIMT_ATTENTION_UNDEFINED) != 0) {
            simt_undefined_locate(w, i);
        }
        if (w->warp.block->shadow != NULL) {
            simt_shadow_meet(w->warp.block->shadow, w->warp.index);
            simt_sync_met(w->warp.block);
        }
    }
    return waiting;
}

/* A warp-wide operation runs when all lanes its mask names are here. */
static enum go synchronise(struct simt_warp_run *w, struct simt_fragment *f,
                           const struct simt_instruction *i, uint32_t active) {
    uint32_t waiting = active != 0 ? run_groups(w, i, active) : 0;
    if (waiting == 0) {
        f->pc++;
        return GO_ON;
    }
    if (waiting != f->mask) {
        split(w, f->mask & ~waiting, f->pc + 1, f->frame);
        f->mask = waiting;
    }
    f->state = SIMT_FRAGMENT_WAITS_FOR_LANES;
    return GO_PICK;
}

/* A wgmma is one of four warps: a warp waits for it until all of them have executed it. But for
 * those that will not: that is told when the block ends. */
static bool is_ahead(const struct simt_block_run *b, const struct simt_warp_run *w) {
    enum { WARPGROUP = 4 };
    uint32_t first = w->warp.index / WARPGROUP * WARPGROUP;
    uint64_t own = simt_async_products(&b->block, w->warp.index);
    for (uint32_t n = first; n < first + WARPGROUP && n < b->warp_count; n++) {
        if (b->warps[n].state == SIMT_WARP_RUNS && simt_async_products(&b->block, n) < own) {
            return true;
        }
    }
    return false;
}

/* The warp lets others run, and asks again. */
static enum go ask_again(struct simt_warp_run *w, struct simt_fragment *f,
                         const struct simt_instruction *i) {
    w->warp.block->counters->machine_instructions -= i->machine;
    pipeline_poll(&w->warp);
    w->polls++;
    f->jumps_back = MAX_JUMPS_BACK;
    return GO_PICK;
}

/* Lanes that wait for other lanes let those run first. */
static enum go poll(struct simt_warp_run *w, struct simt_fragment *f,
                    const struct simt_instruction *i, uint32_t active) {
    f->pc++;
    if (active == 0) {
        return GO_ON;
    }
    simt_set_mask(&w->warp, active);
    i->run(&w->warp, i);
    int32_t p = i->pred_dst[0];
    if (p >= 0 && (~w->warp.predicates[p] & active) == 0) {
        return GO_ON;
    }
    if (p >=
        0) { /* as many polls are no work of the warp: it and the branch back are not counted */
        w->warp.block->counters->machine_instructions -= 2 * (uint64_t)i->machine;
        pipeline_poll(&w->warp);
    }
    w->polls++;
    f->jumps_back = MAX_JUMPS_BACK;
    return GO_PICK;
}

/* bar.arrive: counted, not waited for. bar.sync, bar.red: the fragment waits. */
static enum go barrier(struct simt_block_run *b, struct simt_warp_run *w, struct simt_fragment *f,
                       const struct simt_instruction *i, uint32_t active) {
    if (i->detail[SIMT_BARRIER_MODE] == SIMT_BARRIER_ARRIVE) {
        uint32_t number, count;
        simt_set_mask(&w->warp, active);
        if (read_barrier(w, i, &number, &count)) {
            b->barriers[number].arrived += SIMT_LANES;
            b->barriers[number].wanted = count;
            if (b->block.pipeline != NULL) {
                uint64_t now = simt_pipeline_now(b->pipeline, w->warp.index);
                b->arrived[number] = now > b->arrived[number] ? now : b->arrived[number];
            }
        }
        f->pc++;
        return GO_ON;
    }
    if (active != f->mask) { /* a guarded barrier: the others go on, and may be missed */
        split(w, f->mask & ~active, f->pc + 1, f->frame);
        f->mask = active;
    }
    f->state = SIMT_FRAGMENT_AT_BARRIER;
    return GO_PICK;
}

static enum go flow(struct simt_block_run *b, struct simt_warp_run *w, struct simt_fragment *f,
                    const struct simt_instruction *i, uint32_t active) {
    switch ((enum simt_flow)i->flow) {
    case SIMT_FLOW_BRANCH:
        return branch(b, w, f, active, (uint32_t)i->immediate);
    case SIMT_FLOW_BRANCH_TABLE:
        return branch_by_table(b, w, f, active);
    case SIMT_FLOW_CALL:
        return call(b, w, f, i, active);
    case SIMT_FLOW_RETURN:
    case SIMT_FLOW_EXIT:
        return leave(b, w, f, active, i->flow == SIMT_FLOW_EXIT);
    case SIMT_FLOW_BARRIER:
        if (active != 0) {
            return barrier(b, w, f, i, active);
        }
        break;
    case SIMT_FLOW_WARP_SYNC:
        return synchronise(w, f, i, active);
    case SIMT_FLOW_WARPGROUP:
        return active != 0 && is_ahead(b, w) ? ask_again(w, f, i) : synchronise(w, f, i, active);
    case SIMT_FLOW_POLL:
        return poll(w, f, i, active);
    case SIMT_FLOW_TRAP:
        if (active != 0) {
            simt_fail(&w->warp, i, lowest_lane(active), SIMT_FAULT_TRAP, 0,
                      "executes a trap: __trap(), __brkpt() or unreachable code");
            return GO_PICK;
        }
        break;
    case SIMT_FLOW_CLOCK:
        if (active == 0) {
            break;
        }
        simt_set_mask(&w->warp, active);
        f->pc++;
        return GO_CLOCK;
    case SIMT_FLOW_NONE:
        break;
    }
    f->pc++;
    return GO_ON;
}

static uint32_t active_lanes(const struct simt_warp *warp, const struct simt_instruction *i,
                             uint32_t mask) {
    if (i->guard < 0) {
        return mask;
    }
    uint32_t guard = warp->predicates[i->guard];
    return mask & (i->guard_negated ? ~guard : guard);
}

static void count(struct simt_counters *counters, const struct simt_instruction *i,
                  uint32_t active) {
    uint64_t lanes = (uint64_t)__builtin_popcount(active);
    counters->instructions[i->op_class]++;
    counters->machine_instructions += i->machine;
    counters->active_lanes += lanes;
    counters->flops += lanes * i->flops;
    counters->spills += i->spills;
}

/* Counts instructions `from` to `to` - 1 for the lanes of a mask. */
static inline void count_all(struct simt_counters *counters, const struct simt_code *code,
                             uint32_t from, uint32_t to, uint32_t mask) {
    const struct simt_sums *before = &code->sums[from], *after = &code->sums[to];
    uint64_t lanes = (uint64_t)__builtin_popcount(mask);
    for (uint32_t n = 0; n < SIMT_CLASS_COUNT; n++) {
        counters->instructions[n] += after->classes[n] - before->classes[n];
    }
    counters->machine_instructions += after->machine - before->machine;
    counters->active_lanes += lanes * (to - from);
    counters->flops += lanes * (after->flops - before->flops);
    counters->spills += after->spills - before->spills;
}

/* A guard holds for some of the lanes that count_all() counts: takes the others back. */
static void take_back(struct simt_counters *counters, const struct simt_instruction *i,
                      uint32_t mask, uint32_t active) {
    uint64_t lanes = (uint64_t)__builtin_popcount(mask & ~active);
    counters->active_lanes -= lanes;
    counters->flops -= lanes * i->flops;
}

/* Of a warp without attention: runs instructions one after the other, up to one that the scheduler
 * carries out. The lanes are those of the fragment all the time, so that they are counted together,
 * with the one they end at. @return whether that one is next */
static inline __attribute__((always_inline)) bool run_on(struct simt_block_run *b,
                                                         struct simt_warp_run *w,
                                                         struct simt_fragment *f, uint64_t budget,
                                                         uint64_t *used, bool clocked) {
    const struct simt_code *code = f->frame->code;
    const struct simt_instruction *first = &code->instructions[f->pc], *i = first;
    const struct simt_instruction *end = i + (budget - *used);
    const bool *leader = w->fragment_count > 1 ? &code->leader[f->pc] : NULL;
    struct simt_warp *warp = &w->warp;
    uint32_t from = f->pc, mask = f->mask;
    bool goes_on = true;
    while (goes_on && i->next != SIMT_NEXT_FLOW) {
        if (clocked) {
            simt_warp_clock(w, code, from + (uint32_t)(i - first));
        }
        if (i->guard < 0) {
            simt_set_mask(warp, mask);
            i->run(warp, i);
        } else {
            uint32_t active = active_lanes(warp, i, mask);
            take_back(b->block.counters, i, mask, active);
            if (active != 0) {
                simt_set_mask(warp, active);
                i->run(warp, i);
            }
        }
        i++;
        goes_on = i < end && warp->attention == 0 && b->block.fault.kind == SIMT_FAULT_NONE &&
                  (leader == NULL || !leader[i - first]);
    }
    f->pc += (uint32_t)(i - first);
    *used += (uint64_t)(i - first) + goes_on;
    count_all(b->block.counters, code, from, f->pc + goes_on, mask);
    return goes_on;
}

static bool run_straight(struct simt_block_run *b, struct simt_warp_run *w, struct simt_fragment *f,
                         uint64_t budget, uint64_t *used) {
    return run_on(b, w, f, budget, used, false);
}

/* The same where the warp has a clock, and polls nothing in vain. Apart, so that the other one
 * keeps its registers. */
static __attribute__((noinline)) bool run_clocked(struct simt_block_run *b, struct simt_warp_run *w,
                                                  struct simt_fragment *f, uint64_t budget,
                                                  uint64_t *used) {
    bool vain = b->block.counters != &b->own;
    bool goes_on = vain ? run_straight(b, w, f, budget, used) : run_on(b, w, f, budget, used, true);
    if (goes_on && !vain) {
        simt_warp_clock(w, f->frame->code, f->pc);
    }
    return goes_on;
}

/* The scheduler carries an instruction out. @return false: another fragment may have to run */
static bool carry_out(struct simt_block_run *b, struct simt_warp_run *w, struct simt_fragment *f,
                      uint32_t active, uint64_t used) {
    const struct simt_instruction *i = &f->frame->code->instructions[f->pc];
    enum go next = flow(b, w, f, i, active);
    if (next == GO_CLOCK) {
        b->turn_instructions = used;
        simt_clock_read(b, w, i);
    }
    return next != GO_PICK;
}

static bool run_flow(struct simt_block_run *b, struct simt_warp_run *w, struct simt_fragment *f,
                     uint64_t used) {
    const struct simt_instruction *i = &f->frame->code->instructions[f->pc];
    uint32_t active = active_lanes(&w->warp, i, f->mask);
    if (active != f->mask) {
        take_back(b->block.counters, i, f->mask, active);
    }
    return carry_out(b, w, f, active, used);
}

/* Of a warp with attention: runs one instruction. @return as carry_out() */
static bool run_attended(struct simt_block_run *b, struct simt_warp_run *w, struct simt_fragment *f,
                         uint64_t used) {
    const struct simt_instruction *i = &f->frame->code->instructions[f->pc];
    uint32_t active = active_lanes(&w->warp, i, f->mask);
    count(b->block.counters, i, active);
    if (!simt_warp_attend(w, f, active)) {
        return false;
    }
    if (i->next == SIMT_NEXT_FLOW) {
        return carry_out(b, w, f, active, used);
    }
    if (active != 0) {
        simt_set_mask(&w->warp, active);
        i->run(&w->warp, i);
    }
    f->pc++;
    return true;
}

/* Runs one fragment until another may have to run. @return instructions used */
static uint64_t run_fragment(struct simt_block_run *b, struct simt_warp_run *w,
                             struct simt_fragment *f, uint64_t budget) {
    const struct simt_code *code = f->frame->code;
    struct simt_warp *warp = &w->warp;
    uint64_t used = 0;
    warp->rows = f->frame->rows;
    warp->predicates = f->frame->predicates;
    warp->cells = &f->frame->cells;
    warp->cell_count = simt_cell_count(code);
    while (used < budget) {
        bool goes_on = true;
        if (warp->attention != 0) {
            goes_on = run_attended(b, w, f, ++used);
        } else if (w->clock != NULL ? run_clocked(b, w, f, budget, &used)
                                    : run_straight(b, w, f, budget, &used)) {
            goes_on = run_flow(b, w, f, used);
        }
        if (!goes_on || b->block.fault.kind != SIMT_FAULT_NONE) {
            return used;
        }
        if (w->fragment_count > 1 && code->leader[f->pc]) {
            return used;
        }
    }
    return used;
}

/* The clock of a warp that ends goes on no more. */
static void end_pipeline(struct simt_warp_run *w) {
    struct simt_pipeline *pipeline = w->warp.block->pipeline;
    if (pipeline != NULL) {
        simt_timeline_hold(w->clock, simt_pipeline_until(pipeline, w->warp.index));
        simt_pipeline_set(pipeline, w->warp.index, simt_timeline_now(w->clock));
    }
}

void simt_warp_go(struct simt_block_run *b, struct simt_warp_run *w, uint64_t budget) {
    w->polls = 0;
    while (budget > 0 && w->polls < MAX_POLLS && b->block.fault.kind == SIMT_FAULT_NONE) {
        if (w->fragment_count > 1) {
            merge(w);
        }
        if (w->fragment_count == 0) {
            w->state = SIMT_WARP_DONE;
            end_pipeline(w);
            if (w->timeline != NULL) {
                simt_timeline_end(w->timeline, b->block.counters);
                b->own.followed_machine += w->machine;
            }
            return;
        }
        struct simt_fragment *f = pick(w);
        if (f == NULL) {
            settle(w);
            return;
        }
        uint64_t before = b->own.machine_instructions;
        if (w->vain.idle) {
            simt_vain_enter(b, w, f);
        }
        uint64_t used = run_fragment(b, w, f, budget);
        b->block.counters = &b->own;
        w->machine += b->own.machine_instructions - before;
        b->instructions += used;
        b->turn_instructions = 0;
        budget -= used < budget ? used : budget;
    }
}
