/**
 * @file resident.cu
 * @brief Solution of lab 03: all memory is device memory, and an operator copies nothing.
 *
 * Every address that the model holds is a device address, also one further
 * along in an allocation. So an operand is already the pointer that the kernel
 * needs, and resident_call() only launches, on one stream, which keeps the order
 * of the calls. The host waits only when it reads: once a token, for the logits.
 */
#include "labs/03_resident_weights/resident.h"

#include <stdlib.h>

#include "solutions/03_resident_weights/steps/ladder.h"

enum status resident_create(struct resident **resident, struct error *error) {
    *resident = (struct resident *)calloc(1, sizeof **resident);
    if (*resident == NULL) {
        return error_set(error, STATUS_OUT_OF_MEMORY, "out of memory");
    }
    enum status status = device_stream_create(&(*resident)->stream, error);
    if (status != STATUS_OK) {
        resident_destroy(*resident);
        *resident = NULL;
    }
    return status;
}

void resident_destroy(struct resident *resident) {
    if (resident != NULL) {
        device_stream_destroy(resident->stream);
        free(resident);
    }
}

enum status resident_alloc(struct resident *resident, size_t bytes, void **memory,
                           struct error *error) {
    (void)resident;
    return device_alloc(memory, bytes, error);
}

void resident_release(struct resident *resident, void *memory) {
    (void)resident;
    device_free(memory);
}

/* The one copy of the weights. */
enum status resident_weights(struct resident *resident, const void *host, size_t bytes,
                             const void **handle, struct error *error) {
    void *memory;
    *handle = NULL;
    TRY(device_alloc(&memory, bytes, error));
    enum status status = device_write(memory, host, bytes, resident->stream, error);
    if (status != STATUS_OK) {
        device_free(memory);
        return status;
    }
    *handle = memory;
    return STATUS_OK;
}

void resident_release_weights(struct resident *resident, const void *handle) {
    (void)resident;
    device_free((void *)handle);
}

enum status resident_write(struct resident *resident, void *memory, const void *host, size_t bytes,
                           struct error *error) {
    return device_write(memory, host, bytes, resident->stream, error);
}

enum status resident_read(struct resident *resident, void *host, const void *memory, size_t bytes,
                          struct error *error) {
    return device_read(host, memory, bytes, resident->stream, error);
}

enum status resident_synchronize(struct resident *resident, struct error *error) {
    return device_synchronize(resident->stream, error);
}

enum status resident_call(struct resident *resident, resident_kernel *kernel, const void *arguments,
                          const struct resident_operand *operands, size_t count,
                          struct error *error) {
    return resident_call_v2_in_place(resident, kernel, arguments, operands, count, error);
}
