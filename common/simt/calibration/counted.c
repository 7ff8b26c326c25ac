/*
 * Compares simt's counts for the calibration kernels with those of an H200.
 *
 * counted_h200.csv holds counters of Nsight Compute, which empties the caches
 * before each kernel; so does this program, by setting 64 MiB. Run on simt, with
 * the table's name in $COUNTED. The times that simt modelled go into
 * $MODELLED/SET.jsonl, as compare wants them.
 */
#include <cuda_runtime_api.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/file.h"
#include "common/simt/calibration/kernels.h"
#include "common/simt/simt.h"
#include "common/testing/testing.h"

enum { MOST_ROWS = 64, NAME = 48, SECTOR = 32, SLACK = 16384 /* bytes: the GPU's own */ };

/* One kernel: the columns of the table, or the same from simt. */
struct counted {
    char set[8], name[NAME];
    double load_requests, load_sectors, load_hits, store_requests, store_sectors;
    double load_wavefronts, store_wavefronts, load_conflicts, store_conflicts;
    double dram_read, dram_written;
};

struct table {
    struct counted rows[MOST_ROWS];
    size_t count;
};

static bool read_row(const char *line, struct counted *row) {
    return sscanf(line, "%7[^,],%47[^,],%lf,%lf,%lf,%lf,%lf,%lf,%lf,%lf,%lf,%lf,%lf", row->set,
                  row->name, &row->load_requests, &row->load_sectors, &row->load_hits,
                  &row->store_requests, &row->store_sectors, &row->load_wavefronts,
                  &row->store_wavefronts, &row->load_conflicts, &row->store_conflicts,
                  &row->dram_read, &row->dram_written) == 13;
}

/* Rows of one set. @return false, and the test has failed, when the table is not as it should be */
static bool read_table(struct table *table, const char *set) {
    char *text = NULL;
    size_t size = 0;
    struct error error = {0};
    const char *path = getenv("COUNTED");
    *table = (struct table){.count = 0};
    enum status status = file_read(path != NULL ? path : "", (size_t)1 << 20, &text, &size, &error);
    if (status != STATUS_OK) {
        TEST_FAIL("$COUNTED: %s", error_text(&error, status));
        return false;
    }
    char *rest = NULL;
    strtok_r(text, "\n", &rest);
    for (char *line; (line = strtok_r(NULL, "\n", &rest)) != NULL && table->count < MOST_ROWS;) {
        struct counted row;
        if (!read_row(line, &row)) {
            TEST_FAIL("%s: a row without all columns: %s", path, line);
        } else if (strcmp(row.set, set) == 0) {
            table->rows[table->count++] = row;
        }
    }
    free(text);
    return true;
}

static void check(cudaError_t error, const char *what) {
    if (error != cudaSuccess) {
        TEST_FAIL("%s: %s", what, cudaGetErrorString(error));
    }
}

struct buffers {
    float *out, *x, *y;
};

static void allocate(struct buffers *b) {
    size_t bytes = calibration_floats() * sizeof(float);
    float *host = malloc(bytes);
    ASSERT_TRUE(host != NULL);
    for (size_t i = 0; i < calibration_floats(); i++) {
        host[i] = (float)(i * 2654435761u % 1024) / 512.0f - 1.0f;
    }
    check(cudaMalloc((void **)&b->out, bytes), "cudaMalloc");
    check(cudaMalloc((void **)&b->x, bytes), "cudaMalloc");
    check(cudaMalloc((void **)&b->y, bytes), "cudaMalloc");
    check(cudaMemcpy(b->x, host, bytes, cudaMemcpyHostToDevice), "cudaMemcpy");
    check(cudaMemcpy(b->y, host, bytes, cudaMemcpyHostToDevice), "cudaMemcpy");
    free(host);
}

static void release(const struct buffers *b) {
    check(cudaFree(b->out), "cudaFree");
    check(cudaFree(b->x), "cudaFree");
    check(cudaFree(b->y), "cudaFree");
}

/* A set of kernels. */
struct set {
    const char *id; /* in the table */
    const struct calibration_kernel *kernels;
    size_t count;
    bool warm; /* the time is that of a second run */
};

/* @return modelled milliseconds */
static float time_kernel(const struct set *set, size_t number, const struct buffers *b) {
    cudaEvent_t start, stop;
    float ms = NAN;
    check(cudaEventCreate(&start), "event");
    check(cudaEventCreate(&stop), "event");
    check(cudaEventRecord(start, 0), "event");
    set->kernels[number].launch(b->out, b->x, b->y);
    check(cudaEventRecord(stop, 0), "event");
    check(cudaEventSynchronize(stop), set->kernels[number].name);
    check(cudaEventElapsedTime(&ms, start, stop), "event");
    cudaEventDestroy(start);
    cudaEventDestroy(stop);
    return ms;
}

/* Runs a kernel alone, with nothing of use in L2. */
static struct simt_counters count(const struct simt_api *api, const struct set *set, size_t number,
                                  const struct buffers *b, float *ms) {
    struct simt_totals before, after;
    check(cudaMemset(b->out, 0, calibration_floats() * sizeof(float)), "cudaMemset");
    api->read_totals(&before);
    *ms = time_kernel(set, number, b);
    api->read_totals(&after);
    return simt_totals_between(&before, &after).counters;
}

/* $MODELLED/SET.jsonl, or NULL and the test has failed. */
static FILE *open_times(const struct set *set) {
    char path[1024];
    const char *folder = getenv("MODELLED");
    snprintf(path, sizeof path, "%s/%s.jsonl", folder != NULL ? folder : "", set->id);
    FILE *times = fopen(path, "w");
    if (times == NULL) {
        TEST_FAIL("$MODELLED: %s cannot be written", path);
    }
    return times;
}

static bool is_near(double value, double wanted, double tolerance) {
    return fabs(value - wanted) <= tolerance * wanted;
}

static double ratio(double value, double wanted) {
    return wanted > 0 ? value / wanted : value > 0 ? INFINITY : 1;
}

/* Requests and sectors: within 2%. */
static void expect_global(const struct simt_counters *c, const struct counted *gpu) {
    EXPECT_TRUE(is_near((double)c->global_load_requests, gpu->load_requests, 0.02));
    EXPECT_TRUE(is_near((double)c->global_load_sectors, gpu->load_sectors, 0.02));
    EXPECT_TRUE(is_near((double)c->global_store_requests, gpu->store_requests, 0.02));
    EXPECT_TRUE(is_near((double)c->global_store_sectors, gpu->store_sectors, 0.02));
}

static double wavefronts_of(const struct simt_counters *c) {
    return (double)(c->shared_load_wavefronts + c->shared_store_wavefronts);
}

static void print_row(const struct simt_counters *c, const struct counted *gpu) {
    double conflicts = gpu->load_conflicts + gpu->store_conflicts;
    double missed = (double)(c->global_load_sectors - c->l1_hit_sectors);
    printf("%-19s %7.4f %7.4f %7.4f %11llu %11.0f %7.3f %7.3f %7.3f\n", gpu->name,
           ratio((double)c->global_load_sectors, gpu->load_sectors),
           ratio((double)c->global_store_sectors, gpu->store_sectors),
           ratio(wavefronts_of(c), gpu->load_wavefronts + gpu->store_wavefronts),
           (unsigned long long)c->shared_bank_conflicts, conflicts,
           ratio((double)c->shared_bank_conflicts, conflicts),
           ratio(missed, gpu->load_sectors - gpu->load_hits),
           ratio((double)c->dram_bytes, gpu->dram_read + gpu->dram_written));
}

static void print_head(const char *title) {
    printf("%s: simt over H200; in full: bank conflicts\n"
           "%-19s %7s %7s %7s %11s %11s %7s %7s %7s\n",
           title, "kernel", "load", "store", "wave", "conflicts", "", "", "L1", "device");
    printf("%-19s %7s %7s %7s %11s %11s %7s %7s %7s\n", "", "sectors", "sectors", "fronts", "simt",
           "H200", "", "missed", "memory");
}

/* What a set of kernels is held to. */
struct limits {
    double wavefronts, missed, moved;
    size_t conflicts_right; /* kernels whose bank conflicts are within 10% */
    double conflicts_else;  /* of the others: difference as a share of their wavefronts */
};

/* Stores may rest in L2: the GPU has written back some, simt counts all. */
static void expect_moved(const struct simt_counters *c, const struct counted *gpu, double limit) {
    double least = gpu->dram_read + gpu->dram_written;
    double most = gpu->dram_read + fmax(gpu->dram_written, gpu->store_sectors * SECTOR);
    double moved = (double)c->dram_bytes;
    if (moved < least * (1 - limit) - SLACK || moved > most * (1 + limit) + SLACK) {
        TEST_FAIL("%s moves %.0f bytes of device memory, the H200 %.0f to %.0f", gpu->name, moved,
                  least, most);
    }
}

static void expect_caches(const struct simt_counters *c, const struct counted *gpu,
                          const struct limits *limits) {
    double missed = (double)(c->global_load_sectors - c->l1_hit_sectors);
    double gpu_missed = gpu->load_sectors - gpu->load_hits;
    double wavefronts = gpu->load_wavefronts + gpu->store_wavefronts;
    if (!is_near(wavefronts_of(c), wavefronts, limits->wavefronts)) {
        TEST_FAIL("%s: %.0f shared wavefronts, the H200 %.0f", gpu->name, wavefronts_of(c),
                  wavefronts);
    }
    if (!is_near(missed, gpu_missed, limits->missed)) {
        TEST_FAIL("%s: %.0f sectors missed L1, on the H200 %.0f", gpu->name, missed, gpu_missed);
    }
    expect_moved(c, gpu, limits->moved);
}

/* @return true when bank conflicts are within 10% */
static bool compare_conflicts(const struct simt_counters *c, const struct counted *gpu,
                              const struct limits *limits) {
    double conflicts = gpu->load_conflicts + gpu->store_conflicts;
    double off = fabs((double)c->shared_bank_conflicts - conflicts);
    double wavefronts = gpu->load_wavefronts + gpu->store_wavefronts;
    if (off > limits->conflicts_else * wavefronts && off > 0.1 * conflicts) {
        TEST_FAIL("%s: %llu bank conflicts, the H200 %.0f of %.0f wavefronts", gpu->name,
                  (unsigned long long)c->shared_bank_conflicts, conflicts, wavefronts);
    }
    return off <= 0.1 * conflicts;
}

static void compare_table(const struct simt_api *api, const struct set *set,
                          const struct table *table, const struct limits *limits, FILE *times) {
    struct buffers buffers = {NULL, NULL, NULL};
    size_t right = 0;
    allocate(&buffers);
    print_head(set->id);
    for (size_t n = 0; n < table->count; n++) {
        float ms;
        struct simt_counters counters = count(api, set, n, &buffers, &ms);
        if (set->warm) {
            ms = time_kernel(set, n, &buffers);
        }
        fprintf(times, "{\"kernel\": \"%s\", \"ms\": %.6f}\n", set->kernels[n].name, (double)ms);
        print_row(&counters, &table->rows[n]);
        expect_global(&counters, &table->rows[n]);
        expect_caches(&counters, &table->rows[n], limits);
        right += compare_conflicts(&counters, &table->rows[n], limits);
    }
    printf("bank conflicts within 10%%: %zu of %zu kernels\n", right, table->count);
    EXPECT_TRUE(right >= limits->conflicts_right);
    release(&buffers);
}

static void compare(const struct set *set, const struct limits *limits) {
    struct simt_api api;
    struct table table;
    if (!simt_find(&api)) {
        TEST_SKIP("this test counts on simt");
    }
    ASSERT_TRUE(read_table(&table, set->id));
    ASSERT_TRUE(table.count == set->count);
    FILE *times = open_times(set);
    if (times != NULL) {
        compare_table(&api, set, &table, limits, times);
        EXPECT_TRUE(fclose(times) == 0);
    }
}

/* The kernels that the way of counting was developed with. */
C_TEST(counted, as_on_the_gpu) {
    const struct limits limits = {.wavefronts = 0.1,
                                  .missed = 0.15,
                                  .moved = 0.1,
                                  .conflicts_right = 12,
                                  .conflicts_else = 0.07};
    const struct set fit = {"fit", calibration_fit, CALIBRATION_FIT, false};
    compare(&fit, &limits);
}

/* Others, which nothing was tuned for. What a block finds in L1 that its neighbours loaded is not
 * known to simt: gemv_block shares its vector so. */
C_TEST(counted, as_on_the_gpu_for_other_kernels) {
    const struct limits limits = {.wavefronts = 0.1,
                                  .missed = 1.0,
                                  .moved = 0.1,
                                  .conflicts_right = 12,
                                  .conflicts_else = 0.07};
    const struct set more = {"more", calibration_more, CALIBRATION_MORE, true};
    compare(&more, &limits);
}
