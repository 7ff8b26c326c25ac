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
    double cold;      /* until then a call takes three times as long */
    uint64_t key;     /* of the calls */
    struct rng rng;   /* when threads are interrupted */
    struct team team; /* under test */
};

static struct machine machine_create(int cores, int busy, double call) {
    return (struct machine){.cores = cores,
                            .busy = busy,
                            .call = call,
                            .key = 7,
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
    seconds *= m->now < m->cold ? 3.0 : 1.0;
    cpu_team_add(&m->team, m->key, 1.0, m->now, m->now + seconds);
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

/* A model has several kinds of calls; more than there are places for do no harm. */
/* A prompt's calls and those of the tokens behind it differ in shape; on an idle machine neither
   may end with fewer threads, wherever in a trial the one follows the other. */
C_TEST(team, calls_of_a_new_kind_end_a_trial) {
    for (int calls = 1; calls < 2000; calls += 7) {
        struct machine m = machine_create(2, 0, 1e-4);
        for (int i = 0; i < calls; i++) {
            one_call(&m);
        }
        m.key = 8;
        EXPECT_TRUE(speed(&m, 0.3) > 0.9 * 1e-4 / (0.5e-4 + 5e-6));
    }
}

/* The first calls read weights that are not in memory yet, on any number of threads. */
C_TEST(team, a_slow_start_is_no_reason_for_fewer_threads) {
    struct machine m = machine_create(2, 0, 1e-4);
    m.cold = 0.02;
    for (int i = 0; i < 4000; i++) {
        one_call(&m);
        EXPECT_TRUE(cpu_team_threads(&m.team) == 2 || m.team.trial.threads == 1);
    }
}

C_TEST(team, kinds_are_kept_apart) {
    struct machine m = machine_create(2, 1, 1e-4);
    for (uint64_t i = 0; m.now < 1.0; i++) {
        int threads = cpu_team_threads(&m.team);
        double work = (double)(1 + i % 7), seconds = work * 1e-4 / threads;
        seconds += threads > 1 && rng_below(&m.rng, 8) == 0 ? 0.004 : 0.0;
        cpu_team_add(&m.team, (uint64_t)(1 + i % 7) << 40, work, m.now, m.now + seconds);
        m.now += seconds;
    }
    EXPECT_INT_EQ(1, m.team.now);
    for (uint64_t i = 0; i < 1000; i++) {
        cpu_team_add(&m.team, i % 100 + 1, 1.0, m.now, m.now + 1e-4);
        m.now += 1e-4;
    }
    EXPECT_TRUE(m.team.now >= 1 && m.team.now <= 2);
}
