/* Operations across the lanes of a warp: shfl, vote, match, redux, activemask, elect, bar.warp; and
 * those that have no effect here. */
#include <string.h>

#include "common/simt/core/code.h"
#include "common/simt/memory/primary.h"
#include "common/simt/memory/undefined.h"

static bool lane_of(uint32_t mask, uint32_t lane) {
    return (mask >> lane & 1) != 0;
}

static void write_predicate(struct simt_warp *warp, int32_t predicate, uint32_t bits) {
    if (predicate >= 0) {
        uint32_t *p = &warp->predicates[predicate];
        *p = (*p & ~warp->mask) | (bits & warp->mask);
    }
}

static void write_row32(struct simt_warp *warp, uint32_t offset,
                        const uint32_t values[SIMT_LANES]) {
    union simt_row *row = simt_row(warp, offset);
    for (uint32_t lane = 0; lane < SIMT_LANES; lane++) {
        row->u32[lane] = (values[lane] & warp->lanes[lane]) | (row->u32[lane] & ~warp->lanes[lane]);
    }
}

static void write_everywhere(struct simt_warp *warp, uint32_t offset, uint32_t value) {
    uint32_t values[SIMT_LANES];
    for (uint32_t lane = 0; lane < SIMT_LANES; lane++) {
        values[lane] = value;
    }
    write_row32(warp, offset, values);
}

/* detail[0] is taken: which source holds the mask. */
enum { MASK_SOURCE, MODE };

enum shuffle { SHUFFLE_UP, SHUFFLE_DOWN, SHUFFLE_BUTTERFLY, SHUFFLE_INDEX };

/* Lane a value comes from, as the PTX manual defines it; *inside: it lies in the segment. */
static uint32_t shuffle_source(enum shuffle mode, uint32_t lane, uint32_t b, uint32_t c,
                               bool *inside) {
    uint32_t clamp = c & 31;
    uint32_t segment = c >> 8 & 31;
    uint32_t most = (lane & segment) | (clamp & ~segment);
    uint32_t least = lane & segment;
    int32_t source = (int32_t)lane;
    b &= 31;
    switch (mode) {
    case SHUFFLE_UP:
        source -= (int32_t)b;
        *inside = source >= (int32_t)most;
        break;
    case SHUFFLE_DOWN:
        source += (int32_t)b;
        *inside = source <= (int32_t)most;
        break;
    case SHUFFLE_BUTTERFLY:
        source ^= (int32_t)b;
        *inside = source <= (int32_t)most;
        break;
    case SHUFFLE_INDEX:
        source = (int32_t)(least | (b & ~segment));
        *inside = source <= (int32_t)most;
        break;
    }
    return *inside ? (uint32_t)source : lane;
}

/* Lanes whose source is not among those that execute the shuffle together. */
static bool note_absent(struct simt_warp *warp, const struct simt_instruction *i,
                        const uint32_t sources[SIMT_LANES], uint32_t absent) {
    struct simt_undefined_origin origin = {
        .instruction = i,
        .space = PTX_REGISTER,
        .warp = warp->index,
        .lanes = absent,
        .bytes = 4,
        .mask = simt_row(warp, i->src[i->detail[MASK_SOURCE]])->u32[__builtin_ctz(warp->mask)]};
    for (uint32_t lane = 0; lane < SIMT_LANES; lane++) {
        origin.addresses[lane] = sources[lane];
    }
    return simt_undefined_set(warp, i->dst[0], absent,
                              simt_undefined_note(warp->block->undefined, &origin));
}

/* The result is undefined where the source lane's value is, or which lane it is. */
static void pass_undefined(struct simt_warp *warp, const struct simt_instruction *i,
                           const uint32_t sources[SIMT_LANES]) {
    uint32_t origin = 0;
    uint32_t a = simt_undefined_lanes(warp, i->src[0], &origin);
    uint32_t lanes = simt_undefined_lanes(warp, i->src[1], &origin) |
                     simt_undefined_lanes(warp, i->src[2], &origin);
    for (uint32_t lane = 0; lane < SIMT_LANES; lane++) {
        lanes |= (a >> sources[lane] & 1) << lane;
    }
    simt_undefined_clear(warp, i->dst[0], warp->mask);
    if ((lanes & warp->mask) != 0) {
        simt_undefined_set(warp, i->dst[0], lanes & warp->mask, origin);
    }
}

static void follow_shuffle(struct simt_warp *warp, const struct simt_instruction *i,
                           const uint32_t sources[SIMT_LANES]) {
    uint32_t absent = 0;
    if (i->dst_count == 0 || warp->block->undefined == NULL) {
        return;
    }
    if ((warp->attention & SIMT_ATTENTION_UNDEFINED) != 0) {
        pass_undefined(warp, i, sources);
    }
    for (uint32_t lane = 0; lane < SIMT_LANES; lane++) {
        absent |= (~warp->mask >> sources[lane] & 1) << lane;
    }
    absent &= warp->mask;
    if (absent != 0 && (warp->block->run->check & SIMT_CHECK_SHUFFLES) != 0) {
        note_absent(warp, i, sources, absent);
    }
}

static void run_shuffle(struct simt_warp *warp, const struct simt_instruction *i) {
    const union simt_row *a = simt_row(warp, i->src[0]);
    const union simt_row *b = simt_row(warp, i->src[1]);
    const union simt_row *c = simt_row(warp, i->src[2]);
    uint32_t values[SIMT_LANES], sources[SIMT_LANES];
    uint32_t inside_lanes = 0;
    for (uint32_t lane = 0; lane < SIMT_LANES; lane++) {
        bool inside = false;
        uint32_t source = shuffle_source((enum shuffle)i->detail[MODE], lane, b->u32[lane],
                                         c->u32[lane], &inside);
        values[lane] = lane_of(warp->mask, source) ? a->u32[source] : 0; /* as on an H100 */
        sources[lane] = source;
        inside_lanes |= inside ? (uint32_t)1 << lane : 0;
    }
    follow_shuffle(warp, i, sources);
    if (i->dst_count > 0) {
        write_row32(warp, i->dst[0], values);
    }
    write_predicate(warp, i->pred_dst[0], inside_lanes);
}

static uint32_t source_predicate(const struct simt_warp *warp, const struct simt_instruction *i) {
    uint32_t p = warp->predicates[i->src[0]];
    return (i->src_negated[0] ? ~p : p) & warp->mask;
}

enum vote { VOTE_ALL, VOTE_ANY, VOTE_UNIFORM, VOTE_BALLOT };

static void run_vote(struct simt_warp *warp, const struct simt_instruction *i) {
    uint32_t yes = source_predicate(warp, i);
    bool all = yes == warp->mask;
    switch ((enum vote)i->detail[MODE]) {
    case VOTE_ALL:
        write_predicate(warp, i->pred_dst[0], all ? UINT32_MAX : 0);
        break;
    case VOTE_ANY:
        write_predicate(warp, i->pred_dst[0], yes != 0 ? UINT32_MAX : 0);
        break;
    case VOTE_UNIFORM:
        write_predicate(warp, i->pred_dst[0], all || yes == 0 ? UINT32_MAX : 0);
        break;
    case VOTE_BALLOT:
        write_everywhere(warp, i->dst[0], yes);
        break;
    }
}

static void run_activemask(struct simt_warp *warp, const struct simt_instruction *i) {
    write_everywhere(warp, i->dst[0], warp->mask);
}

static void run_nothing(struct simt_warp *warp, const struct simt_instruction *i) {
    (void)warp;
    (void)i;
}

enum { MATCH_ALL = 1, MATCH_WIDE = 2 };

static uint64_t value_of(const union simt_row *row, uint32_t lane, bool wide) {
    return wide ? row->u64[lane] : row->u32[lane];
}

static void run_match(struct simt_warp *warp, const struct simt_instruction *i) {
    const union simt_row *a = simt_row(warp, i->src[0]);
    bool wide = (i->detail[MODE] & MATCH_WIDE) != 0;
    uint32_t same[SIMT_LANES] = {0};
    bool all = true;
    for (uint32_t lane = 0; lane < SIMT_LANES; lane++) {
        for (uint32_t other = 0; other < SIMT_LANES && lane_of(warp->mask, lane); other++) {
            bool equal = value_of(a, lane, wide) == value_of(a, other, wide);
            same[lane] |= lane_of(warp->mask, other) && equal ? (uint32_t)1 << other : 0;
        }
        all = all && (!lane_of(warp->mask, lane) || same[lane] == warp->mask);
    }
    if ((i->detail[MODE] & MATCH_ALL) == 0) {
        write_row32(warp, i->dst[0], same);
        return;
    }
    write_everywhere(warp, i->dst[0], all ? warp->mask : 0);
    write_predicate(warp, i->pred_dst[0], all ? UINT32_MAX : 0);
}

enum redux { REDUX_ADD, REDUX_MIN, REDUX_MAX, REDUX_AND, REDUX_OR, REDUX_XOR, REDUX_SIGNED = 8 };

static uint32_t combine(uint32_t mode, uint32_t x, uint32_t y) {
    bool less = (mode & REDUX_SIGNED) != 0 ? (int32_t)x < (int32_t)y : x < y;
    switch (mode & 7) {
    case REDUX_ADD:
        return x + y;
    case REDUX_MIN:
        return less ? x : y;
    case REDUX_MAX:
        return less ? y : x;
    case REDUX_AND:
        return x & y;
    case REDUX_OR:
        return x | y;
    default:
        return x ^ y;
    }
}

static void run_redux(struct simt_warp *warp, const struct simt_instruction *i) {
    const union simt_row *a = simt_row(warp, i->src[0]);
    uint32_t first = (uint32_t)__builtin_ctz(warp->mask);
    uint32_t result = a->u32[first];
    for (uint32_t lane = first + 1; lane < SIMT_LANES; lane++) {
        if (lane_of(warp->mask, lane)) {
            result = combine(i->detail[MODE], result, a->u32[lane]);
        }
    }
    write_everywhere(warp, i->dst[0], result);
}

static void run_elect(struct simt_warp *warp, const struct simt_instruction *i) {
    uint32_t leader = (uint32_t)__builtin_ctz(warp->mask);
    if (i->dst_count > 0) {
        write_everywhere(warp, i->dst[0], leader);
    }
    write_predicate(warp, i->pred_dst[0], (uint32_t)1 << leader);
}

/* Number of the first name that is a modifier, or -1. */
static int modifier_number(const struct ptx_instruction *in, const char *const *names) {
    for (int n = 0; names[n] != NULL; n++) {
        if (ptx_has_modifier(in, names[n])) {
            return n;
        }
    }
    return -1;
}

static bool decode_synchronised(const struct simt_decoding *decoding, struct simt_instruction *out,
                                simt_handler *run, int mode, uint32_t mask_source) {
    if (mode < 0 || !ptx_has_modifier(decoding->source, "sync") || out->src_count <= mask_source) {
        return false;
    }
    out->run = run;
    out->op_class = SIMT_CLASS_WARP;
    out->next = SIMT_NEXT_FLOW;
    out->flow = SIMT_FLOW_WARP_SYNC;
    out->detail[MASK_SOURCE] = mask_source;
    out->detail[MODE] = (uint32_t)mode;
    return true;
}

static int redux_mode(const struct ptx_instruction *in) {
    static const char *const names[] = {"add", "min", "max", "and", "or", "xor", NULL};
    int mode = modifier_number(in, names);
    enum ptx_type type = ptx_modifier_type(in, 0);
    if (type == PTX_F32) {
        return -1;
    }
    return mode < 0 || type != PTX_S32 ? mode : mode | REDUX_SIGNED;
}

/* Launches do not overlap, so there is nothing to wait for; but it is noted (primary.h). */
static void run_grid_wait(struct simt_warp *warp, const struct simt_instruction *i) {
    struct simt_block *block = warp->block;
    (void)i;
    if (block->shadow != NULL) {
        simt_shadow_wait(block->shadow, warp->index);
    }
    if (block->run->trace != NULL) {
        atomic_store(&block->run->trace->has_waited, true);
    }
}

static bool decode_without_effect(const struct ptx_instruction *in, struct simt_instruction *out) {
    bool sleeps = strcmp(in->base, "nanosleep") == 0;
    bool grids = strcmp(in->base, "griddepcontrol") == 0;
    bool waits = grids && ptx_has_modifier(in, "wait");
    bool triggers = grids && ptx_has_modifier(in, "launch_dependents");
    if (!sleeps && !waits && !triggers && strcmp(in->base, "pmevent") != 0) {
        return false;
    }
    out->run = waits ? run_grid_wait : run_nothing;
    out->op_class = SIMT_CLASS_OTHER;
    if (sleeps) {
        out->next = SIMT_NEXT_FLOW;
        out->flow = SIMT_FLOW_POLL;
    }
    return true;
}

bool simt_decode_warp(const struct simt_decoding *decoding, struct simt_instruction *out) {
    static const char *const shuffles[] = {"up", "down", "bfly", "idx", NULL};
    static const char *const votes[] = {"all", "any", "uni", "ballot", NULL};
    const struct ptx_instruction *in = decoding->source;
    if (strcmp(in->base, "shfl") == 0) {
        return decode_synchronised(decoding, out, run_shuffle, modifier_number(in, shuffles), 3);
    }
    if (strcmp(in->base, "vote") == 0) {
        return decode_synchronised(decoding, out, run_vote, modifier_number(in, votes), 1);
    }
    if (strcmp(in->base, "match") == 0) {
        int mode = (ptx_has_modifier(in, "all") ? MATCH_ALL : 0) |
                   (ptx_has_modifier(in, "b64") ? MATCH_WIDE : 0);
        return decode_synchronised(decoding, out, run_match, mode, 1);
    }
    if (strcmp(in->base, "redux") == 0) {
        return decode_synchronised(decoding, out, run_redux, redux_mode(in), 1);
    }
    if (strcmp(in->base, "elect") == 0) {
        return decode_synchronised(decoding, out, run_elect, 0, 0);
    }
    if (strcmp(in->base, "bar") == 0 && ptx_has_modifier(in, "warp")) {
        return decode_synchronised(decoding, out, run_nothing, 0, 0);
    }
    if (strcmp(in->base, "activemask") == 0) {
        out->run = run_activemask;
        out->op_class = SIMT_CLASS_WARP;
        return true;
    }
    return decode_without_effect(in, out);
}
