/**
 * @file ladder.h
 * @brief The steps of solution 03, each with the signature of resident_call(); all memory is device
 *        memory.
 */
#ifndef WARPBOOK_SOLUTIONS_03_RESIDENT_WEIGHTS_STEPS_LADDER_H_
#define WARPBOOK_SOLUTIONS_03_RESIDENT_WEIGHTS_STEPS_LADDER_H_

#include "labs/03_resident_weights/resident.h"

#ifdef __cplusplus
extern "C" {
#endif

struct resident {
    device_stream stream; /**< of all copies and kernels: it keeps the order of the calls */
};

typedef enum status resident_call_function(struct resident *resident, resident_kernel *kernel,
                                           const void *arguments,
                                           const struct resident_operand *operands, size_t count,
                                           struct error *error);

resident_call_function resident_call_v1_cleared;
resident_call_function resident_call_v2_in_place;

#ifdef __cplusplus
}
#endif

#endif
