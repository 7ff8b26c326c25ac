/**
 * @file team_test.c
 * @brief The team on machines that are made up: how long a call takes is a function of the threads.
 */
#include "common/cpu/team.h"

#include "common/base/rng.h"
#include "common/testing/testing.h"

/* A machine, and how long the model has run on it. */
struct machine {
    int cores, busy;  /* busy: cores on which another process runs */
    double call;      /* seconds of a call on one thread */
    double now;       /* the clock */
    double used;      /* seconds of work that were done, as one thread counts them */
    struct rng rng;   /* when threads are interrupted */
    struct team team; /* under test */
};

static struct machine machine_create(int cores, int busy, double call) {
    return (struct machine){.cores = cores,
                            .busy = busy,
                            .call = call,
                            .rng = rng_create(1),
                            .team = cpu_team_create(cores)};
}

/* Where threads share a core with other work, one call in eight waits 4 ms for the late one. */
static void one_call(struct machine *m) {
    int threads = cpu_team_threads(&m->team);
    double seconds = m->call / threads + (threads > 1 ? 5e-6 : 0.0);
    if (threads > m->cores - m->busy && rng_below(&m->rng, 8) == 0) {
        seconds += 0.004;
    }
    cpu_team_add(&m->team, 7, 1.0, m->now, m->now + seconds);
    m->now += seconds;
    m->used += m->call;
}

/* @return how many times as fast as one thread, over `seconds` */
static double speed(struct machine *m, double seconds) {
    double start = m->now, used = m->used;
    while (m->now < start + seconds) {
        one_call(m);
    }
    return (m->used - used) / (m->now - start);
}

C_TEST(team, one_thread_never_changes) {
    struct machine m = machine_create(1, 0, 1e-4);
    EXPECT_NEAR(1.0, speed(&m, 1.0), 1e-9);
    EXPECT_INT_EQ(1, cpu_team_threads(&m.team));
}

C_TEST(team, an_idle_machine_gets_all_threads) {
    struct machine m = machine_create(2, 0, 1e-4), large = machine_create(16, 0, 1e-3);
    EXPECT_INT_EQ(2, cpu_team_threads(&m.team));
    EXPECT_TRUE(speed(&m, 5.0) > 0.97 * 1e-4 / (0.5e-4 + 5e-6));
    EXPECT_TRUE(speed(&large, 5.0) > 0.97 * 1e-3 / (1e-3 / 16 + 5e-6));
}

C_TEST(team, beside_a_busy_process_two_cores_are_as_fast_as_one_thread) {
    struct machine m = machine_create(2, 1, 1e-4);
    EXPECT_TRUE(speed(&m, 0.5) > 0.4); /* it has to find out */
    EXPECT_TRUE(speed(&m, 5.0) > 0.9);
}

C_TEST(team, calls_that_take_long_need_few_trials) {
    struct machine m = machine_create(2, 1, 0.02), idle = machine_create(2, 0, 0.02);
    EXPECT_TRUE(speed(&m, 10.0) > 0.9);
    EXPECT_TRUE(speed(&idle, 10.0) > 1.9);
}

C_TEST(team, many_cores_keep_those_that_are_free) {
    struct machine m = machine_create(16, 3, 1e-3);
    speed(&m, 2.0);
    EXPECT_TRUE(speed(&m, 5.0) > 6.0); /* 8 threads */
}

C_TEST(team, load_that_comes_and_goes_is_followed) {
    struct machine m = machine_create(2, 0, 1e-4);
    speed(&m, 3.0);
    m.busy = 1;
    EXPECT_TRUE(speed(&m, 2.0) > 0.8);
    m.busy = 0;
    speed(&m, 4.0);
    EXPECT_TRUE(speed(&m, 3.0) > 1.7);
}

C_TEST(team, one_interruption_changes_nothing) {
    struct machine m = machine_create(2, 0, 1e-4);
    speed(&m, 1.0);
    cpu_team_add(&m.team, 7, 1.0, m.now, m.now + 0.004);
    m.now += 0.004;
    EXPECT_TRUE(speed(&m, 0.5) > 1.7);
}
