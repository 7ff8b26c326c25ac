/*
 * Full checks: bytes that nobody wrote, and races. Lanes at one address are
 * looked at once.
 */
#include <inttypes.h>
#include <stdio.h>

#include "common/simt/memory/request.h"

enum { MAX_BYTES = 32, TEXT_BYTES = 400 };

/* Up to this many bytes are asked for at once, lanes in between or not. */
#define RANGE_BYTES 1024

static bool is_shared(const struct simt_request *request) {
    return request->space == PTX_SHARED;
}

static uint64_t lane_address(const struct simt_request *request, uint32_t lane) {
    return request->first + (uint64_t)(int64_t)request->relative[lane];
}

static bool written(const struct simt_request *request, uint64_t address, size_t bytes) {
    const struct simt_block *block = request->warp->block;
    return is_shared(request) ? simt_shadow_written(block->shadow, address, bytes)
                              : simt_memory_written(block->run->memory, address, bytes);
}

static void mark(const struct simt_request *request, uint64_t address, size_t bytes) {
    const struct simt_block *block = request->warp->block;
    if (is_shared(request)) {
        simt_shadow_mark(block->shadow, address, bytes);
    } else {
        simt_memory_mark_store(block->run->memory, address, bytes);
    }
}

static void fail_uninitialised(const struct simt_request *request, uint32_t lane) {
    struct simt_warp *warp = request->warp;
    uint64_t address = lane_address(request, lane);
    char where[TEXT_BYTES];
    if (is_shared(request)) {
        simt_fail(warp, request->instruction, lane, SIMT_FAULT_UNINITIALISED, address,
                  "%s %u bytes at offset %" PRIu64
                  " of shared memory that no thread of the block has written so far; if another "
                  "thread is to do so, a __syncthreads() is missing before this line",
                  simt_request_verb(request), request->bytes, address);
        return;
    }
    simt_memory_describe(warp->block->run->memory, address, where, sizeof where);
    simt_fail(warp, request->instruction, lane, SIMT_FAULT_UNINITIALISED, address,
              "%s %u bytes at 0x%" PRIx64 ", %s, that nothing has written",
              simt_request_verb(request), request->bytes, address, where);
}

/* Bytes of which one must be written. Structs are copied with their padding, as integers of up to
 * 8 bytes or vectors of such. */
static uint32_t group_bytes(const struct simt_request *request) {
    enum ptx_type type = ptx_modifier_type(request->instruction->source, 0);
    uint32_t most = type == PTX_F32 || type == PTX_F16X2 ? 4 : 8;
    return request->bytes < most ? request->bytes : most;
}

static bool is_partly_written(const struct simt_request *request, uint64_t address) {
    uint32_t group = group_bytes(request);
    for (uint32_t at = 0; at < request->bytes; at += group) {
        bool any = false;
        for (uint32_t byte = 0; byte < group && !any; byte++) {
            any = written(request, address + at + byte, 1);
        }
        if (!any) {
            return false;
        }
    }
    return true;
}

static bool check_written(const struct simt_request *request) {
    const struct simt_pattern *pattern = request->pattern;
    size_t range = (size_t)((int64_t)pattern->high - pattern->low) + request->bytes;
    uint64_t low = request->first + (uint64_t)(int64_t)pattern->low;
    if (request->complete || (range <= RANGE_BYTES && written(request, low, range))) {
        return true;
    }
    for (uint32_t rest = simt_pattern_leaders(request->pattern); rest != 0; rest &= rest - 1) {
        uint32_t lane = simt_first_lane(rest);
        uint64_t address = lane_address(request, lane);
        if (!written(request, address, request->bytes) && !is_partly_written(request, address)) {
            fail_uninitialised(request, lane);
            return false;
        }
    }
    return true;
}

static void mark_written(const struct simt_request *request) {
    const struct simt_pattern *pattern = request->pattern;
    if (request->complete) {
        return;
    }
    if (pattern->shape == SIMT_SHAPE_CONTIGUOUS) {
        mark(request, request->first, (size_t)SIMT_LANES * request->bytes);
        return;
    }
    for (uint32_t rest = simt_pattern_leaders(request->pattern); rest != 0; rest &= rest - 1) {
        mark(request, lane_address(request, simt_first_lane(rest)), request->bytes);
    }
}

static void fail_race(const struct simt_request *request, uint32_t lane,
                      const struct simt_race *race) {
    struct simt_warp *warp = request->warp;
    const struct simt_run *run = warp->block->run;
    uint64_t address = lane_address(request, lane);
    const char *did = race->wrote ? "wrote" : "read";
    char who[64], where[TEXT_BYTES];
    if (is_shared(request)) {
        snprintf(who, sizeof who, race->known ? "warp %u" : "another warp", race->agent);
        simt_fail(warp, request->instruction, lane, SIMT_FAULT_SHARED_RACE, address,
                  "(in warp %u) %s %u bytes at offset %" PRIu64
                  " of shared memory that %s %s, with no barrier in between",
                  warp->index, simt_request_verb(request), request->bytes, address, who, did);
        return;
    }
    uint32_t columns = run->grid[0] > 0 ? run->grid[0] : 1;
    uint32_t rows = run->grid[1] > 0 ? run->grid[1] : 1;
    snprintf(who, sizeof who, race->known ? "block (%u,%u,%u)" : "another block",
             race->agent % columns, race->agent / columns % rows, race->agent / columns / rows);
    simt_memory_describe(run->memory, address, where, sizeof where);
    simt_fail(warp, request->instruction, lane, SIMT_FAULT_GLOBAL_RACE, address,
              "%s %u bytes at 0x%" PRIx64 ", %s, that %s %s in the same launch",
              simt_request_verb(request), request->bytes, address, where, who, did);
}

static bool races(const struct simt_request *request, uint64_t address, size_t bytes, bool silent,
                  struct simt_race *race) {
    struct simt_block *block = request->warp->block;
    if (is_shared(request)) {
        return simt_shadow_touch(block->shadow,
                                 simt_shadow_agent(block->shadow, request->warp->index), address,
                                 bytes, request->kind, silent, race);
    }
    return simt_global_shadow_touch(block->run->global_shadow, &block->agent, address, bytes,
                                    request->kind, silent, race);
}

/* What each lane stores. */
struct stored {
    bool known;
    unsigned char bytes[SIMT_LANES][MAX_BYTES];
};

/* Not known for accesses that are not st. */
static void read_stored(const struct simt_request *request, struct stored *stored) {
    const struct simt_instruction *in = request->instruction;
    stored->known = request->kind == SIMT_WRITE && request->addresses == NULL;
    if (!stored->known) {
        return;
    }
    uint32_t element = simt_field(in, SIMT_ELEMENT_SHIFT);
    uint32_t count = simt_field(in, SIMT_COUNT_SHIFT);
    for (uint32_t e = 0; e < count; e++) {
        const union simt_row *row = simt_row(request->warp, in->src[1 + e]);
        bool wide = simt_register_bytes(in, e) > 4;
        for (uint32_t lane = 0; lane < SIMT_LANES; lane++) {
            const void *from = wide ? (const void *)&row->u64[lane] : (const void *)&row->u32[lane];
            unsigned char *to = stored->bytes[lane] + e * element;
            memcpy(to, from, element > 8 ? 8 : element);
            if (element > 8) {
                memcpy(to + 8, &row[1].u64[lane], 8);
            }
        }
    }
}

/* Lanes whose history needs a closer look. */
static uint32_t suspects(const struct simt_request *request) {
    struct simt_block *block = request->warp->block;
    struct simt_pattern *pattern = request->pattern;
    size_t run = (size_t)SIMT_LANES * request->bytes;
    uint32_t leaders =
        pattern->shape == SIMT_SHAPE_CONTIGUOUS ? UINT32_MAX : simt_pattern_leaders(pattern);
    if (is_shared(request)) {
        struct simt_agent *agent = simt_shadow_agent(block->shadow, request->warp->index);
        if (pattern->shape == SIMT_SHAPE_CONTIGUOUS &&
            simt_shadow_try_run(block->shadow, agent, request->first, run, request->kind)) {
            return 0;
        }
        return simt_shadow_try(block->shadow, agent, request->first, pattern->relative, leaders,
                               request->bytes, request->kind);
    }
    struct simt_global_shadow *shadow = block->run->global_shadow;
    if (pattern->shape == SIMT_SHAPE_CONTIGUOUS &&
        simt_global_shadow_try_run(shadow, &block->agent, request->first, run, request->kind)) {
        return 0;
    }
    return simt_global_shadow_try(shadow, &block->agent, request->first, pattern->relative, leaders,
                                  request->bytes, request->kind);
}

static bool check_races(const struct simt_request *request, uint32_t lanes,
                        const struct stored *stored) {
    struct simt_race race;
    for (uint32_t rest = lanes; rest != 0; rest &= rest - 1) {
        uint32_t lane = simt_first_lane(rest);
        bool silent = stored->known && memcmp(request->host + request->relative[lane],
                                              stored->bytes[lane], request->bytes) == 0;
        if (races(request, lane_address(request, lane), request->bytes, silent, &race)) {
            fail_race(request, lane, &race);
            return false;
        }
    }
    return true;
}

/* Lanes of one store at one address must agree. */
static bool check_lanes_agree(const struct simt_request *request, const struct stored *stored) {
    uint32_t leaders = simt_pattern_leaders(request->pattern);
    if (!stored->known || !is_shared(request)) {
        return true;
    }
    for (uint32_t rest = request->mask & ~leaders; rest != 0; rest &= rest - 1) {
        uint32_t lane = simt_first_lane(rest);
        uint32_t other = simt_first_lane(leaders);
        for (uint32_t left = leaders; request->relative[other] != request->relative[lane];
             left &= left - 1) {
            other = simt_first_lane(left);
        }
        if (memcmp(stored->bytes[lane], stored->bytes[other], request->bytes) != 0) {
            simt_fail(request->warp, request->instruction, lane, SIMT_FAULT_SHARED_RACE,
                      lane_address(request, lane),
                      "writes %u bytes at offset %" PRIu64 " of shared memory, and lane %u of the "
                      "same warp writes another value there in the same instruction",
                      request->bytes, lane_address(request, lane), other);
            return false;
        }
    }
    return true;
}

/* Lanes of one warp that have not met since one of them wrote. */
static bool check_lanes(const struct simt_request *request) {
    struct simt_warp *warp = request->warp;
    struct simt_lane_shadow *shadow = simt_shadow_lanes(warp->block->shadow);
    const int32_t *relative = request->pattern->relative;
    uint32_t writer;
    if (request->kind == SIMT_WRITE) {
        bool alone = request->pattern->shape == SIMT_SHAPE_CONTIGUOUS ||
                     simt_pattern_leaders(request->pattern) == request->mask;
        simt_lane_shadow_write(shadow, warp->index, request->first, relative, request->mask,
                               request->bytes, alone);
        return true;
    }
    int lane = simt_lane_shadow_read(shadow, warp->index, request->first, relative, request->mask,
                                     request->bytes, &writer);
    if (lane < 0) {
        return true;
    }
    uint64_t offset = lane_address(request, (uint32_t)lane);
    simt_fail(warp, request->instruction, (uint32_t)lane, SIMT_FAULT_SHARED_RACE, offset,
              "%s %u bytes at offset %" PRIu64 " of shared memory that lane %u of the same warp "
              "wrote, with no __syncwarp() in between: lanes need not run in step",
              simt_request_verb(request), request->bytes, offset, writer);
    return false;
}

bool simt_request_check(const struct simt_request *request) {
    const struct simt_block *block = request->warp->block;
    struct stored stored;
    bool watched = is_shared(request) ? block->shadow != NULL : request->space == PTX_GLOBAL;
    if (!watched) {
        return true;
    }
    if (request->kind != SIMT_WRITE && !request->blind && !check_written(request)) {
        return false;
    }
    if (!request->strong && (is_shared(request) || block->run->global_shadow != NULL)) {
        uint32_t lanes = suspects(request);
        bool meeting = is_shared(request) && request->kind == SIMT_WRITE &&
                       request->pattern->shape != SIMT_SHAPE_CONTIGUOUS &&
                       simt_pattern_leaders(request->pattern) != request->mask;
        if (lanes != 0 || meeting) {
            read_stored(request, &stored);
            if (!check_races(request, lanes, &stored) || !check_lanes_agree(request, &stored)) {
                return false;
            }
        }
    }
    if (is_shared(request) && !request->strong && request->kind != SIMT_ATOMIC &&
        request->addresses == NULL && !check_lanes(request)) {
        return false;
    }
    if (request->kind != SIMT_READ) {
        mark_written(request);
    }
    return true;
}
