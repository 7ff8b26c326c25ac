/**
 * @file resident.h
 * @brief Contract of lab 03: where a model's memory lives, and how an operator finds its operands.
 *
 * The kernels are given (operators.h). You write the memory management around
 * them: functions that decide what is copied, and when. The model calls
 * resident_alloc() for its activations, resident_weights() once for each
 * tensor of its checkpoint, and resident_call() for every operator of every
 * token.
 */
#ifndef WARPBOOK_LABS_03_RESIDENT_WEIGHTS_RESIDENT_H_
#define WARPBOOK_LABS_03_RESIDENT_WEIGHTS_RESIDENT_H_

#include <stdbool.h>
#include <stddef.h>

#include "common/base/status.h"
#include "common/device/device.h"

#ifdef __cplusplus
extern "C" {
#endif

/** State of the functions: a stream, and whatever you need. */
struct resident;

/** @return STATUS_OK, STATUS_OUT_OF_MEMORY or the status of the device. */
MUST_CHECK enum status resident_create(struct resident **resident, struct error *error);

/** Frees everything; NULL is allowed. */
void resident_destroy(struct resident *resident);

/**
 * @brief Allocates memory for activations; contents undefined, at least 64-byte aligned.
 *
 * The caller never dereferences the pointer. It only passes it, or one further
 * along in the same allocation, to the functions below. So it may be any address
 * from which you can find the bytes.
 */
MUST_CHECK enum status resident_alloc(struct resident *resident, size_t bytes, void **memory,
                                      struct error *error);

/** Frees it; NULL is allowed. */
void resident_release(struct resident *resident, void *memory);

/**
 * @brief Registers a tensor of the checkpoint.
 * @param host     does not change until resident_release_weights()
 * @param handle   receives the address that the model uses for the tensor; it also passes pointers
 *                 further along in it
 */
MUST_CHECK enum status resident_weights(struct resident *resident, const void *host, size_t bytes,
                                        const void **handle, struct error *error);

/** Ends the tensor's use; NULL is allowed. */
void resident_release_weights(struct resident *resident, const void *handle);

/** Copies host memory into activations. */
MUST_CHECK enum status resident_write(struct resident *resident, void *memory, const void *host,
                                      size_t bytes, struct error *error);

/** Waits for all work, then copies activations to the host. */
MUST_CHECK enum status resident_read(struct resident *resident, void *host, const void *memory,
                                     size_t bytes, struct error *error);

/** Waits for all work. */
MUST_CHECK enum status resident_synchronize(struct resident *resident, struct error *error);

/** How an operator uses an operand. */
enum resident_use { RESIDENT_IN = 1, RESIDENT_OUT = 2, RESIDENT_IN_OUT = 3 };

/** One operand of an operator: activations or weights, at an address of the functions above. */
struct resident_operand {
    const void *memory;
    size_t bytes;
    enum resident_use use;
};

enum { RESIDENT_MAX_OPERANDS = 6 };

/**
 * @brief Starts one operator's kernels on a stream.
 * @param arguments sizes and factors of the operator
 * @param operands  DEVICE addresses, in the order of the call's operands
 */
typedef enum status resident_kernel(const void *arguments, void *const *operands,
                                    device_stream stream, struct error *error);

/**
 * @brief Runs an operator: the kernel finds its operands in device memory, and later calls find
 *        its results.
 *
 * Two operands may be the same memory (an operator in place) or lie in the same allocation. May
 * return before the work is done.
 *
 * @param count at most RESIDENT_MAX_OPERANDS
 */
MUST_CHECK enum status resident_call(struct resident *resident, resident_kernel *kernel,
                                     const void *arguments, const struct resident_operand *operands,
                                     size_t count, struct error *error);

#ifdef __cplusplus
}
#endif

#endif
