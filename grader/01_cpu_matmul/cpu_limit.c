#include "grader/01_cpu_matmul/cpu_limit.h"

#include <math.h>

#include "common/bench/roofline.h"

enum status cpu_limit_create(struct cpu_limit *limit, int threads, struct cpu_work work,
                             struct error *error) {
    const struct cpu_probe_options options = {.threads = threads,
                                              .buffer_bytes = (size_t)work.bytes};
    *limit = (struct cpu_limit){.work = work};
    return cpu_probe_create(&limit->probe, &options, error);
}

void cpu_limit_free(struct cpu_limit *limit) {
    cpu_probe_free(limit->probe);
    limit->probe = NULL;
}

double cpu_limit_ms(struct cpu_limit *limit, int times) {
    const struct cpu_work *work = &limit->work;
    struct roofline roofs = {0};
    for (int i = 0; i < times; i++) {
        double flops_per_s = cpu_probe_arithmetic(limit->probe, work->flops);
        double bytes_per_s = cpu_probe_read(limit->probe, (size_t)work->bytes, work->loops);
        roofs.flops_per_s = fmax(roofs.flops_per_s, flops_per_s);
        roofs.bytes_per_s = fmax(roofs.bytes_per_s, bytes_per_s);
    }
    return roofline_least_ms(&roofs, work->flops, work->bytes);
}
