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

static double least_ms(struct cpu_probe *probe, const struct cpu_work *work, int times) {
    struct roofline roofs = {0};
    for (int i = 0; i < times; i++) {
        double flops_per_s = cpu_probe_arithmetic(probe, work->flops);
        double bytes_per_s = cpu_probe_read(probe, (size_t)work->bytes, work->loops);
        roofs.flops_per_s = fmax(roofs.flops_per_s, flops_per_s);
        roofs.bytes_per_s = fmax(roofs.bytes_per_s, bytes_per_s);
    }
    return roofline_least_ms(&roofs, work->flops, work->bytes);
}

double cpu_limit_ms(struct cpu_limit *limit, int times) {
    return fmin(least_ms(limit->all, &limit->work, times),
                least_ms(limit->single, &limit->work, times));
}
