/**
 * @file resident_call_v1_cleared.cu
 * @brief v1: nothing crosses the bus any more, but every operator starts from zeros and is waited
 * for.
 *
 * Changes since the starter: operands stay on the GPU. Each result is cleared before the kernel
 * writes it, as fresh memory would be, and the call returns when the kernel is done.
 *
 * Why it is not the last step: clearing is a launch an operator, for memory that the kernel writes
 * anyway, and the wait keeps the host from launching the next kernel while this one runs.
 */
#include "solutions/03_resident_weights/steps/ladder.h"

static bool overlap(const struct resident_operand *a, const struct resident_operand *b) {
    const char *begin = (const char *)a->memory, *other = (const char *)b->memory;
    return begin < other + b->bytes && other < begin + a->bytes;
}

/* Whether the kernel reads nothing of operand i before it writes it: it may work in place. */
static bool starts_fresh(const struct resident_operand *operands, size_t count, size_t i) {
    for (size_t j = 0; j < count; j++) {
        if ((operands[j].use & RESIDENT_IN) != 0 && overlap(&operands[i], &operands[j])) {
            return false;
        }
    }
    return true;
}

enum status resident_call_v1_cleared(struct resident *resident, resident_kernel *kernel,
                                     const void *arguments, const struct resident_operand *operands,
                                     size_t count, struct error *error) {
    for (size_t i = 0; i < count; i++) {
        if (starts_fresh(operands, count, i)) {
            TRY(device_set((void *)operands[i].memory, 0, operands[i].bytes, resident->stream,
                           error));
        }
    }
    TRY(resident_call_v2_in_place(resident, kernel, arguments, operands, count, error));
    return device_synchronize(resident->stream, error);
}
