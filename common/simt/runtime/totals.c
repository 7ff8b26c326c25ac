/**
 * @file totals.c
 * @brief The two functions beside CUDA's that the library exports; see common/simt/simt.h.
 */
#include "common/simt/runtime/state.h"
#include "common/simt/simt.h"

const char *simt_gpu_key(void);
void simt_read_totals(struct simt_totals *totals);

const char *simt_gpu_key(void) {
    struct runtime *runtime = runtime_enter();
    const char *key = runtime->settings.gpu->key;
    runtime_unlock(runtime);
    return key;
}

void simt_read_totals(struct simt_totals *totals) {
    struct runtime *runtime = runtime_enter();
    const struct report *report = &runtime->report;
    *totals = (struct simt_totals){
        .copies_to_device = report->copies_to_device,
        .copies_to_host = report->copies_to_host,
        .copies_on_device = report->copies_on_device,
        .sets = report->sets,
        .bytes_to_device = report->bytes_to_device,
        .bytes_to_host = report->bytes_to_host,
        .bytes_on_device = report->bytes_on_device,
        .bytes_set = report->bytes_set,
        .nanoseconds = runtime->clock,
    };
    for (const struct kernel_total *kernel = report->kernels; kernel != NULL;
         kernel = kernel->next) {
        totals->launches += kernel->launches;
        simt_counters_add(&totals->counters, &kernel->counters);
    }
    runtime_unlock(runtime);
}
