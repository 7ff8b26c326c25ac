/* The driver around the tables: flags, GPU, shapes, further parts. */
#include "common/bench/ladder/ladder_bench.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/file.h"
#include "common/base/terminal.h"
#include "common/bench/device/device_peaks.h"
#include "common/bench/device/kernel_profile.h"
#include "common/bench/ladder/ladder_columns.h"

/* Device memory on simt is the host's. */
#define SIMT_BYTES ((size_t)1 << 30)

/* All that a run needs. */
struct driver {
    const struct ladder_bench *bench;
    struct ladder_setup *setup;
    struct ladder_shape shape; /* of --shape */
};

enum status ladder_parse_sizes(const char *text, const char *letters, struct ladder_shape *shape,
                               struct error *error) {
    static const char *const numbers[] = {"no", "one size", "two sizes", "three sizes",
                                          "four sizes"};
    size_t *sizes[LADDER_SIZES], count = 1;
    for (const char *p = letters; *p != '\0'; p++) {
        count += *p == ',';
    }
    for (size_t i = 0; i < count; i++) {
        sizes[i] = &shape->sizes[i];
    }
    return bench_parse_sizes(text, sizes, count)
               ? STATUS_OK
               : error_set(error, STATUS_INVALID_ARGUMENT,
                           "--shape wants %s %s, each at least 1, not '%s'", numbers[count],
                           letters, text);
}

enum status ladder_check_memory(const struct ladder_setup *setup, const struct ladder_shape *shape,
                                size_t sizes, size_t bytes, struct error *error) {
    char text[128] = "";
    size_t used = 0, limit = setup->gpu.modelled ? SIMT_BYTES : setup->gpu.memory_bytes;
    if (bytes <= limit) {
        return STATUS_OK;
    }
    for (size_t i = 0; i < sizes; i++) {
        used += (size_t)snprintf(text + used, sizeof text - used, "%s%zu", i > 0 ? "," : "",
                                 shape->sizes[i]);
    }
    return error_set(error, STATUS_OUT_OF_MEMORY,
                     "--shape %s needs %zu bytes of device memory, %s has %zu", text, bytes,
                     setup->gpu.modelled ? "simt" : setup->gpu.name, limit);
}

enum status ladder_check_products(const struct ladder_setup *setup,
                                  const struct ladder_shape *shape, double most,
                                  struct error *error) {
    const size_t M = shape->sizes[0], N = shape->sizes[1], K = shape->sizes[2];
    double products = (double)M * (double)N * (double)K;
    return !setup->gpu.modelled || products <= most
               ? STATUS_OK
               : error_set(error, STATUS_INVALID_ARGUMENT,
                           "--shape %zu,%zu,%zu: %.3g products take simt very long; at most %.3g "
                           "here",
                           M, N, K, products, most);
}

enum status ladder_parse_name(const char *text, const char *(*name)(size_t i), const char *wanted,
                              int *value, struct error *error) {
    for (size_t i = 0; name(i) != NULL; i++) {
        if (strcmp(text, name(i)) == 0) {
            *value = (int)i;
            return STATUS_OK;
        }
    }
    return error_set(error, STATUS_INVALID_ARGUMENT, "%s, not '%s'", wanted, text);
}

/* What the flags say beyond their types. */
static enum status check(void *argument, struct error *error) {
    struct driver *d = argument;
    const struct ladder_bench *b = d->bench;
    if (b->check_options != NULL) {
        TRY(b->check_options(d->setup, error));
    }
    if (d->setup->shape_text != NULL) {
        TRY(b->parse_shape(d->setup, &d->shape, error));
    }
    if (d->setup->plot != NULL) {
        TRY(file_check_writable(d->setup->plot, error));
    }
    return d->setup->step != NULL ? bench_program_check_step(d->setup->step, b->step, error)
                                  : STATUS_OK;
}

/* Opens the GPU, measures its roofs, and opens cuBLAS where that is wanted and installed. */
static enum status open_gpu(struct driver *d, struct error *error) {
    struct ladder_setup *setup = d->setup;
    TRY(device_open(error));
    TRY(device_properties(&setup->gpu, error));
    if (setup->shape_text != NULL) {
        TRY(d->bench->check_shape(setup, &d->shape, error));
    }
    if (d->bench->prepare != NULL) {
        TRY(d->bench->prepare(setup, error));
    }
    if (d->bench->needs_roofs) {
        TRY(device_peaks(&setup->roofs, NULL, error));
    }
    struct error absent = {0};
    if (d->bench->peer.cublas && cublas_open(&setup->cublas, &absent) == STATUS_OK) {
        cublas_name(setup->cublas, setup->cublas_name, sizeof setup->cublas_name);
    }
    return STATUS_OK;
}

static void print_conditions(const struct driver *d) {
    char headline[400], more[400];
    const struct ladder_bench *b = d->bench;
    printf("%s%s%s%s\n", b->subject != NULL ? b->subject : "", b->subject != NULL ? ": " : "",
           device_bench_headline(&d->setup->gpu, headline, sizeof headline),
           b->conditions != NULL ? b->conditions(d->setup, more, sizeof more) : "");
}

/* A wrong step does not keep later tables from being measured: *wrong receives its status. */
static enum status run_tables(const struct driver *d, const struct ladder_shape *shape, bool last,
                              enum status *wrong, struct error *error) {
    const struct ladder_bench *b = d->bench;
    for (size_t i = 0; i < (b->tables > 0 ? b->tables : 1); i++) {
        struct ladder_shape table = *shape;
        if (b->table != NULL && !b->table(d->setup, &table, i)) {
            continue;
        }
        enum status status = ladder_table(b, d->setup, &table, last, error);
        if (status != STATUS_MISMATCH) {
            TRY(status);
            continue;
        }
        *wrong = status;
    }
    return STATUS_OK;
}

static enum status run_ladder(const struct driver *d, struct error *error) {
    const struct ladder_setup *setup = d->setup;
    const struct ladder_shapes one = {&d->shape, 1};
    const struct ladder_shapes shapes =
        setup->shape_text != NULL ? one : d->bench->shapes[2 * setup->gpu.modelled + setup->quick];
    enum status wrong = STATUS_OK;
    for (size_t i = 0; i < shapes.count; i++) {
        const struct ladder_shape *shape = &shapes.list[i];
        if (d->bench->check_shape(setup, shape, NULL) != STATUS_OK) {
            continue; /* a small GPU */
        }
        TRY(run_tables(d, shape, i + 1 == shapes.count || setup->first, &wrong, error));
        if (setup->first) {
            break;
        }
    }
    return wrong;
}

/* A further part; with --why also what limits the longest kernel in it. */
static enum status run_part(const struct driver *d, ladder_part *part, struct error *error) {
    struct simt_profile profile;
    (void)kernel_profile_longest(&profile); /* of what ran before */
    TRY(part(d->setup, error));
    if (d->setup->why && kernel_profile_longest(&profile)) {
        printf("  the longest kernel:\n");
        kernel_profile_print(&profile);
    }
    return STATUS_OK;
}

static enum ladder_scope scope_of(const struct driver *d) {
    if (d->setup->first && d->bench->step != NULL) {
        return LADDER_ALONE;
    }
    if (d->bench->scope != NULL) {
        return d->bench->scope(d->setup);
    }
    if (d->bench->step == NULL) {
        return LADDER_PARTS_ALONE;
    }
    return d->setup->shape_text != NULL || d->setup->step != NULL ? LADDER_ALONE : LADDER_AND_PARTS;
}

static enum status measure(struct driver *d, struct error *error) {
    TRY(open_gpu(d, error));
    print_conditions(d);
    const enum ladder_scope scope = scope_of(d);
    if (scope != LADDER_PARTS_ALONE) {
        TRY(run_ladder(d, error));
    }
    for (size_t i = 0; i < d->bench->parts_count && scope != LADDER_ALONE; i++) {
        TRY(run_part(d, d->bench->parts[i], error));
    }
    bench_print_recorded();
    return STATUS_OK;
}

static enum status run(void *argument, struct error *error) {
    struct driver *d = argument;
    if (d->bench->instead != NULL && d->bench->instead(d->setup)) {
        return STATUS_OK;
    }
    enum status status = measure(d, error);
    cublas_close(d->setup->cublas);
    return status;
}

/* The lab's flags, and behind them those that all labs have; NULL without memory. */
static struct flag *make_table(const struct ladder_bench *bench, const struct flag *lab,
                               size_t *count, struct ladder_setup *setup) {
    const struct flag common[] = {
        {"why", 'w', FLAG_SWITCH, &setup->why, NULL, "what limits each kernel, and what to try"},
        {"first", 0, FLAG_SWITCH, &setup->first, NULL, "only the ladder, on its first shape"},
    };
    const size_t added = bench->step != NULL ? 2 : 1;
    struct flag *table = calloc(*count + added, sizeof *table);
    if (table != NULL) {
        memcpy(table, lab, *count * sizeof *table);
        memcpy(table + *count, common, added * sizeof *table);
        *count += added;
    }
    return table;
}

int ladder_bench_main(const struct ladder_bench *bench, const struct flag *lab, size_t count,
                      struct ladder_setup *setup, int argc, char **argv) {
    struct driver driver = {.bench = bench, .setup = setup};
    struct flag *table = make_table(bench, lab, &count, setup);
    const struct flags flags = {.program = "bench",
                                .positional = "",
                                .summary = bench->summary,
                                .table = table,
                                .count = count,
                                .epilogue = bench->epilogue};
    const struct bench_program program = {.flags = &flags, .check = check, .run = run};
    int code = table != NULL ? bench_program_main(&program, argc, argv, &driver)
                             : report_failure("bench", NULL, STATUS_OUT_OF_MEMORY);
    free(table);
    return code;
}
