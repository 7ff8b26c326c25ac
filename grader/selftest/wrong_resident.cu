/*
 * Wrong submissions to lab 03. $WRONG_RESIDENT names one; each must be caught by the parity test,
 * with a message that leads to the mistake. "right" is the control: it must pass. "slow" is right,
 * too, and what the starter does: it must miss the speedup.
 */
#include <stdlib.h>
#include <string.h>

#include "labs/03_resident_weights/resident.h"

#define MISTAKES(X)                                                            \
    X(right)                                                                   \
    X(slow)      /* memory of the host, copied for each operator */            \
    X(empty)     /* runs no kernel */                                          \
    X(no_in)     /* does not copy in what an operator reads */                 \
    X(no_out)    /* does not copy back what an operator wrote */               \
    X(one_way)   /* does not copy in what an operator both reads and writes */ \
    X(no_offset) /* takes each address for the beginning of its allocation */  \
    X(host)      /* hands host memory to the kernel */                         \
    X(stale)     /* takes weights that lie where others lay for the same */    \
    X(swallows)  /* hands no failure on */                                     \
    X(status)    /* reports a failure */

#define MISTAKE_VARIABLE "WRONG_RESIDENT"
#include "grader/selftest/mistakes.h"

/* Whether all memory stays with the host. */
static bool on_host() {
    enum mistake mistake = chosen_mistake();
    return mistake == MISTAKE_slow || mistake == MISTAKE_no_in || mistake == MISTAKE_no_out ||
           mistake == MISTAKE_one_way || mistake == MISTAKE_host;
}

enum { MOST = 256 };

/* Every allocation, for those that look addresses up. */
struct resident {
    struct {
        char *memory;
        size_t bytes;
        const void *host; /* of weights */
    } known[MOST];
    int count;
};

enum status resident_create(struct resident **resident, struct error *error) {
    *resident = (struct resident *)calloc(1, sizeof **resident);
    return *resident != NULL ? STATUS_OK : error_set(error, STATUS_OUT_OF_MEMORY, "out of memory");
}

void resident_destroy(struct resident *resident) {
    free(resident);
}

static void remember(struct resident *r, void *memory, size_t bytes, const void *host) {
    int i = r->count++ % MOST;
    r->known[i].memory = (char *)memory;
    r->known[i].bytes = bytes;
    r->known[i].host = host;
}

/* The address that the wrong submission takes this one for. */
static void *located(const struct resident *r, const void *address) {
    for (int i = 0; i < MOST && chosen_mistake() == MISTAKE_no_offset; i++) {
        const char *begin = r->known[i].memory;
        if ((const char *)address >= begin && (const char *)address < begin + r->known[i].bytes) {
            return r->known[i].memory;
        }
    }
    return (void *)address;
}

enum status resident_alloc(struct resident *resident, size_t bytes, void **memory,
                           struct error *error) {
    *memory = NULL;
    if (on_host()) {
        bool good = posix_memalign(memory, 64, bytes + 1) == 0;
        return good ? STATUS_OK : error_set(error, STATUS_OUT_OF_MEMORY, "out of memory");
    }
    enum status status = device_alloc(memory, bytes, error);
    remember(resident, *memory, bytes, NULL);
    return status;
}

void resident_release(struct resident *resident, void *memory) {
    for (int i = 0; i < MOST; i++) {
        if (resident->known[i].memory == memory) {
            resident->known[i].bytes = 0;
        }
    }
    if (on_host()) {
        free(memory);
    } else {
        device_free(memory);
    }
}

enum status resident_weights(struct resident *resident, const void *host, size_t bytes,
                             const void **handle, struct error *error) {
    void *memory = NULL;
    *handle = host;
    if (on_host()) {
        return STATUS_OK;
    }
    for (int i = 0; i < MOST && chosen_mistake() == MISTAKE_stale; i++) {
        if (resident->known[i].host == host && resident->known[i].bytes == bytes) {
            *handle = resident->known[i].memory;
            return STATUS_OK;
        }
    }
    enum status status = device_alloc(&memory, bytes, error);
    remember(resident, memory, bytes, host);
    *handle = memory;
    return status == STATUS_OK ? device_write(memory, host, bytes, NULL, error) : status;
}

void resident_release_weights(struct resident *resident, const void *handle) {
    if (!on_host() && chosen_mistake() != MISTAKE_stale) {
        resident_release(resident, (void *)handle);
    }
}

enum status resident_write(struct resident *resident, void *memory, const void *host, size_t bytes,
                           struct error *error) {
    if (on_host()) {
        memcpy(memory, host, bytes);
        return STATUS_OK;
    }
    return device_write(located(resident, memory), host, bytes, NULL, error);
}

enum status resident_read(struct resident *resident, void *host, const void *memory, size_t bytes,
                          struct error *error) {
    if (on_host()) {
        memcpy(host, memory, bytes);
        return STATUS_OK;
    }
    return device_read(host, located(resident, memory), bytes, NULL, error);
}

enum status resident_synchronize(struct resident *resident, struct error *error) {
    (void)resident;
    return device_synchronize(NULL, error);
}

/* As the starter, but for the mistake. */
static enum status call_with_copies(resident_kernel *kernel, const void *arguments,
                                    const struct resident_operand *operands, size_t count,
                                    enum mistake mistake, struct error *error) {
    void *d[RESIDENT_MAX_OPERANDS] = {};
    enum status status = STATUS_OK;
    for (size_t i = 0; i < count && status == STATUS_OK; i++) {
        status = device_alloc(&d[i], operands[i].bytes, error);
        bool wanted = mistake == MISTAKE_one_way ? operands[i].use == RESIDENT_IN
                                                 : (operands[i].use & RESIDENT_IN) != 0;
        if (status == STATUS_OK && wanted && mistake != MISTAKE_no_in) {
            status = device_write(d[i], operands[i].memory, operands[i].bytes, NULL, error);
        }
    }
    if (status == STATUS_OK) {
        status = kernel(arguments, d, NULL, error);
    }
    for (size_t i = 0; i < count; i++) {
        bool wanted = (operands[i].use & RESIDENT_OUT) != 0 && mistake != MISTAKE_no_out;
        if (status == STATUS_OK && wanted) {
            status = device_read((void *)operands[i].memory, d[i], operands[i].bytes, NULL, error);
        }
        device_free(d[i]);
    }
    return status;
}

enum status resident_call(struct resident *resident, resident_kernel *kernel, const void *arguments,
                          const struct resident_operand *operands, size_t count,
                          struct error *error) {
    enum mistake mistake = chosen_mistake();
    void *d[RESIDENT_MAX_OPERANDS];
    if (mistake == MISTAKE_status) {
        return error_set(error, STATUS_DEVICE, "nothing works today");
    }
    if (mistake == MISTAKE_empty) {
        return STATUS_OK;
    }
    if (on_host() && mistake != MISTAKE_host) {
        return call_with_copies(kernel, arguments, operands, count, mistake, error);
    }
    for (size_t i = 0; i < count; i++) {
        d[i] = located(resident, operands[i].memory);
    }
    enum status status = kernel(arguments, d, NULL, error);
    return mistake == MISTAKE_swallows ? STATUS_OK : status;
}
