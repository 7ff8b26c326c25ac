#include "common/bench/machine.h"

#include <dirent.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "common/bench/bench.h"
#include "common/testing/testing.h"

/* Threads of this process that have not ended. */
static int count_threads(void) {
    int count = 0;
    DIR *folder = opendir("/proc/self/task");
    for (struct dirent *entry; folder != NULL && (entry = readdir(folder)) != NULL;) {
        count += entry->d_name[0] != '.';
    }
    if (folder != NULL) {
        closedir(folder);
    }
    return count;
}

/* A thread that was joined may still be on its way out: waits for that, ten seconds at most. */
static int threads_at_last(int want) {
    for (int i = 0; i < 1000 && count_threads() > want; i++) {
        usleep(10000);
    }
    return count_threads();
}

/* Address space in use, in bytes. */
static size_t address_space(void) {
    size_t pages = 0;
    FILE *file = fopen("/proc/self/statm", "r");
    if (file != NULL) {
        if (fscanf(file, "%zu", &pages) != 1) {
            pages = 0;
        }
        fclose(file);
    }
    return pages * 4096;
}

C_TEST(machine, measures_something_plausible) {
    struct bench_machine machine;
    ASSERT_OK(bench_measure_machine(1, &machine));
    EXPECT_TRUE(machine.gflop_per_s > 0.1 && machine.gflop_per_s < 1e4);
    EXPECT_TRUE(machine.gb_per_s > 0.1 && machine.gb_per_s < 1e4);
}

C_TEST(machine, two_threads_do_not_do_less) {
    struct bench_machine one, two;
    if (bench_cpu_count() < 2) {
        TEST_SKIP("one CPU");
    }
    ASSERT_OK(bench_measure_machine(1, &one));
    ASSERT_OK(bench_measure_machine(2, &two));
    EXPECT_TRUE(two.gflop_per_s > 0.8 * one.gflop_per_s);
}

C_TEST(machine, wants_a_thread) {
    struct bench_machine machine;
    EXPECT_STATUS(STATUS_INVALID_ARGUMENT, bench_measure_machine(0, &machine));
}

/* The first thread starts, the second finds no room for its stack: none may be left waiting. */
C_TEST(machine, joins_its_threads_when_one_cannot_start) {
    enum { BUFFERS = 2 * (64 << 20) };
    const size_t stack = (size_t)4 << 30;
    struct rlimit before;
    pthread_attr_t usual, huge;
    ASSERT_TRUE(getrlimit(RLIMIT_AS, &before) == 0);
    ASSERT_TRUE(pthread_getattr_default_np(&usual) == 0 && pthread_attr_init(&huge) == 0);
    ASSERT_TRUE(pthread_attr_setstacksize(&huge, stack) == 0);
    struct rlimit limit = {.rlim_cur = address_space() + BUFFERS + stack + stack / 2,
                           .rlim_max = before.rlim_max};
    ASSERT_TRUE(pthread_setattr_default_np(&huge) == 0);
    int threads = count_threads();
    ASSERT_TRUE(setrlimit(RLIMIT_AS, &limit) == 0);
    struct bench_machine machine;
    enum status status = bench_measure_machine(2, &machine);
    EXPECT_TRUE(setrlimit(RLIMIT_AS, &before) == 0);
    EXPECT_TRUE(pthread_setattr_default_np(&usual) == 0);
    EXPECT_STATUS(STATUS_OUT_OF_MEMORY, status);
    EXPECT_INT_EQ(threads, threads_at_last(threads));
    pthread_attr_destroy(&huge);
    pthread_attr_destroy(&usual);
}
