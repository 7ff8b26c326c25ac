/*
 * How many warp instructions simt runs in a second: products of matrices and kernels of everyday
 * programs at each level of checks, on one CPU thread and on all. With arguments only the kernels
 * whose names begin with one of them, on one CPU thread.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "common/base/file.h"
#include "common/base/terminal.h"
#include "common/bench/bench.h"
#include "common/simt/core/launch/launch.h"

/* The kernels take three matrices of N x N floats and N; in which order the matrices come does not
 * matter to the speed. */
struct subject {
    const char *name, *path, *kernel;
    uint32_t N, grid[2], threads[2];
};

static const struct subject subjects[] = {
    {"16x16 tile, N 512", CORE_PTX, "sgemm_tile", 512, {32, 32}, {16, 16}},
    {"8x8 a thread, N 1024",
     SGEMM_PTX,
     "_Z15sgemm_registersPK6float4S1_PS_i",
     1024,
     {8, 8},
     {256, 1}},
    {"matmul, N 384", SPEED_PTX, "matmul", 384, {12, 12}, {32, 32}},
    {"filter_rows, N 1024", SPEED_PTX, "filter_rows", 1024, {8, 256}, {16, 4}},
    {"filter_columns, N 1024", SPEED_PTX, "filter_columns", 1024, {64, 16}, {16, 8}},
    {"merge_sort, 256 K keys", SPEED_PTX, "merge_sort", 512, {256, 1}, {512, 1}},
    {"monte_carlo, 64 draws", SPEED_PTX, "monte_carlo", 64, {16, 1}, {256, 1}},
};

/* A loaded kernel with its memory. */
struct loaded {
    struct simt_memory *memory;
    struct simt_global_shadow *shadow;
    struct simt_module *module;
    uint64_t matrices[3];
};

static enum status load_matrices(struct loaded *l, uint32_t N) {
    size_t count = (size_t)N * N;
    for (int m = 0; m < 3; m++) {
        TRY(simt_memory_alloc(l->memory, count * sizeof(float), 256, "cudaMalloc",
                              &l->matrices[m]));
        float *values = simt_memory_host(l->memory, l->matrices[m]);
        uint32_t random = 1;
        for (size_t i = 0; i < count; i++) {
            random = random * 1664525u + 1013904223u;
            values[i] = (float)(random >> 8) * 0x1p-24f;
        }
        simt_memory_mark(l->memory, l->matrices[m], count * sizeof(float));
    }
    return STATUS_OK;
}

static enum status load(struct loaded *l, const struct subject *subject, struct error *error) {
    char *text = NULL;
    size_t size = 0;
    struct ptx_module *ptx = NULL;
    TRY(simt_memory_create(&l->memory, (size_t)1 << 30));
    TRY(simt_global_shadow_create(&l->shadow, l->memory));
    TRY(file_read(subject->path, (size_t)1 << 24, &text, &size, error));
    enum status parsed = ptx_parse(&ptx, text, size, error);
    free(text);
    TRY(parsed);
    TRY(simt_module_load(&l->module, ptx, l->memory, error));
    return load_matrices(l, subject->N);
}

static void unload(struct loaded *l) {
    simt_module_unload(l->module);
    simt_global_shadow_free(l->shadow);
    simt_memory_free(l->memory);
}

static uint64_t all_instructions(const struct simt_counters *counters) {
    uint64_t sum = 0;
    for (int n = 0; n < SIMT_CLASS_COUNT; n++) {
        sum += counters->instructions[n];
    }
    return sum;
}

/* Seconds that all threads of the process together had a core. */
static double core_seconds(void) {
    struct timespec t = {0};
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

/* Seconds on the clock and of cores, each of the fastest of three launches. */
struct times {
    double wall, core;
};

static enum status time_launches(const struct simt_launch *launch, const char *name,
                                 struct simt_counters *counters, struct times *best,
                                 struct error *error) {
    *best = (struct times){1e30, 1e30};
    for (int run = 0; run < 3; run++) {
        struct simt_fault fault;
        double start = bench_now(), core_start = core_seconds();
        enum status status = simt_launch_run(launch, counters, &fault, error);
        double seconds = bench_now() - start;
        double core = core_seconds() - core_start;
        best->wall = seconds < best->wall ? seconds : best->wall;
        best->core = core < best->core ? core : best->core;
        TRY(status);
        if (fault.kind != SIMT_FAULT_NONE) {
            return error_set(error, STATUS_MISMATCH, "%s: %s", name, fault.text);
        }
    }
    return STATUS_OK;
}

static const struct level {
    const char *name;
    enum simt_check check;
} levels[] = {{"off", SIMT_CHECK_OFF}, {"bounds", SIMT_CHECK_BOUNDS}, {"full", SIMT_CHECK_FULL}};

/* Times a kernel; prints one row. Instructions a second of a core suffer less
 * from others who use the machine than those a second do. */
static enum status measure(const struct loaded *l, const struct subject *subject,
                           const struct level *level, int host_threads, struct error *error) {
    const uint64_t *m = l->matrices;
    struct {
        uint64_t matrices[3];
        uint32_t N;
    } parameters = {{m[0], m[1], m[2]}, subject->N};
    const struct simt_launch launch = {
        .module = l->module,
        .kernel = subject->kernel,
        .grid = {subject->grid[0], subject->grid[1], 1},
        .threads = {subject->threads[0], subject->threads[1], 1},
        .parameters = &parameters,
        .check = level->check,
        .global_shadow = l->shadow,
        .host_threads = host_threads,
        /* as on an H200 that holds eight of these blocks on a multiprocessor */
        .l1_bytes = (size_t)28 << 10,
        .l2_bytes = (size_t)60 << 20,
        .resident_blocks = 1056,
    };
    struct simt_counters counters;
    struct times best;
    TRY(time_launches(&launch, subject->name, &counters, &best, error));
    uint64_t instructions = all_instructions(&counters);
    double millions = (double)instructions / 1e6;
    printf("%-22s %-7s %7d %12.1f %9.3f %9.1f %10.1f\n", subject->name, level->name, host_threads,
           millions, best.wall, millions / best.wall, millions / best.core);
    return STATUS_OK;
}

static enum status measure_all(const struct subject *subject, bool one_thread,
                               struct error *error) {
    struct loaded loaded = {0};
    enum status status = load(&loaded, subject, error);
    for (size_t n = 0; n < sizeof levels / sizeof *levels && status == STATUS_OK; n++) {
        status = measure(&loaded, subject, &levels[n], 1, error);
        if (status == STATUS_OK && bench_cpu_count() > 1 && !one_thread) {
            status = measure(&loaded, subject, &levels[n], bench_cpu_count(), error);
        }
    }
    unload(&loaded);
    return status;
}

static bool is_wanted(const struct subject *subject, int argc, char **argv) {
    bool wanted = argc == 1;
    for (int n = 1; n < argc; n++) {
        wanted = wanted || strncmp(subject->name, argv[n], strlen(argv[n])) == 0;
    }
    return wanted;
}

int main(int argc, char **argv) {
    char cpu[192];
    struct error error = {0};
    printf("%s, %d CPUs\n", bench_cpu_name(cpu, sizeof cpu), bench_cpu_count());
    printf("%-22s %-7s %7s %12s %9s %9s %10s\n", "kernel", "check", "threads", "M warp instr",
           "seconds", "M/s", "M/s a core");
    for (size_t n = 0; n < sizeof subjects / sizeof *subjects; n++) {
        enum status status = STATUS_OK;
        if (is_wanted(&subjects[n], argc, argv)) {
            status = measure_all(&subjects[n], argc > 1, &error);
        }
        if (status != STATUS_OK) {
            return report_failure("launch_bench", &error, status);
        }
    }
    return 0;
}
