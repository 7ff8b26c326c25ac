/**
 * @file resident_call_v2_in_place.cu
 * @brief v2: an operand is already the pointer that the kernel needs.
 *
 * Changes since v1: the call only launches, on one stream, which keeps the order of the calls. The
 * host waits only when it reads: once a token, for the logits.
 */
#include "solutions/03_resident_weights/steps/ladder.h"

enum status resident_call_v2_in_place(struct resident *resident, resident_kernel *kernel,
                                      const void *arguments,
                                      const struct resident_operand *operands, size_t count,
                                      struct error *error) {
    void *d[RESIDENT_MAX_OPERANDS];
    for (size_t i = 0; i < count; i++) {
        d[i] = (void *)operands[i].memory;
    }
    return kernel(arguments, d, resident->stream, error);
}
