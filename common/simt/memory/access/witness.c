#include "common/simt/memory/access/witness.h"

#include "common/simt/memory/access/request.h"

struct simt_witness simt_witness_of(const struct simt_fault *fault) {
    return (struct simt_witness){.race = fault->race, .order = fault->order};
}

void simt_witness_barrier(struct simt_witness *witness, uint64_t order) {
    if (!witness->race.blocks && order == witness->order) {
        witness->instruction = NULL;
        witness->other_warps = false;
    }
}

const char *simt_witness_hint(const struct simt_witness *witness) {
    if (!witness->race.other.lanes) {
        return NULL;
    }
    return witness->other_warps
               ? "a __syncthreads() is missing between the two accesses: other warps of the block "
                 "execute these lines, too"
               : "a __syncwarp() is missing between the two accesses; no other warp of the block "
                 "executes these lines";
}

static bool is_of_block(const struct simt_witness *w, const struct simt_block *block) {
    if (!w->race.blocks) {
        return block->order == w->order;
    }
    return block->order != w->order &&
           (!w->race.other.known || block->order == w->race.other.agent);
}

/* Threads of one block: is this one the other side, as far as the history knew it? */
static bool is_other_thread(const struct simt_encounter *race, uint32_t warp, uint32_t lane) {
    const struct simt_race *other = &race->other;
    if (race->blocks) {
        return true;
    }
    if (other->lanes) {
        return warp == race->warp && lane != race->lane && (!other->known || lane == other->lane);
    }
    return other->known ? warp == other->agent : warp != race->warp;
}

static bool overlaps(const struct simt_witness *w, uint64_t address, uint32_t bytes) {
    return address < w->race.address + w->race.bytes && w->race.address < address + bytes;
}

/* Atomic operations take part in races in shared memory alone. */
static bool is_of_kind(const struct simt_witness *w, const struct simt_request *request) {
    bool is_shared = request->space == PTX_SHARED;
    bool wrote = request->kind != SIMT_READ;
    return is_shared == w->race.is_shared && wrote == w->race.other.wrote &&
           (!is_shared || request->home->order == w->race.home) &&
           (is_shared || request->kind != SIMT_ATOMIC);
}

/* An unrolled loop has several instructions of one line. */
static bool is_same_line(const struct simt_instruction *a, const struct simt_instruction *b) {
    return a == b || (a->source->line != 0 && a->source->line == b->source->line &&
                      a->source->file == b->source->file);
}

void simt_request_expect(const struct simt_request *request) {
    struct simt_witness *w = request->warp->block->run->witness;
    const struct simt_instruction *here = request->instruction;
    bool of_another_warp = request->mask != 0 && request->warp->index != w->race.warp &&
                           request->warp->block->order == w->order;
    if (of_another_warp && (is_same_line(here, w->race.instruction) ||
                            (w->instruction != NULL && is_same_line(here, w->instruction)))) {
        w->other_warps = true;
    }
}

void simt_request_witness(const struct simt_request *request) {
    struct simt_witness *w = request->warp->block->run->witness;
    if (!is_of_kind(w, request) || !is_of_block(w, request->warp->block)) {
        return;
    }
    for (uint32_t rest = request->mask; rest != 0; rest &= rest - 1) {
        uint32_t lane = simt_first_lane(rest);
        uint64_t address = request->first + (uint64_t)(int64_t)request->relative[lane];
        if (overlaps(w, address, request->bytes) &&
            is_other_thread(&w->race, request->warp->index, lane)) {
            w->instruction = request->instruction;
            w->by_order = request->warp->block->order;
            w->by_thread = request->warp->index * SIMT_LANES + lane;
        }
    }
}
