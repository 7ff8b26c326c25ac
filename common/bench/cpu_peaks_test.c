#include "common/bench/cpu_peaks.h"

#include <dirent.h>
#include <math.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "common/base/cpu.h"
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

C_TEST(cpu_peaks, measures_something_plausible) {
    struct cpu_peaks peaks;
    struct error error;
    ASSERT_OK(cpu_peaks(1, &peaks, &error));
    EXPECT_TRUE(peaks.flops_per_s > 1e8 && peaks.flops_per_s < 1e13);
    EXPECT_TRUE(peaks.bytes_per_s > 1e8 && peaks.bytes_per_s < 1e13);
}

C_TEST(cpu_peaks, wants_a_thread) {
    struct cpu_peaks peaks;
    struct error error;
    EXPECT_STATUS(STATUS_INVALID_ARGUMENT, cpu_peaks(0, &peaks, &error));
    EXPECT_STR_EQ("0 threads, vectors of 0 floats", error.message);
}

/* Runs the probe until it reaches `wanted` FLOP/s, many times at most. @return the best run's */
static double arithmetic(int threads, size_t lanes, double wanted, int most) {
    const struct cpu_probe_options options = {.threads = threads, .lanes = lanes};
    struct cpu_probe *probe;
    struct error error;
    double best = 0.0;
    if (cpu_probe_create(&probe, &options, &error) != STATUS_OK) {
        TEST_FAIL("%s", error.message);
        return 0.0;
    }
    EXPECT_TRUE(cpu_probe_read(probe, 4096, 1) == 0.0); /* it has no buffer */
    for (int i = 0; i < most && best <= wanted; i++) {
        best = fmax(best, cpu_probe_arithmetic(probe, 1e8));
    }
    cpu_probe_free(probe);
    return best;
}

enum { SOME_RUNS = 20, MANY_RUNS = 20000 }; /* beside other work most runs are slow */

C_TEST(cpu_peaks, two_threads_do_more) {
    if (bench_cpu_count() < 2) {
        TEST_SKIP("one CPU");
    }
    double wanted = 1.2 * arithmetic(1, 0, INFINITY, SOME_RUNS);
    EXPECT_TRUE(arithmetic(2, 0, wanted, MANY_RUNS) > wanted);
}

/* Were the short vectors' sums too few, or the long ones split, the ratio would be far from 2. */
C_TEST(cpu_peaks, longer_vectors_do_more) {
    if (cpu_vector_floats() < 8) {
        TEST_SKIP("vectors of %zu floats", cpu_vector_floats());
    }
    double wanted = 1.5 * arithmetic(1, 4, INFINITY, SOME_RUNS);
    EXPECT_TRUE(arithmetic(1, 8, wanted, MANY_RUNS) > wanted);
}

C_TEST(cpu_peaks, refuses_vectors_that_the_cpu_lacks) {
    const size_t wrong[] = {3, 2 * cpu_vector_floats()};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        const struct cpu_probe_options options = {.threads = 1, .lanes = wrong[i]};
        struct cpu_probe *probe;
        struct error error;
        EXPECT_STATUS(STATUS_INVALID_ARGUMENT, cpu_probe_create(&probe, &options, &error));
        EXPECT_TRUE(probe == NULL);
    }
}

/* Runs that reach over the buffer's end, of a buffer that is no multiple of anything. */
C_TEST(cpu_peaks, reads_round_and_round) {
    const struct cpu_probe_options options = {.threads = 3, .buffer_bytes = 100001};
    struct cpu_probe *probe;
    struct error error;
    ASSERT_OK(cpu_probe_create(&probe, &options, &error));
    const size_t bytes[] = {0, 1, 70000, 100001, 1000000};
    for (size_t i = 0; i < sizeof bytes / sizeof *bytes; i++) {
        EXPECT_TRUE(cpu_probe_read(probe, bytes[i], 1) > 0.0);
        EXPECT_TRUE(cpu_probe_read(probe, bytes[i], 7) > 0.0);
    }
    cpu_probe_free(probe);
}

/* Threads that share one processor wait for it half of the time; each has its own part to do. */
C_TEST(cpu_peaks, tells_how_long_its_threads_waited) {
    const struct cpu_probe_options options = {.threads = 2, .buffer_bytes = 1 << 20};
    struct cpu_probe *probe;
    struct error error;
    cpu_set_t before, one;
    ASSERT_TRUE(sched_getaffinity(0, sizeof before, &before) == 0);
    CPU_ZERO(&one);
    for (int cpu = 0; CPU_COUNT(&one) == 0; cpu++) {
        if (CPU_ISSET(cpu, &before)) {
            CPU_SET(cpu, &one);
        }
    }
    ASSERT_TRUE(sched_setaffinity(0, sizeof one, &one) == 0);
    enum status status = cpu_probe_create(&probe, &options, &error);
    EXPECT_TRUE(sched_setaffinity(0, sizeof before, &before) == 0);
    ASSERT_OK(status);
    EXPECT_TRUE(cpu_probe_arithmetic(probe, 4e8) > 0.0);
    EXPECT_TRUE(cpu_probe_stretch(probe) > 1.5);
    EXPECT_TRUE(cpu_probe_read(probe, 1 << 24, 7) > 0.0);
    EXPECT_TRUE(cpu_probe_stretch(probe) > 1.5);
    cpu_probe_free(probe);
}

/* The first thread starts, the second finds no room for its stack: none may be left waiting. */
C_TEST(cpu_peaks, joins_its_threads_when_one_cannot_start) {
    const size_t stack = (size_t)4 << 30;
    const struct cpu_probe_options options = {.threads = 2};
    struct rlimit before;
    pthread_attr_t usual, huge;
    ASSERT_TRUE(getrlimit(RLIMIT_AS, &before) == 0);
    ASSERT_TRUE(pthread_getattr_default_np(&usual) == 0 && pthread_attr_init(&huge) == 0);
    ASSERT_TRUE(pthread_attr_setstacksize(&huge, stack) == 0);
    struct rlimit limit = {.rlim_cur = address_space() + stack + stack / 2,
                           .rlim_max = before.rlim_max};
    ASSERT_TRUE(pthread_setattr_default_np(&huge) == 0);
    int threads = count_threads();
    ASSERT_TRUE(setrlimit(RLIMIT_AS, &limit) == 0);
    struct cpu_probe *probe;
    struct error error;
    enum status status = cpu_probe_create(&probe, &options, &error);
    EXPECT_TRUE(setrlimit(RLIMIT_AS, &before) == 0);
    EXPECT_TRUE(pthread_setattr_default_np(&usual) == 0);
    EXPECT_STATUS(STATUS_OUT_OF_MEMORY, status);
    EXPECT_INT_EQ(threads, threads_at_last(threads));
    pthread_attr_destroy(&huge);
    pthread_attr_destroy(&usual);
}
