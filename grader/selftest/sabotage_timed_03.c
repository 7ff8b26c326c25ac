#include "grader/selftest/sabotage_timed.h"
#include "labs/03_resident_weights/resident.h"

enum status __real_resident_call(struct resident *resident, resident_kernel *kernel,
                                 const void *arguments, const struct resident_operand *operands,
                                 size_t count, struct error *error);
enum status __wrap_resident_call(struct resident *resident, resident_kernel *kernel,
                                 const void *arguments, const struct resident_operand *operands,
                                 size_t count, struct error *error);

/* An operator comes again in each token, with the same operands. */
enum status __wrap_resident_call(struct resident *resident, resident_kernel *kernel,
                                 const void *arguments, const struct resident_operand *operands,
                                 size_t count, struct error *error) {
    if (sabotage_leaves_out(operands, sizeof *operands, NULL)) {
        return STATUS_OK;
    }
    return __real_resident_call(resident, kernel, arguments, operands, count, error);
}
