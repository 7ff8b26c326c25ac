/* Correct kernels pass full checks, and those of a sample of blocks, and their results are those of
 * the CPU. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/rng.h"
#include "common/simt/core/launch/launch_testing.h"
#include "common/simt/core/launch/sample.h"
#include "common/testing/testing.h"

enum { INPUTS = 2048, MOST = 200 };

/* The kernels, loaded, and numbers from 0 to 199 for them. */
struct stage {
    struct launch_testing t;
    int host_threads;
    bool sampled;
    uint64_t number; /* of the launch */
    int in[INPUTS];
    uint64_t d_in;
};

typedef void scene(struct stage *s);

/* Plays a scene with one and with three threads of the host; then where a sample is checked, in
 * several launches and at last in one that is checked as a whole. */
static void play(scene *scene) {
    enum { FULL = 2, SAMPLES = 6 };
    static uint64_t whole = 0;
    while (!simt_sample_is_whole(0, whole)) {
        whole++;
    }
    for (int n = 0; n < FULL + SAMPLES; n++) {
        static struct stage s;
        int host_threads = n % 2 == 0 ? 1 : 3;
        s.sampled = n >= FULL;
        s.number = n < FULL + SAMPLES - 1 ? (uint64_t)n : whole;
        if (!launch_testing_open(&s.t, TRICKY_PTX)) {
            return;
        }
        struct rng rng = rng_create(77);
        for (int i = 0; i < INPUTS; i++) {
            s.in[i] = (int)rng_below(&rng, MOST);
        }
        s.host_threads = host_threads;
        s.d_in = launch_testing_upload(&s.t, s.in, sizeof s.in);
        scene(&s);
        launch_testing_close(&s.t);
    }
}

#define SCENE(name)                           \
    static void play_##name(struct stage *s); \
    C_TEST(tricky, name) {                    \
        play(play_##name);                    \
    }                                         \
    static void play_##name(struct stage *s)

static bool run(struct stage *s, const char *kernel, uint32_t grid, uint32_t threads,
                const void *parameters) {
    return launch_testing_run_clean(&s->t, LAUNCH(.kernel = kernel, .grid = {grid},
                                                  .threads = {threads}, .parameters = parameters,
                                                  .host_threads = s->host_threads,
                                                  .sampled = s->sampled, .number = s->number));
}

static uint64_t empty(struct stage *s, size_t ints) {
    return launch_testing_upload(&s->t, NULL, ints * sizeof(int));
}

static uint64_t zeros(struct stage *s, size_t ints) {
    static const int nothing[INPUTS];
    return launch_testing_upload(&s->t, nothing, ints * sizeof(int));
}

static void expect_ints(const struct stage *s, const int *want, uint64_t got, size_t count) {
    const int *values = launch_testing_result(&s->t, got);
    for (size_t i = 0; i < count; i++) {
        if (values[i] != want[i]) {
            TEST_FAIL("element %zu: want %d, got %d", i, want[i], values[i]);
            return;
        }
    }
}

/* Runs KERNEL(out, in) on one block and compares `count` ints. */
static void expect_block(struct stage *s, const char *kernel, uint32_t threads, const int *want,
                         size_t count) {
    uint64_t parameters[] = {empty(s, count), s->d_in};
    if (run(s, kernel, 1, threads, parameters)) {
        expect_ints(s, want, parameters[0], count);
    }
}

/* The same for KERNEL(out, in, n). */
static void expect_block_of(struct stage *s, const char *kernel, uint32_t threads, int n,
                            const int *want, size_t count) {
    struct {
        uint64_t out, in;
        int n;
    } parameters = {empty(s, count), s->d_in, n};
    if (run(s, kernel, 1, threads, &parameters)) {
        expect_ints(s, want, parameters.out, count);
    }
}

SCENE(warp_shuffles) {
    enum { N = 173 };
    int sum[6] = {0}, scan[N], most[N];
    for (int i = 0; i < N; i++) {
        sum[i / 32] += s->in[i];
        scan[i] = sum[i / 32];
        most[i] = s->in[i];
    }
    for (int d = 16; d > 0; d /= 2) {
        int old[N];
        memcpy(old, most, sizeof old);
        for (int i = 0; i < N; i++) {
            most[i] = (i ^ d) < N && old[i ^ d] > old[i] ? old[i ^ d] : old[i];
        }
    }
    struct {
        uint64_t sum, scan, most, in;
        int n;
    } p = {empty(s, 6), empty(s, N), empty(s, N), s->d_in, N};
    if (run(s, "warp_shuffles", 3, 64, &p)) {
        expect_ints(s, sum, p.sum, 6);
        expect_ints(s, scan, p.scan, N);
        expect_ints(s, most, p.most, N);
    }
}

SCENE(syncwarp_exchange) {
    int value[128], old[128];
    memcpy(value, s->in, sizeof value);
    for (int round = 0; round < 5; round++) {
        memcpy(old, value, sizeof old);
        for (int t = 0; t < 128; t++) {
            value[t] += 3 * old[t / 32 * 32 + (t + round + 1) % 32];
        }
    }
    expect_block(s, "syncwarp_exchange", 128, value, 128);
}

SCENE(volatile_warp_sum) {
    int sum = 0;
    for (int t = 0; t < 64; t++) {
        sum += s->in[t];
    }
    expect_block(s, "volatile_warp_sum", 32, &sum, 1);
}

SCENE(masks_of_halves) {
    int want[64];
    for (int t = 0; t < 64; t++) {
        unsigned votes = 0, alike = 0, all = 1, any = 0;
        for (int u = t / 16 * 16; u < t / 16 * 16 + 16; u++) {
            votes |= (unsigned)(s->in[u] % 3 == 0) << u % 32;
            alike |= (unsigned)(s->in[u] % 4 == s->in[t] % 4) << u % 32;
            all &= s->in[u] < 100;
            any |= s->in[u] > 150;
        }
        want[t] = (int)(votes + 1000003u * alike + 31u * all + 17u * any);
    }
    expect_block(s, "masks_of_halves", 64, want, 64);
}

SCENE(lanes_meet_again) {
    int value[64], want[64];
    for (int t = 0; t < 64; t++) {
        int x = s->in[t];
        if (x % 2 == 0) {
            for (int i = 0; i < x % 7; i++) {
                x += i;
            }
        } else if (x % 3 == 0) {
            x = -x;
        }
        value[t] = x;
    }
    for (int t = 0; t < 64; t++) {
        want[t] = value[t] + value[t / 32 * 32 + (t + 5) % 32];
    }
    expect_block(s, "lanes_meet_again", 64, want, 64);
}

SCENE(other_half_has_ended) {
    int want[32], sum = 0;
    for (int t = 0; t < 16; t++) {
        sum += s->in[t];
    }
    for (int t = 0; t < 32; t++) {
        want[t] = t < 16 ? sum : -1;
    }
    expect_block(s, "other_half_has_ended", 32, want, 32);
}

static int by_value(const void *a, const void *b) {
    int x = *(const int *)a, y = *(const int *)b;
    return (x > y) - (x < y);
}

SCENE(aggregated_atomics) {
    enum { N = 500 };
    int want[N], got[N], count = 0;
    for (int i = 0; i < N; i++) {
        if (s->in[i] % 3 == 1) {
            want[count++] = s->in[i];
        }
    }
    struct {
        uint64_t out, count, in;
        int n;
    } p = {empty(s, N), zeros(s, 1), s->d_in, N};
    if (run(s, "aggregated_atomics", 5, 128, &p)) {
        expect_ints(s, &count, p.count, 1);
        memcpy(got, launch_testing_result(&s->t, p.out), sizeof got);
        qsort(want, (size_t)count, sizeof *want, by_value);
        qsort(got, (size_t)count, sizeof *got, by_value);
        EXPECT_INT_EQ(0, memcmp(want, got, (size_t)count * sizeof *want));
    }
}

SCENE(tiles_of_eight) {
    int want[8] = {0};
    for (int t = 0; t < 64; t++) {
        want[t / 8] += s->in[t] * 256 + (int)((unsigned)(s->in[t] % 2 == 0) << t % 8);
    }
    expect_block(s, "tiles_of_eight", 64, want, 8);
}

SCENE(warps_leave_early) {
    static const int lengths[] = {32, 64, 50, 1}; /* whole warps, single threads */
    for (size_t n = 0; n < sizeof lengths / sizeof *lengths; n++) {
        int want[64], length = lengths[n];
        for (int t = 0; t < length; t++) {
            want[t] = s->in[length - 1 - t];
        }
        expect_block_of(s, "warps_leave_early", 128, length, want, (size_t)length);
    }
}

SCENE(barriers_in_uniform_loops) {
    int line[96], old[96];
    const int rounds = 7;
    memcpy(line, s->in, sizeof line);
    for (int round = 0; round < rounds; round++) {
        if (round == 3) {
            continue;
        }
        memcpy(old, line, sizeof old);
        for (int t = 0; t < 96; t++) {
            int next = old[(t + 1) % 96];
            line[t] = next % 5 == 4 ? next + round : next;
        }
        if (line[0] > 500) {
            break;
        }
    }
    uint64_t p[] = {launch_testing_upload(&s->t, s->in, sizeof line),
                    launch_testing_upload(&s->t, &rounds, sizeof rounds)};
    if (run(s, "barriers_in_uniform_loops", 1, 96, p)) {
        expect_ints(s, line, p[0], 96);
    }
}

SCENE(two_buffers) {
    enum { STEPS = 9 };
    int want[64] = {0};
    for (int t = 0; t < 64; t++) {
        for (int k = 0; k < STEPS; k++) {
            for (int i = 0; i < 64; i += 3) {
                want[t] += s->in[k * 64 + (t + i) % 64] * (i + 1);
            }
        }
    }
    expect_block_of(s, "two_buffers", 64, STEPS, want, 64);
}

SCENE(padded_transposition) {
    enum { WIDTH = 37, HEIGHT = 21 };
    int want[WIDTH * HEIGHT];
    for (int i = 0; i < WIDTH * HEIGHT; i++) {
        want[i % WIDTH * HEIGHT + i / WIDTH] = s->in[i];
    }
    struct {
        uint64_t out, in;
        int width, height;
    } p = {empty(s, WIDTH * HEIGHT), s->d_in, WIDTH, HEIGHT};
    if (launch_testing_run_clean(&s->t, LAUNCH(.kernel = "padded_transposition", .grid = {3, 2},
                                               .threads = {16, 16}, .parameters = &p,
                                               .host_threads = s->host_threads,
                                               .sampled = s->sampled, .number = s->number))) {
        expect_ints(s, want, p.out, WIDTH * HEIGHT);
    }
}

SCENE(same_value_by_all) {
    enum { N = 512 };
    int want[N], found = 0;
    for (int b = 0; b < N; b += 64) {
        int any = 0;
        for (int i = b; i < b + 64; i++) {
            any |= s->in[i] % 50 == 49;
        }
        for (int i = b; i < b + 64; i++) {
            want[i] = any;
        }
        found |= any;
    }
    EXPECT_INT_EQ(1, found);
    uint64_t p[] = {zeros(s, 1), empty(s, N), s->d_in};
    if (run(s, "same_value_by_all", N / 64, 64, p)) {
        expect_ints(s, &found, p[0], 1);
        expect_ints(s, want, p[1], N);
    }
}

SCENE(bytes_of_one_word) {
    int want[128];
    for (int t = 0; t < 128; t++) {
        unsigned word = 0;
        for (int warp = 0; warp < 4; warp++) {
            word |= (unsigned)s->in[warp * 32 + t % 32] << 8 * warp;
        }
        want[t] = (int)(word + (unsigned)(t / 32));
    }
    expect_block(s, "bytes_of_one_word", 128, want, 128);
}

SCENE(structs_with_padding) {
    struct item {
        char kind;
        double value;
        short part;
        int count;
    };
    uint64_t p[] = {launch_testing_upload(&s->t, NULL, 64 * sizeof(struct item)), s->d_in};
    if (run(s, "structs_with_padding", 1, 64, p)) {
        const struct item *got = launch_testing_result(&s->t, p[0]);
        for (int t = 0; t < 64; t++) {
            EXPECT_INT_EQ(s->in[63 - t] % 3, got[t].kind);
            EXPECT_NEAR(s->in[63 - t], got[t].value, 0.0);
            EXPECT_INT_EQ(63 - t, got[t].count);
            EXPECT_INT_EQ(s->in[63 - t], got[t].part);
        }
    }
}

SCENE(vectors_in_shared_memory) {
    int want[1024];
    for (int i = 0; i < 1024; i++) {
        want[i] = s->in[i % 32 * 32 + i / 32];
    }
    /* Thread t holds elements 4 * (t % 8) to + 3 of column t / 8. */
    uint64_t p[] = {empty(s, 1024), s->d_in};
    if (run(s, "vectors_in_shared_memory", 1, 256, p)) {
        expect_ints(s, want, p[0], 1024);
    }
}

SCENE(split_dynamic_shared) {
    enum { N = 45 };
    struct {
        uint64_t out, in;
        int n;
    } p = {empty(s, 2 * N), s->d_in, N};
    if (launch_testing_run_clean(&s->t, LAUNCH(.kernel = "split_dynamic_shared", .threads = {64},
                                               .shared = N * (8 + 4 + 1), .parameters = &p,
                                               .host_threads = s->host_threads,
                                               .sampled = s->sampled, .number = s->number))) {
        const double *got = launch_testing_result(&s->t, p.out);
        for (int t = 0; t < N; t++) {
            EXPECT_NEAR(s->in[t * 7 % N] * 0.5 + (s->in[N - 1 - t] & 1), got[t], 0.0);
        }
    }
}

SCENE(three_dimensions) {
    int want[8 * 24];
    for (int i = 0; i < 8 * 24; i++) {
        int t = i % 24;
        want[i] = 3 - t % 4 + 10 * (2 - t / 4 % 3) + 100 * (1 - t / 12) + i / 24;
    }
    uint64_t out = empty(s, 8 * 24);
    if (launch_testing_run_clean(&s->t, LAUNCH(.kernel = "three_dimensions", .grid = {2, 2, 2},
                                               .threads = {4, 3, 2}, .parameters = &out,
                                               .host_threads = s->host_threads,
                                               .sampled = s->sampled, .number = s->number))) {
        expect_ints(s, want, out, 8 * 24);
    }
}

static void produce_and_consume(struct stage *s, const char *kernel) {
    enum { ROUNDS = 11 };
    int want[64 * ROUNDS];
    for (int i = 0; i < 64 * ROUNDS; i++) {
        want[i] = s->in[i / 64 * 64 + 63 - i % 64] + i / 64;
    }
    expect_block_of(s, kernel, 128, ROUNDS, want, 64 * ROUNDS);
}

SCENE(two_named_barriers) {
    produce_and_consume(s, "two_named_barriers");
}

SCENE(producers_and_consumers) {
    produce_and_consume(s, "producers_and_consumers");
}

SCENE(flag_between_warps) {
    int want[32];
    for (int t = 0; t < 32; t++) {
        want[t] = 2 * s->in[31 - t];
    }
    expect_block(s, "flag_between_warps", 64, want, 32);
}

SCENE(counts_with_barriers) {
    int want[96], odd = 0, any = 0;
    for (int t = 0; t < 96; t++) {
        odd += s->in[t] % 2;
        any |= s->in[t] == 77;
    }
    for (int t = 0; t < 96; t++) {
        want[t] = odd * 4 + 2 + any;
    }
    expect_block(s, "counts_with_barriers", 96, want, 96);
}

SCENE(local_queue) {
    int want[64];
    for (int t = 0; t < 64; t++) {
        int queue[16], head = 0, tail = 0;
        unsigned sum = 0;
        queue[tail++] = s->in[t] % 40;
        while (head != tail) {
            int x = queue[head++ % 16];
            sum = sum * 3 + (unsigned)x;
            if (x > 3) {
                queue[tail++ % 16] = x / 2;
            }
            if (x % 5 == 4) {
                queue[tail++ % 16] = x / 3;
            }
        }
        want[t] = (int)sum;
    }
    expect_block(s, "local_queue", 64, want, 64);
}

/* The innermost loop of nested_loops. @return false when all loops are left */
static bool innermost(int a, int b, int t, int *sum) {
    for (int c = 0;;) {
        *sum += a * b + c;
        if (++c * b > t) {
            return true;
        }
        if (*sum > 3000) {
            return false;
        }
        if (b == 0) {
            return true;
        }
    }
}

static int nested(int t, int limit) {
    int sum = 0;
    for (int a = 0; a < 6; a++) {
        for (int b = a; b < limit % 11; b++) {
            if ((a + b) % 4 != 3 && !innermost(a, b, t, &sum)) {
                return sum;
            }
        }
        sum ^= a;
    }
    return sum;
}

SCENE(nested_loops) {
    int want[100];
    for (int t = 0; t < 100; t++) {
        want[t] = nested(t, s->in[t]);
    }
    expect_block(s, "nested_loops", 100, want, 100);
}

static int jumped(int x) {
    int steps = 0;
    bool triple = x % 2 != 0;
    while (true) {
        if (triple) {
            x = 3 * x + 1;
            if (++steps > 40) {
                break;
            }
        }
        x /= 2;
        steps++;
        if (x <= 1) {
            break;
        }
        triple = x % 2 == 1;
    }
    return steps * 1000 + x % 1000;
}

SCENE(jumps) {
    int want[64];
    for (int t = 0; t < 64; t++) {
        want[t] = jumped(s->in[t]);
    }
    expect_block(s, "jumps", 64, want, 64);
}

SCENE(table_of_jumps) {
    int x[64], rounds[64], want[64];
    for (int t = 0; t < 64; t++) {
        x[t] = s->in[t];
        rounds[t] = 0;
        do {
            x[t] += 5;
            rounds[t]++;
        } while (x[t] % 4 == 0);
        x[t] = x[t] % 4 == 1 ? x[t] / 2 : x[t] % 4 == 2 ? -x[t] : x[t];
    }
    for (int t = 0; t < 64; t++) {
        want[t] = (x[t] + x[t ^ 1]) * 16 + rounds[t];
    }
    expect_block(s, "table_of_jumps", 64, want, 64);
}

static int chosen(int x) {
    int y = 1;
    for (int round = 0; round < 4; round++) {
        int n = (x + round) % 9;
        if (n == 5) {
            return y;
        }
        if (n == 6) {
            y <<= 1;
            continue;
        }
        const int results[9] = {y + x, y * 3,  (y - 7) ^ 0x2a, y ^ 0x2a, -y,
                                y,     y << 1, y | 0x100,      y + round};
        y = results[n] & 0xffff;
    }
    return y;
}

SCENE(many_cases) {
    int want[128];
    for (int t = 0; t < 128; t++) {
        want[t] = chosen(s->in[t]);
    }
    expect_block(s, "many_cases", 128, want, 128);
}

SCENE(constants_and_ldg) {
    static const int polynomial[5] = {7, -3, 2, 5, -1};
    int want[64];
    for (int t = 0; t < 64; t++) {
        int y = 0;
        for (int k = 4; k >= 0; k--) {
            y = y * (s->in[t] % 6) + polynomial[k];
        }
        want[t] = y * polynomial[t % 5];
    }
    expect_block_of(s, "constants_and_ldg", 64, 4, want, 64);
}

static void expect_lines(struct stage *s, const char *kernel, uint32_t grid) {
    static char want[1 << 16], got[1 << 16];
    want[0] = '\0';
    for (uint32_t t = 0; t < 64 * grid; t++) {
        size_t used = strlen(want);
        if (s->in[t] % 16 == 3) {
            snprintf(want + used, sizeof want - used, "thread %u has %d\n", t, s->in[t]);
        }
    }
    launch_testing_run_printing(&s->t,
                                LAUNCH(.kernel = kernel, .grid = {grid}, .threads = {64},
                                       .parameters = &s->d_in, .host_threads = s->host_threads,
                                       .sampled = s->sampled, .number = s->number),
                                got, sizeof got);
    EXPECT_TRUE(want[0] != '\0');
    EXPECT_STR_EQ(want, got);
}

SCENE(lock_inside_a_block) {
    enum { THREADS = 96 };
    int want[THREADS], got[THREADS];
    const int threads = THREADS;
    uint64_t p[] = {zeros(s, 1), zeros(s, 1), empty(s, THREADS)};
    for (int t = 0; t < THREADS; t++) {
        want[t] = t;
    }
    if (run(s, "lock_inside_a_block", 1, THREADS, p)) {
        expect_ints(s, &threads, p[1], 1);
        memcpy(got, launch_testing_result(&s->t, p[2]), sizeof got);
        qsort(got, THREADS, sizeof *got, by_value);
        EXPECT_INT_EQ(0, memcmp(want, got, sizeof want));
    }
}

static void expect_chain(struct stage *s, const char *kernel) {
    enum { THREADS = 192 };
    int want[THREADS];
    for (int t = 0; t < THREADS; t++) {
        want[t] = s->in[t] + (t >= 32 ? want[t - 32] : 0);
    }
    uint64_t p[] = {empty(s, THREADS), s->d_in, zeros(s, THREADS / 32)};
    if (run(s, kernel, 1, THREADS, p)) {
        expect_ints(s, want, p[0], THREADS);
    }
}

SCENE(chain_of_warps) {
    expect_chain(s, "chain_of_warps");
}

SCENE(chain_with_acquire_and_release) {
    expect_chain(s, "chain_with_acquire_and_release");
}

SCENE(sort_in_global_memory) {
    enum { N = 150 };
    int want[N];
    memcpy(want, s->in, sizeof want);
    qsort(want, N, sizeof *want, by_value);
    struct {
        uint64_t data;
        int n;
    } p = {launch_testing_upload(&s->t, s->in, sizeof want), N};
    if (run(s, "sort_in_global_memory", 1, 96, &p)) {
        expect_ints(s, want, p.data, N);
    }
}

SCENE(all_warps_write_the_same) {
    int want[128], total = 0;
    for (int t = 0; t < 128; t++) {
        total += s->in[t];
    }
    for (int t = 0; t < 128; t++) {
        want[t] = total - s->in[t];
    }
    uint64_t p[] = {empty(s, 1), empty(s, 128), s->d_in};
    if (run(s, "all_warps_write_the_same", 1, 128, p)) {
        expect_ints(s, want, p[1], 128);
    }
}

SCENE(lanes_exchange_in_global_memory) {
    int want[32], old[32];
    memcpy(want, s->in, sizeof want);
    for (int step = 1; step < 32; step *= 2) {
        memcpy(old, want, sizeof old);
        for (int t = 0; t < 32; t++) {
            want[t] += old[t ^ step] * step;
        }
    }
    uint64_t data = launch_testing_upload(&s->t, s->in, sizeof want);
    if (run(s, "lanes_exchange_in_global_memory", 1, 32, &data)) {
        expect_ints(s, want, data, 32);
    }
}

SCENE(lanes_with_parts_of_words) {
    int want[64];
    for (int t = 0; t < 64; t++) {
        unsigned char byte = (unsigned char)s->in[t];
        unsigned short half = (unsigned short)(3 * s->in[t]);
        for (int i = 0; i < 3; i++) {
            byte = (unsigned char)(byte * 5 + half);
            half = (unsigned short)(half + byte);
        }
        want[t] = byte + half;
    }
    expect_block(s, "lanes_with_parts_of_words", 64, want, 64);
}

SCENE(stack_that_may_be_empty) {
    int want[64];
    for (int t = 0; t < 64; t++) {
        int used = s->in[t] % 8;
        int first = used > 0 ? s->in[t] : -1;
        int last = used > 0 ? s->in[(t + used - 1) % 64] : -2;
        want[t] = first * 1000 + last;
    }
    expect_block(s, "stack_that_may_be_empty", 64, want, 64);
}

SCENE(least_of_all) {
    enum { N = 900 };
    int want[64];
    for (int t = 0; t < 64; t++) {
        int mine[N], count = 0;
        for (int i = t; i < N; i += 64) {
            mine[count++] = s->in[i];
        }
        qsort(mine, (size_t)count, sizeof *mine, by_value);
        want[t] = ((mine[0] * 7 + mine[1]) * 7 + mine[2]) * 7 + mine[3];
    }
    expect_block_of(s, "least_of_all", 64, N, want, 64);
}

SCENE(records_filled_in_part) {
    int want[64];
    for (int t = 0; t < 64; t++) {
        int r = s->in[t] % 3, used = (s->in[t] + r) % 5 + 1;
        want[t] = 0;
        for (int i = 0; i < used; i++) {
            want[t] = want[t] * 3 + s->in[(t + i) % 64] + r;
        }
    }
    expect_block(s, "records_filled_in_part", 64, want, 64);
}

SCENE(nodes_of_two_kinds) {
    int want[64];
    for (int t = 0; t < 64; t++) {
        int stack[8], used = 0, x = s->in[t];
        for (int i = 0; i < 4; i++) {
            stack[used++] = (x + i) % 2 == 0 ? x + i : x;
            used -= x % 3 == 0 && used > 2;
        }
        want[t] = 0;
        while (used > 0) {
            want[t] = want[t] * 3 + stack[--used];
        }
    }
    expect_block(s, "nodes_of_two_kinds", 64, want, 64);
}

SCENE(arrays_that_swap) {
    int want[64], sum = 0;
    for (int t = 0; t < 64; t++) {
        sum += s->in[t];
        want[t] = sum;
    }
    expect_block(s, "arrays_that_swap", 64, want, 64);
}

SCENE(pointers_that_walk) {
    int want[64];
    for (int t = 0; t < 64; t++) {
        want[t] = 2 * s->in[63 - t % 32];
        want[t] += t % 2 == 0 ? s->in[t] : 2 * s->in[63 - t];
        for (int i = t; i < 64; i++) {
            want[t] += s->in[i] - 2 * s->in[63 - i];
        }
    }
    expect_block(s, "pointers_that_walk", 64, want, 64);
}

SCENE(rows_of_one_array) {
    int want[64], sums[4] = {0};
    for (int t = 0; t < 64; t++) {
        sums[t / 16] += s->in[t];
    }
    for (int t = 0; t < 64; t++) {
        want[t] = sums[t % 4] + s->in[63 - t];
    }
    expect_block(s, "rows_of_one_array", 64, want, 64);
}

SCENE(says_hello) {
    expect_lines(s, "says_hello", 1);
}

SCENE(says_in_turn) {
    expect_lines(s, "says_in_turn", INPUTS / 64);
}

SCENE(histogram_of_all_blocks) {
    enum { N = 1500 };
    int bins[10] = {0}, most = 0;
    float sum = 0.0f;
    for (int i = 0; i < N; i++) {
        bins[s->in[i] % 10]++;
        most = s->in[i] > most ? s->in[i] : most;
        sum += (float)s->in[i];
    }
    struct {
        uint64_t bins, most, sum, in;
        int n;
    } p = {zeros(s, 10), zeros(s, 1), zeros(s, 1), s->d_in, N};
    if (run(s, "histogram_of_all_blocks", 4, 128, &p)) {
        expect_ints(s, bins, p.bins, 10);
        expect_ints(s, &most, p.most, 1);
        EXPECT_NEAR(sum, *(const float *)launch_testing_result(&s->t, p.sum), 0.0);
    }
}

SCENE(last_block_adds_up) {
    enum { BLOCKS = 40 };
    int total = 0;
    for (int i = 0; i < 32 * BLOCKS; i++) {
        total += s->in[i];
    }
    uint64_t p[] = {empty(s, BLOCKS), zeros(s, 1), empty(s, 1), s->d_in};
    if (run(s, "last_block_adds_up", BLOCKS, 32, p)) {
        expect_ints(s, &total, p[2], 1);
    }
}

SCENE(look_back_scan) {
    enum { BLOCKS = 30 };
    int want[64 * BLOCKS], sum = 0;
    for (int i = 0; i < 64 * BLOCKS; i++) {
        want[i] = sum += s->in[i];
    }
    uint64_t p[] = {empty(s, 64 * BLOCKS), s->d_in, zeros(s, BLOCKS), empty(s, 2 * BLOCKS),
                    zeros(s, 1)};
    if (run(s, "look_back_scan", BLOCKS, 64, p)) {
        expect_ints(s, want, p[0], 64 * BLOCKS);
    }
}

SCENE(look_back_compact) {
    enum { BLOCKS = 30 };
    int want[64 * BLOCKS], count = 0;
    for (int i = 0; i < 64 * BLOCKS; i++) {
        if (s->in[i] % 3 != 0) {
            want[count++] = s->in[i];
        }
    }
    uint64_t p[] = {s->d_in, zeros(s, 2 * BLOCKS)};
    if (run(s, "look_back_compact", BLOCKS, 64, p)) {
        EXPECT_TRUE(count > 64 && count < 64 * BLOCKS);
        expect_ints(s, want, p[0], (size_t)count);
    }
}

SCENE(lock_between_blocks) {
    enum { BLOCKS = 50 };
    const int blocks = BLOCKS;
    int want[BLOCKS], got[BLOCKS];
    for (int b = 0; b < BLOCKS; b++) {
        want[b] = b + 1;
    }
    uint64_t p[] = {zeros(s, 1), zeros(s, 1), empty(s, BLOCKS)};
    if (run(s, "lock_between_blocks", BLOCKS, 32, p)) {
        expect_ints(s, &blocks, p[1], 1);
        memcpy(got, launch_testing_result(&s->t, p[2]), sizeof got);
        qsort(got, BLOCKS, sizeof *got, by_value);
        EXPECT_INT_EQ(0, memcmp(want, got, sizeof want));
    }
}

SCENE(queue_of_work) {
    enum { ITEMS = 29 };
    int want[32 * ITEMS];
    for (int i = 0; i < 32 * ITEMS; i++) {
        want[i] = s->in[i] * (i / 32 + 1);
    }
    struct {
        uint64_t next, out, in;
        int items;
    } p = {zeros(s, 1), empty(s, 32 * ITEMS), s->d_in, ITEMS};
    if (run(s, "queue_of_work", 4, 32, &p)) {
        expect_ints(s, want, p.out, 32 * ITEMS);
    }
}

SCENE(reversed_in_place) {
    int want[512];
    for (int i = 0; i < 512; i++) {
        want[i] = s->in[i / 128 * 128 + 127 - i % 128];
    }
    uint64_t data = launch_testing_upload(&s->t, s->in, sizeof want);
    if (run(s, "reversed_in_place", 4, 128, &data)) {
        expect_ints(s, want, data, 512);
    }
}

SCENE(bytes_of_blocks) {
    unsigned char data[64], want[64];
    for (int i = 0; i < 64; i++) {
        data[i] = (unsigned char)(3 * i);
        want[i] = (unsigned char)(6 * i + 1);
    }
    uint64_t d_data = launch_testing_upload(&s->t, data, sizeof data);
    if (run(s, "bytes_of_blocks", 64, 1, &d_data)) {
        EXPECT_INT_EQ(0, memcmp(want, launch_testing_result(&s->t, d_data), sizeof want));
    }
}

SCENE(halves_of_warps) {
    unsigned short data[8], want[8];
    for (int i = 0; i < 8; i++) {
        data[i] = (unsigned short)(1000 * i);
        want[i] = (unsigned short)(2000 * i + 1);
    }
    uint64_t d_data = launch_testing_upload(&s->t, data, sizeof data);
    if (run(s, "halves_of_warps", 1, 256, &d_data)) {
        EXPECT_INT_EQ(0, memcmp(want, launch_testing_result(&s->t, d_data), sizeof want));
    }
}

/* What a thread makes of all messages: its lane's pairs. */
static unsigned sum_of_posts(const unsigned *messages, int all, int t) {
    unsigned sum = 0;
    for (int k = 2 * (t % 32); k < all; k += 64) {
        sum += messages[k] + 3 * messages[k + 1];
    }
    return sum;
}

SCENE(tagged_values) {
    enum { BLOCKS = 6, ALL = 64 * BLOCKS, ROUNDS = 5 };
    unsigned values[ALL], messages[ALL];
    for (int i = 0; i < ALL; i++) {
        values[i] = (unsigned)s->in[i];
    }
    for (int round = 0; round < ROUNDS; round++) {
        unsigned sum = 0;
        memcpy(messages, values, sizeof messages);
        for (int i = 0; i < ALL; i++) {
            values[i] += sum_of_posts(messages, ALL, i);
            sum += values[i] >> 1;
        }
        for (int i = 0; i < ALL; i++) {
            values[i] += 6 * sum;
        }
    }
    struct {
        uint64_t messages, mailboxes, out, in;
        int rounds;
    } p = {zeros(s, 2 * ALL), zeros(s, ALL), empty(s, ALL), s->d_in, ROUNDS};
    if (launch_testing_run_clean(&s->t, LAUNCH(.kernel = "tagged_values", .grid = {BLOCKS},
                                               .threads = {64}, .parameters = &p,
                                               .cooperative = true, .host_threads = s->host_threads,
                                               .sampled = s->sampled, .number = s->number))) {
        expect_ints(s, (const int *)values, p.out, ALL);
    }
}

static int permutations(const int *values, int first, int count, int target) {
    int number = 0, found = 0;
    for (int i = 0; i < count; i++) {
        number = number * 10 + values[i];
    }
    for (int i = first; i < count; i++) {
        int mine[4];
        memcpy(mine, values, sizeof mine);
        mine[first] = values[i];
        mine[i] = values[first];
        found += permutations(mine, first + 1, count, target);
    }
    return first == count ? number % target == 0 : found;
}

SCENE(recursion_with_arrays) {
    int want[64];
    for (int t = 0; t < 64; t++) {
        const int values[4] = {1, 2, 3, t % 10};
        want[t] = permutations(values, 0, 2 + t % 3, 3 + t % 5);
    }
    uint64_t out = empty(s, 64);
    if (run(s, "recursion_with_arrays", 1, 64, &out)) {
        expect_ints(s, want, out, 64);
    }
}

SCENE(neighbour_is_dropped) {
    enum { COUNT = 40 };
    int want[64];
    for (int t = 0; t < 64; t++) {
        int left = t > 0 && t <= COUNT ? s->in[t - 1] : -1;
        int right = t < COUNT ? s->in[t] : -2;
        bool rises = t > 0 && t < COUNT && left < right;
        bool first = t == 0 || t >= COUNT || left > 190;
        want[t] = 4 * (left + right) + 2 * rises + first;
    }
    struct {
        uint64_t out, in;
        int n;
    } p = {empty(s, 64), s->d_in, COUNT};
    if (run(s, "neighbour_is_dropped", 1, 64, &p)) {
        expect_ints(s, want, p.out, 64);
    }
}

SCENE(garbage_goes_along) {
    enum { COUNT = 50 };
    int want[COUNT];
    for (int t = 0; t < COUNT; t++) {
        want[t] = s->in[t] + 1;
    }
    struct {
        uint64_t out, in;
        int n;
    } p = {empty(s, COUNT), s->d_in, COUNT};
    if (run(s, "garbage_goes_along", 1, 64, &p)) {
        expect_ints(s, want, p.out, COUNT);
    }
}

SCENE(reduction_of_few_lanes) {
    int want = 0;
    for (int t = 0; t < 8; t++) {
        want += s->in[t];
    }
    uint64_t p[2] = {empty(s, 1), s->d_in};
    if (run(s, "reduction_of_few_lanes", 1, 32, p)) {
        expect_ints(s, &want, p[0], 1);
    }
}

SCENE(reduction_of_a_short_block) {
    enum { COUNT = 20 };
    int want[COUNT], sum = 0;
    for (int t = 0; t < COUNT; t++) {
        sum += s->in[t];
        want[t] = sum;
    }
    want[0] = sum;
    uint64_t p[2] = {empty(s, COUNT), s->d_in};
    if (run(s, "reduction_of_a_short_block", 1, COUNT, p)) {
        expect_ints(s, want, p[0], COUNT);
    }
}

/* 0, 1, 2 ... 7 as fp16. */
static unsigned short half_of(int value) {
    static const unsigned short halves[8] = {0,      0x3c00, 0x4000, 0x4200,
                                             0x4400, 0x4500, 0x4600, 0x4700};
    return halves[value % 8];
}

SCENE(rows_of_garbage) {
    enum { ROWS = 11, COLUMNS = 8, K = 16 };
    unsigned short a[ROWS * K], b[COLUMNS * K];
    float want[ROWS * COLUMNS];
    for (int i = 0; i < ROWS * K; i++) {
        a[i] = half_of(s->in[i]);
    }
    for (int i = 0; i < COLUMNS * K; i++) {
        b[i] = half_of(s->in[ROWS * K + i]);
    }
    for (int i = 0; i < ROWS * COLUMNS; i++) {
        want[i] = 0;
        for (int k = 0; k < K; k++) {
            int x = s->in[i / COLUMNS * K + k] % 8, y = s->in[ROWS * K + i % COLUMNS * K + k] % 8;
            want[i] += (float)(x * y);
        }
    }
    struct {
        uint64_t out, a, b;
        int rows;
    } p = {empty(s, ROWS * COLUMNS), launch_testing_upload(&s->t, a, sizeof a),
           launch_testing_upload(&s->t, b, sizeof b), ROWS};
    if (run(s, "rows_of_garbage", 1, 32, &p)) {
        EXPECT_INT_EQ(0, memcmp(want, launch_testing_result(&s->t, p.out), sizeof want));
    }
}

/* The same times with one host thread and with more. */
SCENE(clocks_tick) {
    enum { BLOCKS = 5, VALUES = 8 + 4 * BLOCKS };
    static unsigned long long first[VALUES];
    static const unsigned long long nothing[VALUES];
    uint64_t out = launch_testing_upload(&s->t, nothing, sizeof nothing);
    if (!run(s, "clocks_tick", BLOCKS, 64, &out)) {
        return;
    }
    const unsigned long long *got = launch_testing_result(&s->t, out);
    for (int i = 8; i < VALUES; i += 2) {
        EXPECT_INT_EQ(1, (int)got[i]);
    }
    if (s->host_threads == 1) {
        memcpy(first, got, sizeof first);
    }
    EXPECT_INT_EQ(0, memcmp(first, got, sizeof first));
}

SCENE(cache_policies) {
    int want[32];
    for (int t = 0; t < 32; t++) {
        want[t] = 3 * s->in[t];
    }
    uint64_t p[2] = {empty(s, 32), s->d_in};
    if (run(s, "cache_policies", 1, 32, p)) {
        expect_ints(s, want, p[0], 32);
    }
}

SCENE(reserved_shared_memory) {
    int want[32];
    for (int t = 0; t < 32; t++) {
        want[t] = s->in[31 - t] + 1000 * (t % 2 == 1 ? 32 - t : 0);
    }
    uint64_t p[2] = {empty(s, 32), s->d_in};
    if (run(s, "reserved_shared_memory", 1, 32, p)) {
        expect_ints(s, want, p[0], 32);
    }
}

SCENE(clamped_rows) {
    enum { ROWS = 5, COLUMNS = 77 };
    int want[ROWS * COLUMNS];
    for (int i = 0; i < ROWS * COLUMNS; i++) {
        want[i] = 2 * s->in[i];
    }
    struct {
        uint64_t rows;
        int columns;
    } p = {s->d_in, COLUMNS};
    if (run(s, "clamped_rows", ROWS, 64, &p)) {
        expect_ints(s, want, p.rows, ROWS * COLUMNS);
    }
}

SCENE(clamped_row) {
    int want[100];
    for (int t = 0; t < 100; t++) {
        want[t] = s->in[t < 35 ? t + 64 : t];
    }
    uint64_t p[2] = {empty(s, 100), s->d_in};
    if (run(s, "clamped_row", 1, 128, p)) {
        expect_ints(s, want, p[0], 100);
    }
}
