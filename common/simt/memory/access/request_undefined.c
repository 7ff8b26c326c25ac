/*
 * Loads of bytes that nothing has written, and stores of undefined values.
 */
#include "common/simt/memory/access/request_undefined.h"

#include "common/simt/memory/undefined.h"

enum { MATRIX_SIDE = 8 };

/* In local memory: the place among those of all threads. */
static uint64_t lane_address(const struct simt_request *request, uint32_t lane) {
    if (request->space == PTX_LOCAL) {
        return (uint64_t)(request->host + request->relative[lane] - request->warp->block->local);
    }
    return request->first + (uint64_t)(int64_t)request->relative[lane];
}

static struct simt_undefined_origin origin_of(const struct simt_request *request, uint32_t lanes,
                                              bool racing) {
    struct simt_undefined_origin origin = {.instruction = request->instruction,
                                           .home = request->home,
                                           .space = request->space,
                                           .warp = request->warp->index,
                                           .lanes = lanes,
                                           .bytes = request->bytes,
                                           .racing = racing};
    for (uint32_t rest = lanes; rest != 0; rest &= rest - 1) {
        uint32_t lane = simt_first_lane(rest);
        origin.addresses[lane] = lane_address(request, lane);
    }
    return origin;
}

static void fail_at_once(const struct simt_request *request, uint32_t lanes, bool racing) {
    const struct simt_undefined_origin origin = origin_of(request, lanes, racing);
    simt_undefined_fail(request->warp, request->instruction, simt_first_lane(lanes), &origin,
                        SIMT_USE_NONE);
}

/* The number of where the values come from: the same place for values that were stored. */
static uint32_t note(const struct simt_request *request, uint32_t lanes, bool racing) {
    uint32_t number, first = simt_first_lane(lanes);
    if (!racing && !simt_request_is_remote(request) &&
        simt_undefined_kept(request->warp, request->space, lane_address(request, first),
                            request->bytes, &number)) {
        return number;
    }
    const struct simt_undefined_origin origin = origin_of(request, lanes, racing);
    return simt_undefined_note(request->warp->block->undefined, &origin);
}

/* Of a vector those registers that hold bytes of an unwritten group. */
static bool set_elements(const struct simt_request *request, uint32_t lanes, uint32_t number,
                         const struct simt_groups *groups) {
    const struct simt_instruction *in = request->instruction;
    uint32_t element = simt_field(in, SIMT_ELEMENT_SHIFT);
    bool set = true;
    for (uint32_t e = 0; e < in->dst_count; e++) {
        uint32_t from = e * element / groups->bytes;
        uint32_t to = ((e + 1) * element - 1) / groups->bytes;
        uint32_t missing = 0;
        for (uint32_t group = from; group <= to; group++) {
            missing |= groups->missing[group];
        }
        missing &= lanes;
        set =
            set && (missing == 0 || simt_undefined_set(request->warp, in->dst[e], missing, number));
    }
    return set;
}

/* Lanes that receive numbers of row r of a matrix of ldmatrix. */
static uint32_t receivers(uint32_t row, bool transposed) {
    return transposed ? 0x11111111u << row / 2 : (uint32_t)0xf << 4 * row;
}

/* Lane 8 m + r has the address of row r of matrix m. */
static bool set_matrices(const struct simt_request *request, uint32_t lanes, uint32_t number) {
    const struct simt_instruction *in = request->instruction;
    bool transposed = ptx_has_modifier(in->source, "trans");
    bool set = true;
    for (uint32_t rest = lanes; rest != 0; rest &= rest - 1) {
        uint32_t lane = simt_first_lane(rest);
        set = set && simt_undefined_set(request->warp, in->dst[lane / MATRIX_SIDE],
                                        receivers(lane % MATRIX_SIDE, transposed), number);
    }
    return set;
}

static bool set_all(const struct simt_request *request, uint32_t number) {
    const struct simt_instruction *in = request->instruction;
    bool set = true;
    for (uint32_t e = 0; e < in->dst_count; e++) {
        set = set && simt_undefined_set(request->warp, in->dst[e], UINT32_MAX, number);
    }
    return set;
}

bool simt_request_unwritten(const struct simt_request *request, uint32_t lanes,
                            const struct simt_groups *groups) {
    const struct simt_instruction *in = request->instruction;
    bool carried = false;
    if (request->warp->block->undefined != NULL) {
        switch ((enum simt_undefined_rule)in->undefined) {
        case SIMT_UNDEFINED_LOAD:
            carried = set_elements(request, lanes, note(request, lanes, groups->racing), groups);
            break;
        case SIMT_UNDEFINED_MATRIX_LOAD:
            carried = set_matrices(request, lanes, note(request, lanes, groups->racing));
            break;
        case SIMT_UNDEFINED_TILE_LOAD:
            carried = set_all(request, note(request, lanes, groups->racing));
            break;
        default:
            break;
        }
    }
    if (!carried) {
        fail_at_once(request, lanes, groups->racing);
    }
    return carried;
}

/* The bytes count as not written. */
static void take_back(const struct simt_request *request, uint32_t lane, uint32_t from,
                      uint32_t bytes, uint32_t number) {
    struct simt_shadow *shadow = request->warp->block->shadow;
    uint64_t address = lane_address(request, lane) + from;
    if (request->space == PTX_SHARED) {
        simt_shadow_unmark(shadow, address, bytes);
    } else if (bytes >= 4) { /* words are marked */
        memset(shadow->local + address / 4, 0, bytes / 4);
    }
    simt_undefined_keep(request->warp, request->space, address, bytes, number);
}

static bool store_lanes(const struct simt_request *request, uint32_t lanes, uint32_t from,
                        uint32_t bytes, uint32_t number) {
    struct simt_warp *warp = request->warp;
    if (lanes == 0) {
        return true;
    }
    bool remote = simt_request_is_remote(request);
    if ((request->space != PTX_SHARED && request->space != PTX_LOCAL) || remote) {
        simt_undefined_fail(warp, request->instruction, simt_first_lane(lanes),
                            simt_undefined_entry(warp->block->undefined, number),
                            remote ? SIMT_USE_STORE_FOR_PEER : SIMT_USE_STORE);
        return false;
    }
    for (uint32_t rest = lanes; rest != 0; rest &= rest - 1) {
        take_back(request, simt_first_lane(rest), from, bytes, number);
    }
    return true;
}

static bool store_elements(const struct simt_request *request) {
    const struct simt_instruction *in = request->instruction;
    uint32_t element = simt_field(in, SIMT_ELEMENT_SHIFT);
    uint32_t count = simt_field(in, SIMT_COUNT_SHIFT);
    bool fine = true;
    for (uint32_t e = 0; e < count && fine; e++) {
        uint32_t number = 0;
        uint32_t lanes = simt_undefined_lanes(request->warp, in->src[1 + e], &number);
        fine = store_lanes(request, lanes & request->mask, e * element, element, number);
    }
    return fine;
}

/* stmatrix: rows of matrix m with a number of an undefined lane. */
static bool store_matrices(const struct simt_request *request) {
    const struct simt_instruction *in = request->instruction;
    bool transposed = ptx_has_modifier(in->source, "trans");
    bool fine = true;
    for (uint32_t m = 0; m + 1 < in->src_count && fine; m++) {
        uint32_t number = 0, rows = 0;
        uint32_t lanes = simt_undefined_lanes(request->warp, in->src[1 + m], &number);
        for (uint32_t row = 0; row < MATRIX_SIDE; row++) {
            rows |= (lanes & receivers(row, transposed)) != 0 ? 1u << (MATRIX_SIDE * m + row) : 0;
        }
        fine = store_lanes(request, rows & request->mask, 0, request->bytes, number);
    }
    return fine;
}

/* wmma.store: any number of the tile. */
static bool store_tile(const struct simt_request *request) {
    const struct simt_instruction *in = request->instruction;
    const uint32_t *sources = simt_sources(in);
    uint32_t number = 0, lanes = 0;
    for (uint32_t n = 1; n < in->src_count; n++) {
        lanes |= simt_undefined_lanes(request->warp, sources[n], &number);
    }
    return lanes == 0 || store_lanes(request, request->mask, 0, request->bytes, number);
}

bool simt_request_stored(const struct simt_request *request) {
    if (request->warp->block->undefined == NULL) {
        return true;
    }
    switch ((enum simt_undefined_rule)request->instruction->undefined) {
    case SIMT_UNDEFINED_STORE:
        return store_elements(request);
    case SIMT_UNDEFINED_MATRIX_STORE:
        return store_matrices(request);
    case SIMT_UNDEFINED_TILE_STORE:
        return store_tile(request);
    default:
        return true;
    }
}
