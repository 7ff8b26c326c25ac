/**
 * @file memory.h
 * @brief Device memory of the emulated GPU, and the addresses kernels see.
 *
 * Global addresses lie in a window of host address space that is mapped without
 * access: a kernel's address is the address, but a host program that
 * dereferences a device pointer faults, and is told so. The emulator itself
 * reads and writes through a second mapping of the same memory. Shared and
 * local memory have windows of their own, outside of what a CPU can address,
 * so that a generic address tells its space.
 *
 * Between allocations lie at least 256 bytes that belong to nobody, and a freed
 * range is not handed out again while others are left, so that overruns and
 * uses after cudaFree() are seen.
 */
#ifndef WARPBOOK_COMMON_SIMT_MEMORY_SPACE_MEMORY_H_
#define WARPBOOK_COMMON_SIMT_MEMORY_SPACE_MEMORY_H_

#include <inttypes.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "common/base/status.h"

/** Generic addresses of shared and local memory: base + offset in the block's or thread's own. */
#define SIMT_SHARED_WINDOW ((uint64_t)0x0100000000000000)
#define SIMT_LOCAL_WINDOW ((uint64_t)0x0200000000000000)
#define SIMT_PARAMETER_WINDOW ((uint64_t)0x0300000000000000)
/** Addresses of device functions, for pointers to them: nothing can be read or written there. */
#define SIMT_CODE_WINDOW ((uint64_t)0x0400000000000000)
#define SIMT_WINDOW_BYTES ((uint64_t)1 << 32)

struct simt_memory;
struct simt_names;
struct simt_l2;

/** One allocation, live or freed. */
struct simt_allocation {
    uint64_t address;
    size_t bytes;
    bool freed;
    bool kept;        /**< its address stays its own while it is freed: simt_memory_keep() */
    bool host;        /**< pinned, mapped or managed host memory that kernels may use */
    int device;       /**< the emulated GPU that has it; host memory: 0 */
    int program;      /**< that allocated it: see simt_memory_select_program() */
    const char *what; /**< "cudaMalloc", "__device__ variable counter", ... */
    uint64_t serial;  /**< 1 for the first, counting up: names an allocation in messages */
};

/** Emulated GPUs at most, and programs that share them. */
enum { SIMT_MOST_DEVICES = 8, SIMT_MOST_PROGRAMS = 16 };

/**
 * @brief Reserves the windows.
 * @param bytes how much cudaMalloc may hand out in all
 */
MUST_CHECK enum status simt_memory_create(struct simt_memory **memory, size_t bytes);

/**
 * @brief The same for several GPUs, whose memory lies in one window: an address says where it is.
 * @param devices 1 to SIMT_MOST_DEVICES
 * @param bytes   how much cudaMalloc may hand out on each
 */
MUST_CHECK enum status simt_memory_create_for(struct simt_memory **memory, size_t bytes,
                                              int devices);

/** From here on memory is allocated on this GPU, and simt_memory_extent() finds what its kernels
 *  may use; the first one is selected at the beginning. Not while host threads run a launch. */
void simt_memory_select(struct simt_memory *memory, int device);

/** Lets kernels of a GPU use the memory of another one, or not. */
void simt_memory_allow(struct simt_memory *memory, int device, int peer, bool allowed);

/** @return whether kernels of the selected GPU may use memory of another one */
bool simt_memory_allows(const struct simt_memory *memory, int device);

/** @return the GPU that has the live allocation at an address; -1: there is none */
int simt_memory_device_of(const struct simt_memory *memory, uint64_t address);

/** Frees all that the selected program has allocated on a GPU. */
void simt_memory_release_all(struct simt_memory *memory, int device);

/** From here on memory is allocated for this program, and what other programs have is not found but
 *  where they share it; 0 is selected at the beginning. Registered host memory is a program's. */
void simt_memory_select_program(struct simt_memory *memory, int program);

/** The selected program uses another one's allocation, or does so no more; counted.
 *  @return STATUS_OK; STATUS_NOT_FOUND: no live one of that number begins there, or it is not used;
 *          STATUS_INVALID_ARGUMENT: it is the program's own */
MUST_CHECK enum status simt_memory_share(struct simt_memory *memory, uint64_t address,
                                         uint64_t serial);
MUST_CHECK enum status simt_memory_unshare(struct simt_memory *memory, uint64_t address);

/** The selected program has ended: forgets what it used of others, and its host memory. */
void simt_memory_end_program(struct simt_memory *memory);

void simt_memory_free(struct simt_memory *memory);

/**
 * @brief Allocates device memory, contents undefined (marked as never written).
 * @param alignment power of two; cudaMalloc's is 256
 * @param what      must live as long as the memory
 * @return STATUS_OK, STATUS_OUT_OF_MEMORY, STATUS_OVERFLOW
 */
MUST_CHECK enum status simt_memory_alloc(struct simt_memory *memory, size_t bytes, size_t alignment,
                                         const char *what, uint64_t *address);

/** @return STATUS_OK, STATUS_NOT_FOUND (not the start of an allocation), STATUS_INVALID_ARGUMENT
 *  (freed before). */
MUST_CHECK enum status simt_memory_release(struct simt_memory *memory, uint64_t address);

/** Whether an allocation's address stays its own after its release, so that it can be allocated
 *  again: memory that graphs allocate. Without effect where no allocation begins. */
void simt_memory_keep(struct simt_memory *memory, uint64_t address, bool kept);

/**
 * @brief Allocates what was released, at the same address, contents undefined.
 * @return STATUS_OK; STATUS_OUT_OF_MEMORY; STATUS_NOT_FOUND: no such allocation;
 *         STATUS_INVALID_ARGUMENT: it is not released
 */
MUST_CHECK enum status simt_memory_again(struct simt_memory *memory, uint64_t address);

/** Lets kernels use host memory at its own address (pinned, mapped, managed). */
MUST_CHECK enum status simt_memory_register_host(struct simt_memory *memory, void *host,
                                                 size_t bytes, const char *what);
MUST_CHECK enum status simt_memory_unregister_host(struct simt_memory *memory, void *host);

/** Registered memory is used in pieces of so many bytes, from its beginning on. */
#define SIMT_HOST_CHUNK ((size_t)64 << 10)

/** The contents of registered memory lie at @p place, not at its address. */
void simt_memory_place_host(struct simt_memory *memory, void *host, void *place);

/** Calls @p wanted before a launch's first use of a piece of registered memory, with an address in
 *  it, at least once a host thread; several host threads may do so at the same time. */
void simt_memory_watch_host(struct simt_memory *memory,
                            void (*wanted)(void *context, uint64_t address), void *context);

/**
 * @brief Finds the allocation that @p address lies in.
 *
 * Of freed ones too, when no live one holds the address.
 *
 * @return false when there is none; then *allocation is the nearest one below, if any (bytes 0
 *         when there is not even that)
 */
bool simt_memory_find(const struct simt_memory *memory, uint64_t address,
                      struct simt_allocation *allocation);

/** The allocation, live or freed, that begins highest at or below, or lowest above, an address;
 *  strings of the compiler only when they hold it. @return false when there is none */
bool simt_memory_below(const struct simt_memory *memory, uint64_t address,
                       struct simt_allocation *allocation);
bool simt_memory_above(const struct simt_memory *memory, uint64_t address,
                       struct simt_allocation *allocation);

/**
 * @brief Names the tensor that begins at an address, for messages.
 *
 * A name at the beginning of an allocation stays as long as the allocation. Other names in it hold
 * for a few launches: a program that divides up memory itself may soon do so in another way.
 *
 * @param name copied; of a longer one the first SIMT_NAME_BYTES - 1 characters
 * @return STATUS_OK; STATUS_NOT_FOUND: the address is not in a live allocation;
 *         STATUS_INVALID_ARGUMENT: no name, or one with characters besides printable ASCII
 */
MUST_CHECK enum status simt_memory_name(struct simt_memory *memory, uint64_t address,
                                        const char *name);

/** A launch begins: names inside of allocations grow old. */
void simt_memory_launched(struct simt_memory *memory);

/** @return the names. */
const struct simt_names *simt_memory_names(const struct simt_memory *memory);

/** Writes what a message calls an allocation: "allocation #3 (cudaMalloc, 1024 bytes)", or
 *  ""q" (cudaMalloc, 1024 bytes)". @param address in it, for names inside of it */
void simt_allocation_text(const struct simt_memory *memory,
                          const struct simt_allocation *allocation, uint64_t address, char *text,
                          size_t size);

/** @return bytes by which an address lies before the start of the allocation that it belongs to
 * most likely; 0: it does not. */
uint64_t simt_memory_before(const struct simt_memory *memory, uint64_t address);

/** Says where an address lies: "16 bytes into allocation #3 (cudaMalloc, 1024 bytes)". */
void simt_memory_describe(const struct simt_memory *memory, uint64_t address, char *text,
                          size_t size);

/** Result of a lookup: a range of valid addresses, and its host address. */
struct simt_extent {
    uint64_t begin, end;
    unsigned char *host; /**< of the byte at `begin` */
    bool complete;       /**< the host has written all of it: reads need no further check */
};

/** @return true and the extent of the live allocation that holds @p address; false where the
 *  selected GPU may not use it. */
bool simt_memory_extent(const struct simt_memory *memory, uint64_t address,
                        struct simt_extent *extent);

/** All of the device window, allocated or not: a launch without checks may access it. */
struct simt_extent simt_memory_window(const struct simt_memory *memory);

/** @return where the emulator reads and writes the byte at @p address; the caller has checked it.
 */
void *simt_memory_host(const struct simt_memory *memory, uint64_t address);

/** @return true when kernels may use host memory (pinned, mapped, managed), which the host may
 * change meanwhile. */
bool simt_memory_has_host(const struct simt_memory *memory);

/** @return true when @p pointer lies in the device window. */
bool simt_memory_is_device(const struct simt_memory *memory, const void *pointer);

/** Marks bytes as written by the host, between launches: memcpy, memset. */
void simt_memory_mark(struct simt_memory *memory, uint64_t address, size_t bytes);

/** Marks all of the device's memory that is allocated as written. */
void simt_memory_mark_all(struct simt_memory *memory);

/**
 * @brief Marks bytes that the host copied, between launches: those are written whose source is.
 * @param to   of device memory
 * @param from host memory counts as written
 */
void simt_memory_mark_copy(struct simt_memory *memory, uint64_t to, uint64_t from, size_t bytes);

/** Marks bytes as written by a kernel; several host threads may do so at the same time. */
void simt_memory_mark_store(struct simt_memory *memory, uint64_t address, size_t bytes);

/** @return true when all bytes were written since their allocation. Host memory always counts. */
bool simt_memory_written(const struct simt_memory *memory, uint64_t address, size_t bytes);

/** The host copies or sets bytes of device memory: L2 has them from then on. */
void simt_memory_touched(struct simt_memory *memory, uint64_t address, size_t bytes);

/** @return the L2 of the selected GPU; see cache.h. */
struct simt_l2 *simt_memory_l2(const struct simt_memory *memory);

/** @return the bits behind simt_memory_written(), one a byte, from an address of device memory on
 *  that is a multiple of 64. */
uint64_t *simt_memory_written_bits(struct simt_memory *memory, uint64_t address);

/** Calls @p visit for each live allocation of cudaMalloc, for leak reports. */
void simt_memory_visit(const struct simt_memory *memory,
                       void (*visit)(const struct simt_allocation *allocation, void *argument),
                       void *argument);

/** @return bytes of the live allocations that were made with this @p what. */
size_t simt_memory_used_by(const struct simt_memory *memory, const char *what);

/** @return bytes of the selected GPU in use, and in all. */
void simt_memory_usage(const struct simt_memory *memory, size_t *used, size_t *total);

/* Phrases that several messages share. */

/** @return the ending of a noun in the plural. */
static inline const char *simt_plural(uint64_t count) {
    return count == 1 ? "" : "s";
}

/** "N bytes past the end of", "just past the end of". */
static inline void simt_describe_past(uint64_t distance, char *text, size_t size) {
    if (distance == 0) {
        snprintf(text, size, "just past the end of");
    } else {
        snprintf(text, size, "%" PRIu64 " byte%s past the end of", distance, simt_plural(distance));
    }
}

#endif
