/*
 * Full checks: reads of unwritten bytes, and races. Lanes at one address are
 * checked once.
 */
#include "common/simt/memory/access/late.h"
#include "common/simt/memory/access/request.h"
#include "common/simt/memory/access/request_race.h"
#include "common/simt/memory/access/request_undefined.h"
#include "common/simt/memory/footprint.h"
#include "common/simt/memory/primary.h"
#include "common/simt/memory/race/history_words.h"

enum { MAX_BYTES = 32 };

/* Ranges of up to this many bytes are looked at or saved at once, also where lanes skip some of
 * them. */
#define RANGE_BYTES 4096

static bool is_shared(const struct simt_request *request) {
    return request->space == PTX_SHARED;
}

/* One lane for each different address: the lowest. */
static uint32_t leaders_of(const struct simt_request *request) {
    return request->pattern->shape == SIMT_SHAPE_SAME ? 1u << simt_first_lane(request->mask)
                                                      : simt_pattern_leaders(request->pattern);
}

static uint64_t lane_address(const struct simt_request *request, uint32_t lane) {
    return request->first + (uint64_t)(int64_t)request->relative[lane];
}

static bool written(const struct simt_request *request, uint64_t address, size_t bytes) {
    return is_shared(request) ? simt_shadow_written(request->home->shadow, address, bytes)
                              : simt_memory_written(request->home->run->memory, address, bytes);
}

static void mark(const struct simt_request *request, uint64_t address, size_t bytes) {
    if (is_shared(request)) {
        simt_shadow_mark(request->home->shadow, address, bytes);
    } else {
        simt_memory_mark_store(request->home->run->memory, address, bytes);
    }
}

/* No thread may disturb the async proxy. */
static bool check_flights(const struct simt_request *request) {
    const struct simt_shadow *shadow = request->home->shadow;
    bool writes = request->kind != SIMT_READ;
    if (shadow->flights == NULL) {
        return true;
    }
    for (uint32_t rest = simt_pattern_leaders(request->pattern); rest != 0; rest &= rest - 1) {
        uint32_t lane = simt_first_lane(rest);
        uint64_t address = lane_address(request, lane);
        const struct simt_flight *flight =
            simt_flights_find(shadow, address, address + request->bytes, writes);
        if (flight != NULL) {
            simt_race_with_flight(request, lane, flight);
            return false;
        }
    }
    return true;
}

/* No thread may access bytes that a copy still writes. */
static bool check_copies(const struct simt_request *request) {
    const struct simt_copies *copies = request->home->shadow->copies;
    if (!check_flights(request)) {
        return false;
    }
    if (copies == NULL) {
        return true;
    }
    for (uint32_t rest = leaders_of(request); rest != 0; rest &= rest - 1) {
        uint32_t lane = simt_first_lane(rest);
        uint64_t address = lane_address(request, lane);
        struct simt_copier copier;
        if (simt_copies_expects(copies, address, request->bytes) &&
            simt_copies_find(copies, address, request->bytes, &copier)) {
            simt_race_with_copy(request, lane, &copier);
            return false;
        }
    }
    return true;
}

/* Bytes of which one must be written. Structs are copied with their padding, as integers of up to
 * 8 bytes or vectors of such. */
static uint32_t group_bytes(const struct simt_request *request) {
    enum ptx_type type = ptx_modifier_type(request->instruction->source, 0);
    uint32_t most = type == PTX_F32 || type == PTX_F16X2 ? 4 : 8;
    return request->bytes < most ? request->bytes : most;
}

/* All lanes at the address of one of these. */
static uint32_t lanes_with(const struct simt_request *request, uint32_t leaders) {
    uint32_t lanes = 0;
    for (uint32_t rest = request->mask; rest != 0; rest &= rest - 1) {
        uint32_t lane = simt_first_lane(rest);
        for (uint32_t left = leaders; left != 0; left &= left - 1) {
            bool same = request->relative[lane] == request->relative[simt_first_lane(left)];
            lanes |= (uint32_t)same << lane;
        }
    }
    return lanes;
}

/* Groups of which a lane's access has no written byte. @return whether there are some */
static bool find_missing(const struct simt_request *request, uint32_t lane,
                         struct simt_groups *groups) {
    uint64_t address = lane_address(request, lane);
    bool missing = false;
    for (uint32_t at = 0; at < request->bytes; at += groups->bytes) {
        bool any = false;
        for (uint32_t byte = 0; byte < groups->bytes && !any; byte++) {
            any = written(request, address + at + byte, 1);
        }
        groups->missing[at / groups->bytes] |= any ? 0 : lanes_with(request, 1u << lane);
        missing = missing || !any;
    }
    return missing;
}

static struct simt_word_map *lanes_of(const struct simt_request *request) {
    struct simt_pattern *pattern = request->pattern;
    if ((pattern->words_state & SIMT_WORDS_SET) == 0) {
        simt_word_map_set(pattern->words, &(struct simt_footprint){.relative = pattern->relative,
                                                                   .mask = (uint32_t)pattern->key,
                                                                   .bytes = request->bytes,
                                                                   .phase = request->first % 4});
        pattern->words_state |= SIMT_WORDS_SET;
        pattern->words_state |= pattern->words->whole ? SIMT_WORDS_WHOLE : 0;
    }
    return pattern->words;
}

static const struct simt_word_map *words_of(const struct simt_request *request) {
    struct simt_word_map *words = lanes_of(request);
    simt_word_map_find(words);
    return words;
}

/* Words of shared memory here and there, as in a search or a sort: such a pattern seldom comes
 * again. The first time its words are looked at one by one, and a map is made when there is a
 * second. */
static bool is_new_scatter(const struct simt_request *request) {
    const struct simt_pattern *pattern = request->pattern;
    return is_shared(request) && pattern->shape == SIMT_SHAPE_OTHER && request->bytes == 4 &&
           (pattern->words_state & (SIMT_WORDS_SET | SIMT_WORDS_SEEN)) == 0 &&
           ((request->first | pattern->misalignment) & 3) == 0;
}

static uint64_t run_address(const struct simt_request *request, const struct simt_word_run *run) {
    return request->first + (uint64_t)(int64_t)run->offset;
}

static bool check_runs_written(const struct simt_request *request) {
    if (is_new_scatter(request)) {
        return byte_bits_all_words(request->home->shadow->written, request->first,
                                   request->relative);
    }
    const struct simt_word_map *words = words_of(request);
    bool all = words->run_count > 0;
    for (uint32_t n = 0; n < words->run_count && all; n++) {
        const struct simt_word_run *run = &words->runs[n];
        all = written(request, run_address(request, run), 4 * (size_t)run->words);
    }
    return all;
}

static SIMT_COLD bool check_lanes_written(const struct simt_request *request) {
    struct simt_groups groups = {.bytes = 0};
    uint32_t missing = 0;
    for (uint32_t rest = leaders_of(request); rest != 0; rest &= rest - 1) {
        uint32_t lane = simt_first_lane(rest);
        if (written(request, lane_address(request, lane), request->bytes)) {
            continue;
        }
        groups.bytes = groups.bytes > 0 ? groups.bytes : group_bytes(request);
        missing |= find_missing(request, lane, &groups) ? 1u << lane : 0;
    }
    return missing == 0 || simt_request_unwritten(request, lanes_with(request, missing), &groups);
}

static bool check_written(const struct simt_request *request) {
    const struct simt_pattern *pattern = request->pattern;
    size_t range = (size_t)((int64_t)pattern->high - pattern->low) + request->bytes;
    uint64_t low = request->first + (uint64_t)(int64_t)pattern->low;
    bool is_full = is_shared(request) && request->home->shadow->is_full;
    if (request->complete || is_full || (range <= RANGE_BYTES && written(request, low, range)) ||
        check_runs_written(request)) {
        return true;
    }
    if (is_shared(request) && !check_copies(request)) {
        return false;
    }
    bool checked = (request->warp->block->run->check & SIMT_CHECK_UNINITIALISED) != 0;
    return !checked || check_lanes_written(request);
}

void simt_request_save(const struct simt_request *request) {
    struct simt_undo *undo = request->warp->block->run->undo;
    if (undo == NULL || is_shared(request)) {
        return;
    }
    const struct simt_pattern *pattern = request->pattern;
    size_t range = (size_t)((int64_t)pattern->high - pattern->low) + request->bytes;
    if (range <= RANGE_BYTES) {
        simt_undo_save(undo, request->first + (uint64_t)(int64_t)pattern->low, range);
        return;
    }
    for (uint32_t rest = leaders_of(request); rest != 0; rest &= rest - 1) {
        simt_undo_save(undo, lane_address(request, simt_first_lane(rest)), request->bytes);
    }
}

static void mark_written(const struct simt_request *request) {
    const struct simt_pattern *pattern = request->pattern;
    if (request->complete || (is_shared(request) && request->home->shadow->is_full)) {
        return;
    }
    if (pattern->shape == SIMT_SHAPE_CONTIGUOUS) {
        mark(request, request->first, (size_t)SIMT_LANES * request->bytes);
        return;
    }
    if (is_new_scatter(request)) {
        byte_bits_set_words(request->home->shadow->written, request->first, request->relative);
        return;
    }
    const struct simt_word_map *words = words_of(request);
    for (uint32_t n = 0; n < words->run_count; n++) {
        mark(request, run_address(request, &words->runs[n]), 4 * (size_t)words->runs[n].words);
    }
    if (words->run_count > 0) {
        return;
    }
    for (uint32_t rest = leaders_of(request); rest != 0; rest &= rest - 1) {
        mark(request, lane_address(request, simt_first_lane(rest)), request->bytes);
    }
}

/* One history that a request is checked against. */
struct view {
    struct simt_history *history;
    struct simt_agent *agent;
    uint64_t offset; /* of the first lane */
};

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

/* Several lanes at one address are checked once, under the first one's number: the one that is told
 * must not be the other side of the race. */
static uint32_t other_lane_at(const struct simt_request *request, uint32_t lane,
                              const struct simt_race *race) {
    uint32_t told = lane;
    for (uint32_t rest = request->mask;
         rest != 0 && race->lanes && race->known && told == race->lane; rest &= rest - 1) {
        uint32_t next = simt_first_lane(rest);
        told = request->relative[next] == request->relative[lane] && next != lane ? next : told;
    }
    return told;
}

/* Lane by lane, one for each address. */
static bool check_lanes(const struct simt_request *request, const struct view *view,
                        const struct simt_word_map *words, const struct stored *stored) {
    struct simt_race race;
    bool several = (request->mask & (request->mask - 1)) != 0;
    bool alike = request->pattern->shape == SIMT_SHAPE_SAME && several;
    const struct simt_block *block = request->warp->block;
    bool among_blocks = view->agent == &block->agent || view->agent == &block->peer;
    bool lenient = block->run->harmless != NULL && !among_blocks;
    for (uint32_t rest = leaders_of(request); rest != 0; rest &= rest - 1) {
        uint32_t lane = simt_first_lane(rest);
        int64_t relative = request->relative[lane];
        if (lenient && simt_harmless_covers(request, lane)) {
            continue;
        }
        bool crowded = alike || (words->crowded >> lane & 1) != 0;
        const struct simt_touch touch = {
            .offset = view->offset + (uint64_t)relative,
            .bytes = request->bytes,
            .kind = request->kind,
            .lane = crowded ? SIMT_SEVERAL_LANES : lane,
            .together = request->addresses != NULL,
            .silent = stored->known &&
                      memcmp(request->host + relative, stored->bytes[lane], request->bytes) == 0};
        if (!simt_history_touch(view->history, view->agent, &touch, &race) ||
            (lenient && simt_harmless_note(request, lane, &race))) {
            continue;
        }
        if (among_blocks) {
            simt_race_between_blocks(request, lane, &race);
        } else {
            simt_race_inside_block(request, other_lane_at(request, lane, &race), &race);
        }
        return false;
    }
    return true;
}

static SIMT_COLD bool look_closer(const struct simt_request *request, const struct view *view,
                                  const struct simt_word_map *words) {
    struct stored stored;
    read_stored(request, &stored);
    return check_lanes(request, view, words, &stored);
}

/* A store of a word by each lane, to different words that do not lie in a few runs. */
static bool is_scattered(const struct simt_request *request) {
    enum { FEW_RUNS = 4 };
    const struct simt_pattern *pattern = request->pattern;
    bool known = (pattern->words_state & SIMT_WORDS_SET) != 0 && pattern->words->known;
    return is_shared(request) && request->kind == SIMT_WRITE && request->bytes == 4 &&
           ((request->first | pattern->misalignment) & 3) == 0 &&
           pattern->shape == SIMT_SHAPE_OTHER && (!known || pattern->words->run_count > FEW_RUNS) &&
           leaders_of(request) == request->mask;
}

static inline bool check_view(const struct simt_request *request, const struct view *view) {
    struct simt_pattern *pattern = request->pattern;
    if (request->kind == SIMT_READ && is_new_scatter(request) &&
        simt_history_put_off_words(view->history, view->agent, view->offset, request->relative,
                                   request->mask)) {
        return true;
    }
    if (is_scattered(request) && simt_history_try_words(view->history, view->agent, view->offset,
                                                        request->relative, request->mask)) {
        return true;
    }
    struct simt_word_map *words = lanes_of(request);
    if (request->kind == SIMT_READ && (pattern->words_state & SIMT_WORDS_WHOLE) != 0) {
        pattern->words_state |= SIMT_WORDS_PUT_OFF;
        if (simt_history_put_off(view->history, view->agent, view->offset, words)) {
            return true;
        }
    }
    if (SIMT_LIKELY(
            simt_history_try(view->history, view->agent, view->offset, words, request->kind))) {
        return true;
    }
    return look_closer(request, view, words_of(request));
}

/* Lanes of one store at one address must agree. */
static SIMT_COLD bool compare_stored(const struct simt_request *request, uint32_t leaders) {
    struct stored stored;
    read_stored(request, &stored);
    for (uint32_t rest = request->mask & ~leaders; rest != 0 && stored.known; rest &= rest - 1) {
        uint32_t lane = simt_first_lane(rest);
        uint32_t other = simt_first_lane(leaders);
        for (uint32_t left = leaders; request->relative[other] != request->relative[lane];
             left &= left - 1) {
            other = simt_first_lane(left);
        }
        if (memcmp(stored.bytes[lane], stored.bytes[other], request->bytes) != 0) {
            simt_race_of_values(request, lane, other);
            return false;
        }
    }
    return true;
}

static inline bool check_lanes_agree(const struct simt_request *request) {
    if (request->kind != SIMT_WRITE || request->pattern->shape == SIMT_SHAPE_CONTIGUOUS) {
        return true;
    }
    uint32_t leaders = leaders_of(request);
    return leaders == request->mask || compare_stored(request, leaders);
}

/* Shared memory that other blocks of the cluster reach. */
static bool check_cluster(const struct simt_request *request) {
    struct simt_block *block = request->warp->block;
    const struct simt_cluster *cluster = block->cluster;
    const struct view peers = {cluster->history, &block->peer,
                               request->home->rank * cluster->stride + request->first};
    return check_view(request, &peers);
}

static bool check_shared(const struct simt_request *request) {
    const struct simt_block *block = request->warp->block;
    struct simt_shadow *shadow = block->shadow;
    const struct view own = {shadow->history, &shadow->agents[request->warp->index],
                             request->first};
    bool has_peers = block->cluster != NULL && block->cluster->history != NULL;
    return (simt_request_is_remote(request) || check_view(request, &own)) &&
           (!has_peers || check_cluster(request)) && check_lanes_agree(request);
}

/* All lanes read one word, such as an entry of a table. */
static bool is_read_of_word(const struct simt_request *request) {
    return request->kind == SIMT_READ && request->pattern->shape == SIMT_SHAPE_SAME &&
           request->bytes == 4 && request->first % 4 == 0;
}

/* Of these most change nothing: others have read the word before. */
static bool has_read(const struct view *view) {
    return !simt_history_puts_off(view->history) &&
           simt_history_has_read(view->history, view->agent, view->offset);
}

static bool check_races(const struct simt_request *request) {
    struct simt_block *block = request->warp->block;
    struct simt_shadow *shadow = block->shadow;
    uint32_t warp = request->warp->index;
    if (is_shared(request)) {
        return check_shared(request);
    }
    const struct simt_watch *watch = shadow->watch;
    if (watch == NULL || !simt_history_covers(watch->blocks, request->first - watch->begin)) {
        return true;
    }
    const struct view blocks = {watch->blocks, &block->agent, request->first - watch->begin};
    const struct view warps = {watch->warps, &shadow->global[warp], blocks.offset};
    bool of_word = is_read_of_word(request);
    bool known_of_blocks = of_word && has_read(&blocks);
    bool known_of_warps = of_word && has_read(&warps);
    if (!known_of_blocks) {
        simt_history_prefetch(blocks.history, blocks.offset, words_of(request));
    }
    if (!known_of_warps) {
        simt_history_prefetch(warps.history, warps.offset, words_of(request));
    }
    return (known_of_blocks || check_view(request, &blocks)) &&
           (known_of_warps || check_view(request, &warps)) && check_lanes_agree(request);
}

/* Bytes that a copy still writes count as unwritten: check_written() finds reads. */
static bool check_content(const struct simt_request *request) {
    if (request->kind == SIMT_WRITE || request->blind) {
        return !is_shared(request) || check_copies(request);
    }
    return check_written(request);
}

/* Where a lane's bytes lie in simt_block.local, in words. */
static size_t local_word(const struct simt_request *request, uint32_t lane) {
    const unsigned char *host = request->host + request->relative[lane];
    return (size_t)(host - request->warp->block->local) / 4;
}

/* As in find_missing(): of each group one word. */
static bool find_missing_local(const struct simt_request *request, uint32_t lane,
                               struct simt_groups *groups) {
    const uint8_t *words = request->warp->block->shadow->local + local_word(request, lane);
    uint32_t group = (groups->bytes + 3) / 4;
    bool missing = false;
    for (uint32_t word = 0; word < (request->bytes + 3) / 4; word += group) {
        bool any = words[word] != 0 || (group > 1 && words[word + 1] != 0);
        groups->missing[4 * word / groups->bytes] |= any ? 0 : 1u << lane;
        missing = missing || !any;
    }
    return missing;
}

static bool check_local(const struct simt_request *request) {
    struct simt_block *block = request->warp->block;
    struct simt_groups groups = {.bytes = group_bytes(request)};
    uint32_t missing = 0;
    if (request->kind == SIMT_READ && (block->run->check & SIMT_CHECK_UNINITIALISED) == 0) {
        return true;
    }
    block->writes += request->kind != SIMT_READ;
    for (uint32_t rest = request->mask; rest != 0; rest &= rest - 1) {
        uint32_t lane = simt_first_lane(rest);
        if (request->kind != SIMT_READ) {
            memset(block->shadow->local + local_word(request, lane), 1, (request->bytes + 3) / 4);
        } else if (find_missing_local(request, lane, &groups)) {
            missing |= 1u << lane;
        }
    }
    if (request->kind != SIMT_READ && (request->warp->attention & SIMT_ATTENTION_UNDEFINED) != 0) {
        return simt_request_stored(request);
    }
    return missing == 0 || simt_request_unwritten(request, missing, &groups);
}

static struct simt_generic_write *generic_at(const struct simt_request *request, uint32_t lane) {
    return &request->home->shadow->generic[lane_address(request, lane) / SIMT_GENERIC_BYTES];
}

/* Who writes, for the async proxy that may read it. */
static void note_generic(const struct simt_request *request) {
    const struct simt_warp *warp = request->warp;
    for (uint32_t rest = simt_pattern_leaders(request->pattern); rest != 0; rest &= rest - 1) {
        uint32_t lane = simt_first_lane(rest);
        *generic_at(request, lane) =
            (struct simt_generic_write){.instruction = request->async ? NULL : request->instruction,
                                        .fences = request->home->shadow->proxy_fences,
                                        .thread = warp->index * SIMT_LANES + lane};
    }
}

/* What a thread has written is there for the async proxy behind a proxy fence only. */
static bool check_proxy(const struct simt_request *request) {
    if (!request->async || request->kind != SIMT_READ) {
        return true;
    }
    for (uint32_t rest = simt_pattern_leaders(request->pattern); rest != 0; rest &= rest - 1) {
        uint32_t lane = simt_first_lane(rest);
        const struct simt_generic_write *write = generic_at(request, lane);
        if (write->instruction != NULL && write->fences == request->home->shadow->proxy_fences) {
            simt_race_with_proxy(request, lane, write);
            return false;
        }
    }
    return true;
}

/* Stores that other devices may see later than those behind them. */
static void note_late(const struct simt_request *request) {
    const struct simt_run *run = request->warp->block->run;
    bool relaxed = request->kind == SIMT_WRITE && request->strong &&
                   (request->instruction->detail[0] & SIMT_SYSTEM) != 0;
    const struct simt_extent devices = simt_memory_window(run->memory);
    if (run->yield == NULL || run->yield->late == NULL || !relaxed || is_shared(request) ||
        request->first < devices.begin || request->first >= devices.end) {
        return;
    }
    bool may_tear = simt_field(request->instruction, SIMT_COUNT_SHIFT) > 1;
    for (uint32_t rest = request->mask; rest != 0; rest &= rest - 1) {
        simt_late_note(run->yield->late, request->host + request->relative[simt_first_lane(rest)],
                       request->bytes, may_tear);
    }
}

/* What follows from a store or an atomic operation that is right. @return false after a fault */
static bool note_write(const struct simt_request *request) {
    request->warp->block->writes++;
    simt_request_save(request);
    note_late(request);
    mark_written(request);
    if (is_shared(request) && request->home->shadow->generic != NULL) {
        note_generic(request);
    }
    return (request->warp->attention & SIMT_ATTENTION_UNDEFINED) == 0 ||
           simt_request_stored(request);
}

/* Words that may be flags between devices. */
static void note_flags(const struct simt_request *request) {
    const struct simt_yield *yield = request->warp->block->run->yield;
    uint32_t flags = request->instruction->detail[0];
    if (yield == NULL || (flags & SIMT_SYSTEM) == 0) {
        return;
    }
    unsigned how = request->kind != SIMT_WRITE ? SIMT_ORDER_LOADS : 0;
    how |= request->kind != SIMT_READ ? SIMT_ORDER_STORES : 0;
    how |= (flags & SIMT_RELEASES_DEVICE) != 0 ? SIMT_ORDER_RELEASES : 0;
    bool acquires = (flags & SIMT_ACQUIRES) != 0 && (flags & (uint32_t)SIMT_LOOKS) == 0;
    how |= acquires ? SIMT_ORDER_ACQUIRES : 0;
    for (uint32_t rest = leaders_of(request); rest != 0; rest &= rest - 1) {
        yield->order(yield->context, how, lane_address(request, simt_first_lane(rest)),
                     request->bytes);
    }
}

/* For launches of other streams. Atomic and volatile accesses are meant to meet. */
static SIMT_COLD void note_footprint(const struct simt_request *request) {
    struct simt_footprint *footprint = *request->warp->block->run->footprint;
    bool writes = request->kind == SIMT_WRITE;
    if (request->strong || request->kind == SIMT_ATOMIC) {
        note_flags(request);
        return;
    }
    if (request->pattern->shape == SIMT_SHAPE_CONTIGUOUS) {
        simt_footprint_note(footprint, request->first, (size_t)SIMT_LANES * request->bytes, writes);
        return;
    }
    for (uint32_t rest = leaders_of(request); rest != 0; rest &= rest - 1) {
        simt_footprint_note(footprint, lane_address(request, simt_first_lane(rest)), request->bytes,
                            writes);
    }
}

/* For a secondary launch: atomic accesses, too, which meet plain ones. */
static SIMT_COLD void note_trace(const struct simt_request *request) {
    const struct simt_trace *trace = request->warp->block->run->trace;
    bool atomic = request->kind == SIMT_ATOMIC;
    struct simt_footprint *footprint = atomic ? trace->atomics : trace->plain;
    if (request->strong && !atomic) {
        return;
    }
    for (uint32_t rest = leaders_of(request); rest != 0; rest &= rest - 1) {
        uint64_t address = lane_address(request, simt_first_lane(rest));
        if (request->kind == SIMT_READ) {
            simt_footprint_note(footprint, address, request->bytes, false);
        } else {
            simt_footprint_note_site(footprint, address, request->bytes,
                                     request->instruction->site);
        }
    }
}

static void fail_early(const struct simt_request *request, uint32_t lane,
                       const struct simt_early *early) {
    static const char *const what[] = {
        [SIMT_READ] = "reads", [SIMT_WRITE] = "writes", [SIMT_ATOMIC] = "updates"};
    const struct simt_fault_place *place = &early->place;
    struct simt_fault *fault = &request->warp->block->fault;
    uint64_t address = lane_address(request, lane);
    const struct simt_run *run = request->warp->block->run;
    char where[400], line[300] = "";
    simt_memory_describe(run->memory, address, where, sizeof where);
    if (place->line > 0) {
        snprintf(line, sizeof line, " at %s:%u", place->file, place->line);
    }
    simt_fail(request->warp, request->instruction, lane, SIMT_FAULT_EARLY, address,
              "%s %u bytes at 0x%llx, %s, that kernel %.200s before it %s%s, and %s",
              what[request->kind], request->bytes, (unsigned long long)address, where,
              early->primary->name, early->wrote ? "writes" : "reads", line,
              early->primary == run->primaries
                  ? "no thread has waited for that (griddepcontrol.wait): launched with "
                    "programmatic stream serialization, this kernel may begin before that one ends"
                  : "a kernel between the two has not waited for that (griddepcontrol.wait), so "
                    "that waiting for the one between does not help");
    fault->other = *place;
}

/* Launches before this one may still run: until it has waited the one in front of it, and always
 * those before for which that one did not wait. */
static SIMT_COLD bool check_primaries(const struct simt_request *request) {
    const struct simt_block *block = request->warp->block;
    bool waited =
        request->async ? !request->early : (block->shadow->waited >> request->warp->index & 1) != 0;
    const struct simt_primary *open = waited ? block->run->primaries->next : block->run->primaries;
    struct simt_early early;
    if (request->strong && request->kind != SIMT_ATOMIC) {
        return true;
    }
    for (uint32_t rest = leaders_of(request); rest != 0; rest &= rest - 1) {
        uint32_t lane = simt_first_lane(rest);
        if (simt_primary_meets(open, lane_address(request, lane), request->bytes,
                               request->kind != SIMT_READ, request->kind == SIMT_ATOMIC, &early)) {
            fail_early(request, lane, &early);
            return false;
        }
    }
    return true;
}

/* Most reads: all of shared memory is written, and nothing since the last barrier. */
static inline bool is_quiet_read(const struct simt_request *request) {
    return is_shared(request) && request->kind == SIMT_READ && !request->strong &&
           !request->async && !simt_request_is_remote(request) &&
           simt_shadow_reads(request->warp, request->pattern, request->first, request->bytes);
}

/* Values of races are followed to their use. */
static SIMT_COLD bool follow_races(const struct simt_request *request) {
    struct simt_groups groups = {.bytes = group_bytes(request), .racing = true};
    uint32_t lanes = simt_harmless_reads(request);
    for (uint32_t n = 0; n < SIMT_MOST_GROUPS; n++) {
        groups.missing[n] = lanes;
    }
    return lanes == 0 || simt_request_unwritten(request, lanes, &groups);
}

bool simt_request_check(const struct simt_request *request) {
    const struct simt_block *block = request->warp->block;
    bool again = block->run->witness != NULL;
    if (block->shadow == NULL) {
        return true;
    }
    if (block->run->harmless != NULL && (request->space == PTX_GLOBAL || is_shared(request)) &&
        !follow_races(request)) {
        return false;
    }
    if (is_quiet_read(request)) {
        return true;
    }
    if (request->space == PTX_LOCAL) {
        return check_local(request);
    }
    if (!is_shared(request) && request->space != PTX_GLOBAL) {
        return true;
    }
    if (!is_shared(request) && block->run->footprint != NULL && *block->run->footprint != NULL) {
        note_footprint(request);
    }
    if (!is_shared(request) && block->run->trace != NULL) {
        note_trace(request);
    }
    if (!is_shared(request) && block->run->primaries != NULL && !check_primaries(request)) {
        return false;
    }
    if (again) {
        simt_request_expect(request);
    }
    /* Where other blocks write, races first: that nothing has written some bytes may be a matter of
     * timing. */
    bool alone = is_shared(request) && !simt_request_is_remote(request);
    if (alone && !check_content(request)) {
        return false;
    }
    if (!request->strong && (block->run->check & SIMT_CHECK_RACES) != 0 && !check_races(request)) {
        return false;
    }
    if (!alone && !check_content(request)) {
        return false;
    }
    if (again && !request->strong) {
        simt_request_witness(request);
    }
    if (is_shared(request) && request->home->shadow->generic != NULL && !check_proxy(request)) {
        return false;
    }
    bool fine = request->kind == SIMT_READ || note_write(request);
    request->pattern->words_state |= SIMT_WORDS_SEEN;
    return fine;
}
