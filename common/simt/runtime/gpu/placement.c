#include "common/simt/runtime/gpu/placement.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum {
    STATIONS = SIMT_STATION_COUNT,
    ROUNDS = 100,      /* of the iteration for a queueing network: far more than it needs */
    MOST_PERIODS = 200 /* of a lane; what comes later is part of the last */
};
static const double SETTLED = 1e-7; /* relative change of a round at which the iteration ends */
static const double SAME = 1e-9;    /* shares of a block that count as none */
/* Blocks that the other multiprocessors get between two rounds of those that are served ahead, and
 * between the first two. Recorded in calibration/placement_h100.jsonl. */
enum { BETWEEN_ROUNDS = 92, BETWEEN_FIRST_ROUNDS = 72 };

/* Blocks of one class that began at the same time. */
struct resident {
    uint32_t of; /* class */
    uint32_t blocks;
    double left; /* share of their work */
    double rate; /* share of it that is done in a cycle */
};

/* Neighbouring multiprocessors with the same history. */
struct group {
    struct simt_lane lane;
    struct resident residents[SIMT_MOST_RESIDENT];
    uint32_t resident_count, used; /* used: slots */
    bool ahead;                    /* gets blocks ahead of its turn */
    double since, next;            /* cycles: state of `left`; the first end of a block */
    struct simt_lane flow;         /* what `lane` gains in a cycle: work, stay and wait */
    bool changed;                  /* rates are those of earlier residents */
};

/* Whose turn it is while the GPU fills for the first time. */
struct turn {
    uint32_t rounds; /* that are left to those who are served ahead; 0: all take part alike */
    bool ahead;      /* they have this turn */
    uint64_t blocks; /* of this turn, still to be placed */
    uint64_t others; /* blocks of the others' next turn */
};

struct state {
    const struct simt_blocks *blocks;
    bool periods;
    struct group **groups; /* (count), in the order of multiprocessors */
    size_t count, room;
    size_t span;   /* the next block is of this span */
    uint64_t left; /* blocks of that span */
    struct turn turn;
};

/* A queueing network: residents of one class are as many customers, whenever they began. */
struct network {
    uint32_t kinds;
    int stations[STATIONS], used; /* (used): those that anybody needs */
    const struct simt_need *needs[SIMT_MOST_RESIDENT];
    double customers[SIMT_MOST_RESIDENT];
    double stay[SIMT_MOST_RESIDENT][STATIONS]; /* cycles of a round at each unit */
    double round[SIMT_MOST_RESIDENT];          /* cycles */
};

/* Adds blocks. @return the number of their kind */
static uint32_t add_kind(struct network *n, const struct simt_need *need, uint32_t blocks) {
    uint32_t kind = 0;
    while (kind < n->kinds && n->needs[kind] != need) {
        kind++;
    }
    if (kind == n->kinds) {
        n->needs[kind] = need;
        n->customers[kind] = 0;
        n->kinds++;
    }
    n->customers[kind] += blocks * need->warps / need->together;
    return kind;
}

static void find_stations(struct network *n) {
    n->used = 0;
    for (int s = 0; s < STATIONS; s++) {
        bool needed = false;
        for (uint32_t k = 0; k < n->kinds; k++) {
            n->stay[k][s] = 0;
            needed = needed || n->needs[k]->demand[s] > 0;
        }
        if (needed) {
            n->stations[n->used++] = s;
        }
    }
}

/* One step of the iteration. @return the largest relative change of a round */
static double step(struct network *n, double queue[][STATIONS], double total[STATIONS]) {
    double change = 0;
    for (uint32_t k = 0; k < n->kinds; k++) {
        const struct simt_need *need = n->needs[k];
        double round = 0;
        for (int w = 0; w < SIMT_LATENCY_COUNT; w++) {
            round += need->wait[w];
        }
        for (int i = 0; i < n->used; i++) {
            int s = n->stations[i];
            double others = total[s] - queue[k][s] / n->customers[k];
            n->stay[k][s] = need->demand[s] * need->together * (1 + (others > 0 ? others : 0));
            round += n->stay[k][s];
        }
        change = fmax(change, fabs(round - n->round[k]) / round);
        n->round[k] = round;
    }
    memset(total, 0, STATIONS * sizeof *total);
    for (uint32_t k = 0; k < n->kinds; k++) {
        for (int i = 0; i < n->used; i++) {
            int s = n->stations[i];
            queue[k][s] = n->customers[k] * n->stay[k][s] / n->round[k];
            total[s] += queue[k][s];
        }
    }
    return change;
}

/* Mean value analysis, Schweitzer's approximation. */
static void solve(struct network *n) {
    double queue[SIMT_MOST_RESIDENT][STATIONS];
    double total[STATIONS] = {0};
    find_stations(n);
    for (uint32_t k = 0; k < n->kinds; k++) {
        memset(queue[k], 0, sizeof queue[k]);
        n->round[k] = 0;
    }
    for (int i = 0; i < ROUNDS && step(n, queue, total) > SETTLED; i++) {
    }
}

double simt_batch_cycles(const struct simt_need *need, uint32_t blocks) {
    struct network n = {.kinds = 0};
    add_kind(&n, need, blocks);
    solve(&n);
    return n.round[0];
}

/* Rates of the residents, and what they add to the lane in a cycle. */
static void set_rates(const struct state *state, struct group *g) {
    struct network n;
    uint32_t kinds[SIMT_MOST_RESIDENT];
    n.kinds = 0;
    for (uint32_t r = 0; r < g->resident_count; r++) {
        kinds[r] = add_kind(&n, &state->blocks->needs[g->residents[r].of], g->residents[r].blocks);
    }
    solve(&n);
    for (uint32_t r = 0; r < g->resident_count; r++) {
        g->residents[r].rate = 1 / n.round[kinds[r]];
    }
    g->flow = (struct simt_lane){.processors = 0};
    for (uint32_t k = 0; k < n.kinds; k++) {
        double rounds = n.customers[k] / n.round[k];
        for (int s = 0; s < STATIONS; s++) {
            g->flow.work[s] += rounds * n.needs[k]->together * n.needs[k]->demand[s];
            g->flow.stay[s] += rounds * n.stay[k][s];
        }
        for (int w = 0; w < SIMT_LATENCY_COUNT; w++) {
            g->flow.wait[w] += rounds * n.needs[k]->wait[w];
        }
    }
}

/* Works out when the first of a group's blocks ends. */
static void look_ahead(const struct state *state, struct group *g) {
    g->next = INFINITY;
    if (g->changed && g->resident_count > 0) {
        set_rates(state, g);
    }
    g->changed = false;
    for (uint32_t r = 0; r < g->resident_count; r++) {
        g->next = fmin(g->next, g->since + g->residents[r].left / g->residents[r].rate);
    }
}

static void note_period(struct simt_lane *lane, double end, uint32_t blocks) {
    size_t n = lane->period_count;
    if (n == MOST_PERIODS) {
        lane->periods[n - 1].end = end;
    } else {
        lane->periods[lane->period_count++] = (struct simt_period){end, blocks};
    }
}

/* Lets the blocks of a group run until `now`; those that have ended then leave. */
static void advance(const struct state *state, struct group *g, double now) {
    double cycles = now - g->since;
    uint32_t kept = 0;
    for (int s = 0; s < STATIONS; s++) {
        g->lane.work[s] += cycles * g->flow.work[s];
        g->lane.stay[s] += cycles * g->flow.stay[s];
    }
    for (int w = 0; w < SIMT_LATENCY_COUNT; w++) {
        g->lane.wait[w] += cycles * g->flow.wait[w];
    }
    g->lane.end = now;
    if (state->periods) {
        note_period(&g->lane, now, g->used);
    }
    for (uint32_t r = 0; r < g->resident_count; r++) {
        struct resident resident = g->residents[r];
        resident.left -= cycles * resident.rate;
        if (resident.left > SAME) {
            g->residents[kept++] = resident;
        } else {
            g->used -= resident.blocks;
        }
    }
    g->resident_count = kept;
    g->since = now;
    g->changed = true;
}

/* A group of `processors` multiprocessors like `from`, or new ones. @return NULL: out of memory */
static struct group *make_group(const struct state *state, const struct group *from,
                                uint32_t processors) {
    struct group *g = malloc(sizeof *g);
    struct simt_period *periods = state->periods ? malloc(MOST_PERIODS * sizeof *periods) : NULL;
    if (g == NULL || (state->periods && periods == NULL)) {
        free(g);
        free(periods);
        return NULL;
    }
    if (from != NULL) {
        *g = *from;
        if (periods != NULL) {
            memcpy(periods, from->lane.periods, from->lane.period_count * sizeof *periods);
        }
    } else {
        *g = (struct group){.changed = true};
    }
    g->lane.periods = periods;
    g->lane.processors = processors;
    return g;
}

static bool insert_group(struct state *state, size_t at, struct group *g) {
    if (g != NULL && state->count == state->room) {
        size_t room = state->room > 0 ? 2 * state->room : 4;
        struct group **larger = realloc(state->groups, room * sizeof *larger);
        if (larger == NULL) {
            free(g->lane.periods);
            free(g);
            return false;
        }
        state->groups = larger;
        state->room = room;
    }
    if (g == NULL) {
        return false;
    }
    memmove(state->groups + at + 1, state->groups + at,
            (state->count - at) * sizeof *state->groups);
    state->groups[at] = g;
    state->count++;
    return true;
}

/* The first `processors` of group `at` become a group of their own, in its place. */
static bool split(struct state *state, size_t at, uint32_t processors) {
    struct group *rest = state->groups[at];
    if (!insert_group(state, at, make_group(state, rest, processors))) {
        return false;
    }
    rest->lane.processors -= processors;
    return true;
}

/* Each multiprocessor of the group gets `blocks` blocks of a class. */
static void add_blocks(struct group *g, uint32_t of, uint32_t blocks) {
    struct resident *last = g->resident_count > 0 ? &g->residents[g->resident_count - 1] : NULL;
    g->used += blocks;
    g->lane.blocks += blocks;
    g->changed = true;
    if (last != NULL && last->of == of && last->left == 1) {
        last->blocks += blocks;
    } else {
        g->residents[g->resident_count++] =
            (struct resident){.of = of, .blocks = blocks, .left = 1};
    }
}

static bool has_turn(const struct state *state, const struct group *g) {
    return state->turn.rounds == 0 || g->ahead == state->turn.ahead;
}

/* The group with most free slots, the first of those whose turn it is, and how many more they are
 * than any other group's. @return false: there is no free slot */
static bool find_free(const struct state *state, size_t *at, uint32_t *more) {
    uint32_t most = 0, second = 0;
    for (size_t n = 0; n < state->count; n++) {
        if (!has_turn(state, state->groups[n])) {
            continue;
        }
        uint32_t vacant = state->blocks->slots - state->groups[n]->used;
        if (vacant > most) {
            second = most;
            most = vacant;
            *at = n;
        } else if (vacant > second) {
            second = vacant;
        }
    }
    *more = most - second;
    return most > 0;
}

/* Those who are served ahead get the rounds in which everybody gets a block, only earlier; what the
 * grid has beyond whole rounds comes in turn. */
static void begin_turns(struct state *state) {
    const struct simt_blocks *blocks = state->blocks;
    uint64_t all = 0;
    for (size_t n = 0; n < blocks->span_count; n++) {
        all += blocks->spans[n].blocks;
    }
    uint64_t rounds = all / blocks->processors;
    state->turn = (struct turn){.rounds = rounds < blocks->slots ? (uint32_t)rounds : blocks->slots,
                                .ahead = true,
                                .blocks = blocks->ahead,
                                .others = BETWEEN_FIRST_ROUNDS};
}

/* Counts blocks that were placed; the last ones of a turn end it. */
static void pass_turn(struct state *state, uint64_t placed) {
    struct turn *turn = &state->turn;
    if (turn->rounds == 0) {
        return;
    }
    turn->blocks -= placed;
    if (turn->blocks == 0 && turn->ahead) {
        turn->rounds--;
        turn->ahead = false;
        turn->blocks = turn->others;
        turn->others = BETWEEN_ROUNDS;
    } else if (turn->blocks == 0) {
        turn->ahead = true;
        turn->blocks = state->blocks->ahead;
    }
}

/* Blocks that may be placed together: alike, and of one turn. */
static uint64_t blocks_at_once(const struct state *state) {
    bool limited = state->turn.rounds > 0 && state->turn.blocks < state->left;
    return limited ? state->turn.blocks : state->left;
}

/* Fills free slots with the next blocks. @return false: out of memory */
static bool fill(struct state *state) {
    size_t at = 0;
    uint32_t more;
    while (state->span < state->blocks->span_count && find_free(state, &at, &more)) {
        struct group *g = state->groups[at];
        uint32_t processors = g->lane.processors;
        uint64_t most = blocks_at_once(state);
        if (most < processors) {
            if (!split(state, at, (uint32_t)most)) {
                return false;
            }
            g = state->groups[at];
            processors = (uint32_t)most;
        }
        uint64_t rounds = most / processors;
        uint32_t blocks = more < 1 ? 1 : rounds < more ? (uint32_t)rounds : more;
        add_blocks(g, state->blocks->spans[state->span].of, blocks);
        state->left -= (uint64_t)blocks * processors;
        if (state->left == 0 && ++state->span < state->blocks->span_count) {
            state->left = state->blocks->spans[state->span].blocks;
        }
        pass_turn(state, (uint64_t)blocks * processors);
    }
    return true;
}

static double next_end(const struct state *state) {
    double next = INFINITY;
    for (size_t n = 0; n < state->count; n++) {
        next = fmin(next, state->groups[n]->next);
    }
    return next;
}

/* All multiprocessors, those that are served ahead of their turn in front. */
static bool begin(struct state *state) {
    uint32_t ahead = state->blocks->ahead;
    if (!insert_group(state, 0, make_group(state, NULL, state->blocks->processors - ahead))) {
        return false;
    }
    if (ahead > 0) {
        if (!insert_group(state, 0, make_group(state, NULL, ahead))) {
            return false;
        }
        state->groups[0]->ahead = true;
        begin_turns(state);
    }
    return true;
}

static bool run(struct state *state) {
    if (!begin(state)) {
        return false;
    }
    for (;;) {
        if (!fill(state)) {
            return false;
        }
        state->turn.rounds = 0;
        for (size_t n = 0; n < state->count; n++) {
            if (state->groups[n]->changed) {
                look_ahead(state, state->groups[n]);
            }
        }
        double now = next_end(state);
        if (isinf(now)) {
            return true;
        }
        for (size_t n = 0; n < state->count; n++) {
            if (state->groups[n]->next <= now * (1 + SAME)) {
                advance(state, state->groups[n], now);
            }
        }
    }
}

/* Hands lanes to the caller, and frees the rest. */
static bool take_lanes(struct simt_placement *placement, struct state *state) {
    placement->lanes = calloc(state->count > 0 ? state->count : 1, sizeof *placement->lanes);
    for (size_t n = 0; n < state->count; n++) {
        struct group *g = state->groups[n];
        if (placement->lanes != NULL && g->lane.blocks > 0) {
            placement->lanes[placement->count++] = g->lane;
        } else {
            free(g->lane.periods);
        }
        free(g);
    }
    free(state->groups);
    return placement->lanes != NULL;
}

bool simt_place(struct simt_placement *placement, const struct simt_blocks *blocks, bool periods) {
    struct state state = {.blocks = blocks, .periods = periods, .left = blocks->spans[0].blocks};
    *placement = (struct simt_placement){.count = 0};
    bool done = run(&state);
    return take_lanes(placement, &state) && done && placement->count > 0;
}

const struct simt_lane *simt_placement_last(const struct simt_placement *placement) {
    const struct simt_lane *last = &placement->lanes[0];
    for (size_t n = 1; n < placement->count; n++) {
        last = placement->lanes[n].end > last->end ? &placement->lanes[n] : last;
    }
    return last;
}

void simt_placement_free(struct simt_placement *placement) {
    for (size_t n = 0; n < placement->count; n++) {
        free(placement->lanes[n].periods);
    }
    free(placement->lanes);
    *placement = (struct simt_placement){.count = 0};
}
