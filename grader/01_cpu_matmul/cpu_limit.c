#include "grader/01_cpu_matmul/cpu_limit.h"

#include <math.h>

#include "common/bench/roofline.h"

enum status cpu_limit_create(struct cpu_limit *limit, int threads, struct cpu_work work,
                             struct error *error) {
    const struct cpu_probe_options all = {.threads = threads, .buffer_bytes = (size_t)work.bytes},
                                   single = {.threads = 1, .buffer_bytes = (size_t)work.bytes};
    *limit = (struct cpu_limit){.work = work};
    TRY(cpu_probe_create(&limit->all, &all, error));
    return cpu_probe_create(&limit->single, &single, error);
}

void cpu_limit_free(struct cpu_limit *limit) {
    cpu_probe_free(limit->all);
    cpu_probe_free(limit->single);
    limit->all = limit->single = NULL;
}

/* The faster one counts of both units. */
static void add_run(struct roofline *roofs, double flops_per_s, double bytes_per_s) {
    roofs->flops_per_s = fmax(roofs->flops_per_s, flops_per_s);
    roofs->bytes_per_s = fmax(roofs->bytes_per_s, bytes_per_s);
}

static double least_ms(struct cpu_probe *probe, const struct cpu_work *work, int times,
                       double *ran_ms) {
    struct roofline roofs = {0}, ran = {0};
    for (int i = 0; i < times; i++) {
        double flops_per_s = cpu_probe_arithmetic(probe, work->flops);
        double flops_stretch = cpu_probe_stretch(probe);
        double bytes_per_s = cpu_probe_read(probe, (size_t)work->bytes, work->loops);
        add_run(&roofs, flops_per_s, bytes_per_s);
        add_run(&ran, flops_per_s * flops_stretch, bytes_per_s * cpu_probe_stretch(probe));
    }
    *ran_ms = roofline_least_ms(&ran, work->flops, work->bytes);
    return roofline_least_ms(&roofs, work->flops, work->bytes);
}

double cpu_limit_ms(struct cpu_limit *limit, int times, double *ran_ms) {
    double all_ran, single_ran;
    double all = least_ms(limit->all, &limit->work, times, &all_ran);
    double single = least_ms(limit->single, &limit->work, times, &single_ran);
    *ran_ms = fmin(all_ran, single_ran);
    return fmin(all, single);
}
