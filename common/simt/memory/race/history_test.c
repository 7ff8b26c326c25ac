/* Histories: the quick path against the careful one, and those of several host threads. */
#include "common/simt/memory/race/history_words.h"

#include <string.h>

#include "common/base/rng.h"
#include "common/testing/fixture.h"

/* One request of a random play: words that follow one another, one or more lanes. */
struct random_request {
    int32_t relative[32];
    struct simt_footprint footprint;
    size_t offset;
    enum simt_access_kind kind;
};

static void random_request(struct rng *rng, struct random_request *r) {
    enum { WORDS = 64 };
    uint32_t each = (uint32_t)1 << rng_below(rng, 3);
    int32_t first_lane = (int32_t)rng_below(rng, 32), stride = (int32_t)rng_below(rng, 3);
    uint32_t count = 1 + (uint32_t)rng_below(rng, (uint64_t)(32 - first_lane));
    *r = (struct random_request){.kind = rng_below(rng, 3) == 0 ? SIMT_WRITE : SIMT_READ};
    r->footprint = (struct simt_footprint){.relative = r->relative, .bytes = 4 * each};
    for (uint32_t n = 0; n < count; n++) {
        uint32_t lane = (uint32_t)first_lane + n;
        r->footprint.mask |= 1u << lane;
        r->relative[lane] = (int32_t)(n * each * 4) * stride;
    }
    for (uint32_t n = 1; n < count && each == 1; n++) {
        uint32_t lane = (uint32_t)first_lane + n;
        uint32_t other = (uint32_t)first_lane + (uint32_t)rng_below(rng, n + 1);
        int32_t relative = r->relative[lane];
        r->relative[lane] = r->relative[other];
        r->relative[other] = relative;
    }
    r->offset = 4 * each * rng_below(rng, WORDS);
}

static bool is_one_word(const struct random_request *r) {
    bool one = r->footprint.bytes == 4;
    for (uint32_t lane = 0; lane < 32; lane++) {
        one = one && r->relative[lane] == 0;
    }
    return one;
}

/* By the quick path: one word, and different words of the lanes, in either of two ways. */
static bool try_quickly(enum simt_agents agents, struct simt_history *history,
                        struct simt_agent *agent, const struct random_request *r,
                        struct simt_word_map *map, bool by_words) {
    if (by_words && r->kind == SIMT_READ && is_one_word(r) && !simt_history_puts_off(history) &&
        simt_history_has_read(history, agent, r->offset)) {
        return true;
    }
    if (by_words && r->kind == SIMT_READ && r->footprint.bytes == 4 &&
        simt_history_put_off_words(history, agent, r->offset, r->relative, r->footprint.mask)) {
        return true;
    }
    if (!by_words || agents != SIMT_WARPS_OF_SHARED || r->kind != SIMT_WRITE ||
        r->footprint.bytes != 4) {
        return simt_history_try(history, agent, r->offset, map, r->kind);
    }
    simt_word_map_find(map);
    return map->crowded == 0 &&
           simt_history_try_words(history, agent, r->offset, r->relative, r->footprint.mask);
}

/* Each lane for itself. */
static bool touch_all(struct simt_history *history, struct simt_agent *agent,
                      const struct random_request *r, const struct simt_word_map *map) {
    bool races = false;
    uint32_t seen = 0;
    for (uint32_t rest = r->footprint.mask; rest != 0; rest &= rest - 1) {
        uint32_t lane = (uint32_t)__builtin_ctz(rest);
        bool crowded = (map->crowded >> lane & 1) != 0;
        struct simt_race race;
        const struct simt_touch touch = {.offset = r->offset + (size_t)r->relative[lane],
                                         .bytes = r->footprint.bytes,
                                         .kind = r->kind,
                                         .lane = crowded ? SIMT_SEVERAL_LANES : lane};
        if (!crowded || (seen++ == 0)) {
            races = simt_history_touch(history, agent, &touch, &race) || races;
        }
    }
    return races;
}

enum { AGENTS = 3 };

/* Now and then a barrier, a meeting of a warp's lanes, or a release that another agent acquires, on
 * both histories alike. */
static void order_agents(enum simt_agents agents, struct simt_history *h[2],
                         struct simt_agent a[2][AGENTS], uint32_t w, bool raced, struct rng *rng) {
    if (raced || rng_below(rng, 12) == 0) {
        simt_history_advance(h[0]);
        simt_history_advance(h[1]);
    } else if (agents < SIMT_BLOCKS && rng_below(rng, 6) == 0) {
        simt_history_meet(&a[0][w]);
        simt_history_meet(&a[1][w]);
    } else if (rng_below(rng, 12) == 0) {
        uint32_t other = (uint32_t)rng_below(rng, AGENTS);
        simt_history_release(h[0], &a[0][w]);
        simt_history_release(h[1], &a[1][w]);
        simt_history_acquire(h[0], &a[0][other]);
        simt_history_acquire(h[1], &a[1][other]);
    }
}

/* What the quick path accepts must not differ from the careful one: random plays on both. */
static void compare_paths(enum simt_agents agents, uint64_t seed) {
    enum { BYTES_OF_ALL = 8192, MAPS = 16 };
    struct simt_word_map maps[MAPS];
    struct simt_history *h[2]; /* quick, careful */
    struct simt_agent a[2][AGENTS] = {{{.id = 0}, {.id = 1}, {.id = 2}}};
    struct rng rng = rng_create(seed);
    size_t raced = 0, fine = 0, accepted = 0;
    ASSERT_OK(simt_history_create(&h[0], agents, BYTES_OF_ALL));
    ASSERT_OK(simt_history_create(&h[1], agents, BYTES_OF_ALL));
    memcpy(a[1], a[0], sizeof a[0]);
    for (size_t round = 0; round < 200000 && !test_has_failed(); round++) {
        struct random_request r;
        struct simt_word_map *map = &maps[round % MAPS];
        uint32_t w = (uint32_t)rng_below(&rng, AGENTS);
        random_request(&rng, &r);
        if (round % MAPS == 0) {
            simt_history_settle(h[0]);
        }
        simt_word_map_set(map, &r.footprint);
        bool tried = try_quickly(agents, h[0], &a[0][w], &r, map, rng_below(&rng, 2) == 0);
        simt_word_map_find(map);
        bool got = !tried && touch_all(h[0], &a[0][w], &r, map);
        bool want = touch_all(h[1], &a[1][w], &r, map);
        EXPECT_INT_EQ(want, got);
        accepted += tried;
        raced += want;
        fine += !want;
        order_agents(agents, h, a, w, want, &rng);
    }
    EXPECT_TRUE(raced > 1000 && fine > 1000 && accepted > 1000);
    simt_history_free(h[0]);
    simt_history_free(h[1]);
    simt_history_free(NULL);
}

C_TEST(history, quick_and_careful_checks_agree_on_warps) {
    compare_paths(SIMT_WARPS_OF_SHARED, 9);
    compare_paths(SIMT_WARPS_OF_GLOBAL, 10);
}

C_TEST(history, quick_and_careful_checks_agree_on_blocks) {
    compare_paths(SIMT_BLOCKS, 11);
    compare_paths(SIMT_BLOCKS_APART, 12);
}

/* Two host threads, each with a history of its own: blocks 0 and 1. */
struct pair {
    struct simt_history *histories[2];
    struct simt_agent agents[2];
};

static bool open_pair(struct pair *p) {
    *p = (struct pair){.agents = {{.id = 0}, {.id = 1}}};
    return simt_history_create(&p->histories[0], SIMT_BLOCKS_APART, 1 << 20) == STATUS_OK &&
           simt_history_create(&p->histories[1], SIMT_BLOCKS_APART, 1 << 20) == STATUS_OK;
}

static void close_pair(struct pair *p) {
    simt_history_free(p->histories[0]);
    simt_history_free(p->histories[1]);
}

#define PAIR_TEST(name) FIXTURE_TEST(histories, name, struct pair, p, open_pair(p), close_pair(p))

static bool touch(struct pair *p, int who, enum simt_access_kind kind, size_t offset,
                  size_t bytes) {
    struct simt_race race;
    const struct simt_touch touch = {.offset = offset, .bytes = bytes, .kind = kind};
    return simt_history_touch(p->histories[who], &p->agents[who], &touch, &race);
}

static bool meet(struct pair *p) {
    bool conflict = simt_histories_meet(p->histories, 2);
    simt_history_advance(p->histories[0]);
    simt_history_advance(p->histories[1]);
    return conflict;
}

PAIR_TEST(of_two_host_threads_meet) {
    static const struct {
        enum simt_access_kind first, second;
        bool conflict;
    } rows[] = {
        {SIMT_READ, SIMT_READ, false},     {SIMT_READ, SIMT_WRITE, true},
        {SIMT_WRITE, SIMT_READ, true},     {SIMT_WRITE, SIMT_WRITE, true},
        {SIMT_ATOMIC, SIMT_ATOMIC, false}, {SIMT_ATOMIC, SIMT_READ, true},
        {SIMT_WRITE, SIMT_ATOMIC, true},
    };
    for (size_t n = 0; n < sizeof rows / sizeof *rows; n++) {
        for (size_t at = 0; at < 1 << 20; at += 200004) {
            EXPECT_TRUE(!touch(p, 0, rows[n].first, at, 4));
            EXPECT_TRUE(!touch(p, 1, rows[n].second, at, 4));
            EXPECT_INT_EQ(rows[n].conflict, meet(p));
            /* Other bytes of the same word and other words are no one's business. */
            EXPECT_TRUE(!touch(p, 0, rows[n].first, at, 2));
            EXPECT_TRUE(!touch(p, 1, rows[n].second, at + 2, 2));
            EXPECT_TRUE(!touch(p, 0, rows[n].first, at + 8, 4));
            EXPECT_TRUE(!touch(p, 1, rows[n].second, at + 12, 4));
            EXPECT_TRUE(!meet(p));
        }
    }
}

PAIR_TEST(what_went_before_does_not_count) {
    EXPECT_TRUE(!touch(p, 0, SIMT_WRITE, 64, 16));
    EXPECT_TRUE(!meet(p));
    EXPECT_TRUE(!touch(p, 1, SIMT_WRITE, 64, 16));
    EXPECT_TRUE(!meet(p));
    /* A block that follows on the same host thread is in the way as well. */
    EXPECT_TRUE(!touch(p, 0, SIMT_WRITE, 64, 16));
    p->agents[0] = (struct simt_agent){.id = 2};
    EXPECT_TRUE(touch(p, 0, SIMT_READ, 68, 4));
    EXPECT_TRUE(meet(p));
    EXPECT_TRUE(!meet(p));
}

/* No byte is forgotten: the second writer of a word does not hide the first. */
PAIR_TEST(bytes_of_several_blocks_on_one_host_thread) {
    EXPECT_TRUE(!touch(p, 0, SIMT_WRITE, 64, 1));
    p->agents[0] = (struct simt_agent){.id = 2};
    EXPECT_TRUE(!touch(p, 0, SIMT_WRITE, 65, 1));
    EXPECT_TRUE(!touch(p, 1, SIMT_READ, 64, 1));
    EXPECT_TRUE(meet(p));
}
