/*
 * Races in words: both threads, and both lines where they are known (witness.h).
 */
#include "common/simt/memory/access/request_race.h"

#include <inttypes.h>
#include <stdio.h>

#include "common/simt/memory/access/witness.h"

enum { WHERE_BYTES = 800, WHO_BYTES = 512, PLACE_BYTES = 300, NAME_BYTES = 64 };

static bool is_shared(const struct simt_request *request) {
    return request->space == PTX_SHARED;
}

static uint64_t lane_address(const struct simt_request *request, uint32_t lane) {
    return request->first + (uint64_t)(int64_t)request->relative[lane];
}

/* "at offset 16 of shared memory", "at 0x7f..., 16 bytes into allocation #1 (...),". */
static void name_place(const struct simt_request *request, uint64_t address, char *text,
                       size_t size) {
    char where[WHERE_BYTES / 2];
    if (is_shared(request)) {
        snprintf(text, size, "at offset %" PRIu64 " of %s", address,
                 simt_request_shared_text(request, where, sizeof where));
        return;
    }
    simt_memory_describe(request->warp->block->run->memory, address, where, sizeof where);
    snprintf(text, size, "at 0x%" PRIx64 ", %s,", address, where);
}

/* What the second run has found; NULL: this is not the second run, or it found nothing. */
static const struct simt_witness *found_by(const struct simt_run *run) {
    const struct simt_witness *witness = run->witness;
    return witness != NULL && witness->instruction != NULL ? witness : NULL;
}

/* "block (1,0,0)"; where it is not known: "another block". */
static void name_block(const struct simt_run *run, bool known, uint64_t order, char *text,
                       size_t size) {
    uint32_t columns = run->grid[0] > 0 ? run->grid[0] : 1;
    uint32_t rows = run->grid[1] > 0 ? run->grid[1] : 1;
    uint32_t number = (uint32_t)order;
    snprintf(text, size, known ? "block (%u,%u,%u)" : "another block", number % columns,
             number / columns % rows, number / columns / rows);
}

/* "thread (0,0,0) of block (1,0,0) wrote at sum.cu:3". */
static void name_block_and_deed(const struct simt_run *run, const struct simt_race *race,
                                char *text, size_t size) {
    const struct simt_witness *witness = found_by(run);
    const char *did = race->wrote ? "wrote" : "read";
    char block[NAME_BYTES], thread[NAME_BYTES], line[PLACE_BYTES];
    if (witness == NULL) {
        name_block(run, race->known, race->agent, block, sizeof block);
        snprintf(text, size, "%s %s", block, did);
        return;
    }
    name_block(run, true, witness->by_order, block, sizeof block);
    snprintf(text, size, "%s of %s %s%s",
             simt_thread_text(run, witness->by_thread, thread, sizeof thread), block, did,
             simt_place_text(run, witness->instruction, line, sizeof line));
}

/* "thread (1,0,0) of the same warp", "thread (33,0,0) of warp 1"; "another thread of ..." where the
 * history did not say which. */
static void name_thread(const struct simt_request *request, const struct simt_race *race,
                        char *text, size_t size) {
    const struct simt_run *run = request->warp->block->run;
    const struct simt_witness *witness = found_by(run);
    bool told = witness != NULL || (race->lanes && race->known);
    uint32_t number =
        witness != NULL ? witness->by_thread : request->warp->index * SIMT_LANES + race->lane;
    uint32_t warp = witness != NULL ? number / SIMT_LANES : race->agent;
    char thread[NAME_BYTES], of[NAME_BYTES] = "another warp";
    snprintf(thread, sizeof thread, race->lanes ? "another thread" : "a thread");
    if (told) {
        simt_thread_text(run, number, thread, sizeof thread);
    }
    if (race->lanes) {
        snprintf(of, sizeof of, "the same warp");
    } else if (witness != NULL || race->known) {
        snprintf(of, sizeof of, "warp %u", warp);
    }
    snprintf(text, size, "%s of %s", thread, of);
}

/* "thread (0,0,0) of warp 1 wrote at tile.cu:31". */
static void name_thread_and_deed(const struct simt_request *request, const struct simt_race *race,
                                 char *text, size_t size) {
    const struct simt_run *run = request->warp->block->run;
    const struct simt_witness *witness = found_by(run);
    char who[2 * NAME_BYTES + 8], line[PLACE_BYTES] = "";
    name_thread(request, race, who, sizeof who);
    if (witness != NULL) {
        simt_place_text(run, witness->instruction, line, sizeof line);
    }
    snprintf(text, size, "%s %s%s", who, race->wrote ? "wrote" : "read", line);
}

/* What a second run needs to find the other access; the first fault of a block is kept. */
static void remember(const struct simt_request *request, uint32_t lane,
                     const struct simt_race *race, bool blocks) {
    struct simt_fault *fault = &request->warp->block->fault;
    if (!fault->race.raced) {
        fault->race = (struct simt_encounter){.raced = true,
                                              .is_shared = is_shared(request),
                                              .blocks = blocks,
                                              .warp = request->warp->index,
                                              .lane = lane,
                                              .bytes = request->bytes,
                                              .address = lane_address(request, lane),
                                              .home = request->home->order,
                                              .other = *race,
                                              .instruction = request->instruction};
        const struct simt_run *run = request->warp->block->run;
        if (found_by(run) != NULL) {
            simt_place_find(run, found_by(run)->instruction, &fault->other);
        }
    }
}

void simt_race_between_blocks(const struct simt_request *request, uint32_t lane,
                              const struct simt_race *race) {
    const struct simt_run *run = request->warp->block->run;
    uint64_t address = lane_address(request, lane);
    char who[WHO_BYTES], where[WHERE_BYTES];
    bool shared = is_shared(request);
    name_block_and_deed(run, race, who, sizeof who);
    name_place(request, address, where, sizeof where);
    simt_fail(request->warp, request->instruction, lane,
              shared ? SIMT_FAULT_SHARED_RACE : SIMT_FAULT_GLOBAL_RACE, address,
              "%s %u bytes %s that %s%s", simt_request_verb(request), request->bytes, where, who,
              shared ? ", with nothing in between that orders the two blocks"
                     : " in the same launch");
    if (shared) {
        request->warp->block->fault.hint = SIMT_CLUSTER_HINT;
    }
    remember(request, lane, race, true);
}

void simt_race_inside_block(const struct simt_request *request, uint32_t lane,
                            const struct simt_race *race) {
    struct simt_warp *warp = request->warp;
    uint64_t address = lane_address(request, lane);
    enum simt_fault_kind kind = is_shared(request) ? SIMT_FAULT_SHARED_RACE : SIMT_FAULT_BLOCK_RACE;
    const char *verb = simt_request_verb(request);
    char who[WHO_BYTES], where[WHERE_BYTES];
    name_place(request, address, where, sizeof where);
    name_thread_and_deed(request, race, who, sizeof who);
    if (race->lanes) {
        simt_fail(warp, request->instruction, lane, kind, address,
                  "%s %u bytes %s that %s, with no barrier in between: lanes need not run in step",
                  verb, request->bytes, where, who);
    } else {
        simt_fail(warp, request->instruction, lane, kind, address,
                  "(in warp %u) %s %u bytes %s that %s, with no barrier in between", warp->index,
                  verb, request->bytes, where, who);
    }
    remember(request, lane, race, false);
}

void simt_race_of_values(const struct simt_request *request, uint32_t lane, uint32_t other) {
    struct simt_warp *warp = request->warp;
    uint64_t address = lane_address(request, lane);
    char where[WHERE_BYTES], who[NAME_BYTES];
    name_place(request, address, where, sizeof where);
    simt_fail(
        warp, request->instruction, lane,
        is_shared(request) ? SIMT_FAULT_SHARED_RACE : SIMT_FAULT_BLOCK_RACE, address,
        "writes %u bytes %s and %s of the same warp writes another value there in the same "
        "instruction",
        request->bytes, where,
        simt_thread_text(warp->block->run, warp->index * SIMT_LANES + other, who, sizeof who));
    warp->block->fault.hint =
        "one thread should write there, or each its own place, or all with an atomic operation";
}

/* "thread (0,0,0) of block (1,0,0)"; of the own block without it, and the thread itself. */
static void name_starter(const struct simt_warp *warp, uint32_t thread,
                         const struct simt_flight *flight, char *text, size_t size) {
    const struct simt_block *block = warp->block;
    char name[NAME_BYTES];
    simt_thread_text(block->run, flight->thread, name, sizeof name);
    if (flight->block != block) {
        const uint32_t *index = flight->block->index;
        snprintf(text, size, "%s of block (%u,%u,%u)", name, index[0], index[1], index[2]);
    } else {
        snprintf(text, size, "%s", flight->thread == thread ? "the same thread" : name);
    }
}

void simt_flight_text(const struct simt_warp *warp, uint32_t thread,
                      const struct simt_flight *flight, char *text, size_t size) {
    char who[WHO_BYTES], line[PLACE_BYTES];
    simt_place_text(warp->block->run, flight->instruction, line, sizeof line);
    name_starter(warp, thread, flight, who, sizeof who);
    switch (flight->kind) {
    case SIMT_FLIGHT_LOAD:
        snprintf(text, size,
                 "to which a bulk copy of %s%s is still on its way: nobody has waited for its "
                 "mbarrier",
                 who, line);
        break;
    case SIMT_FLIGHT_STORE:
        snprintf(text, size,
                 "which a bulk copy of %s%s still reads: that has not been waited for "
                 "(cp.async.bulk.wait_group, or the mbarrier at the other end)",
                 who, line);
        break;
    case SIMT_FLIGHT_PRODUCT:
        snprintf(text, size,
                 "which a wgmma of warp %u%s still reads: its warp has not waited for it "
                 "(wgmma.wait_group)",
                 flight->thread / SIMT_LANES, line);
        break;
    }
}

void simt_race_with_proxy(const struct simt_request *request, uint32_t lane,
                          const struct simt_generic_write *write) {
    const struct simt_run *run = request->warp->block->run;
    uint64_t address = lane_address(request, lane);
    char who[NAME_BYTES], line[PLACE_BYTES], where[WHERE_BYTES];
    name_place(request, address, where, sizeof where);
    simt_fail(
        request->warp, request->instruction, lane, SIMT_FAULT_PROXY, address,
        "reads %u bytes %s by the async proxy, which %s wrote%s, with no fence.proxy.async in "
        "between",
        request->bytes, where, simt_thread_text(run, write->thread, who, sizeof who),
        simt_place_text(run, write->instruction, line, sizeof line));
    simt_place_find(run, write->instruction, &request->warp->block->fault.other);
}

void simt_race_with_flight(const struct simt_request *request, uint32_t lane,
                           const struct simt_flight *flight) {
    struct simt_warp *warp = request->warp;
    char text[WHO_BYTES + 2 * PLACE_BYTES], where[WHERE_BYTES];
    uint64_t address = lane_address(request, lane);
    simt_flight_text(warp, warp->index * SIMT_LANES + lane, flight, text, sizeof text);
    name_place(request, address, where, sizeof where);
    simt_fail(warp, request->instruction, lane, SIMT_FAULT_COPY, address, "%s %u bytes %s, %s",
              simt_request_verb(request), request->bytes, where, text);
    warp->block->fault.hint = SIMT_FLIGHT_HINT;
    simt_place_find(warp->block->run, flight->instruction, &warp->block->fault.other);
}

void simt_race_with_copy(const struct simt_request *request, uint32_t lane,
                         const struct simt_copier *copier) {
    const struct simt_run *run = request->warp->block->run;
    uint64_t address = lane_address(request, lane);
    bool own = copier->warp == request->warp->index && copier->lane == lane;
    char who[NAME_BYTES] = "the same thread", line[PLACE_BYTES];
    if (!own) {
        simt_thread_text(run, copier->warp * SIMT_LANES + copier->lane, who, sizeof who);
    }
    simt_fail(request->warp, request->instruction, lane, SIMT_FAULT_COPY, address,
              "%s %u bytes at offset %" PRIu64
              " of shared memory, to which an asynchronous copy (cp.async) of %s%s is still on "
              "its way: that thread has not waited for it",
              simt_request_verb(request), request->bytes, address, who,
              simt_place_text(run, copier->instruction, line, sizeof line));
}

void simt_access_race_at_end(struct simt_warp *warp, const struct simt_instruction *instruction,
                             uint64_t offset, const struct simt_race *race) {
    static const int32_t no_distance[SIMT_LANES];
    char who[WHO_BYTES];
    const struct simt_request request = {.warp = warp,
                                         .home = warp->block,
                                         .instruction = instruction,
                                         .mask = 1,
                                         .bytes = 4,
                                         .first = offset,
                                         .relative = no_distance,
                                         .space = PTX_SHARED,
                                         .kind = SIMT_WRITE};
    name_block_and_deed(warp->block->run, race, who, sizeof who);
    simt_fail(warp, instruction, 0, SIMT_FAULT_SHARED_RACE, offset,
              "returns as the last of its block, but %s at offset %" PRIu64
              " of the block's shared memory, and nothing orders that before the return",
              who, offset);
    warp->block->fault.hint = SIMT_END_HINT;
    remember(&request, 0, race, true);
}
