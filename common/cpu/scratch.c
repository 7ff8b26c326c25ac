#include "common/cpu/scratch.h"

#include <stdlib.h>

#include "common/base/checked.h"

void cpu_scratch_free(struct cpu_scratch *scratch) {
    free(scratch->memory);
    *scratch = (struct cpu_scratch){0};
}

/* Twice as much as is asked for: a decoder needs a little more every token. */
enum status cpu_scratch_reserve(struct cpu_scratch *scratch, size_t count, size_t floats) {
    size_t all, bytes;
    if (!checked_multiply(count, floats, &all) ||
        !checked_multiply(all, 2 * sizeof(float), &bytes) || !checked_add(bytes, 63, &bytes)) {
        return STATUS_OVERFLOW;
    }
    if (all > scratch->floats) {
        cpu_scratch_free(scratch);
        scratch->memory = aligned_alloc(64, bytes / 64 * 64);
        if (scratch->memory == NULL) {
            return STATUS_OUT_OF_MEMORY;
        }
        scratch->floats = 2 * all;
    }
    return STATUS_OK;
}
