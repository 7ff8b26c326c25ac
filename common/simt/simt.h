/**
 * @file simt.h
 * @brief What a program asks the emulator it may be running on: whether it is there, what it
 * counted.
 *
 * A program links the CUDA runtime and does not know which one it will get:
 * NVIDIA's, or simt's library of the same name. simt's exports four functions
 * more, which simt_find() looks up at run time; nothing here needs linking with
 * the emulator.
 */
#ifndef WARPBOOK_COMMON_SIMT_SIMT_H_
#define WARPBOOK_COMMON_SIMT_SIMT_H_

#include <stdbool.h>
#include <stdint.h>

#include "common/simt/memory/counters.h"
#include "common/simt/profile.h"

#ifdef __cplusplus
extern "C" {
#endif

/** Everything the process did on the emulated GPU so far; take the difference of two. */
struct simt_totals {
    struct simt_counters counters; /**< of all launches */
    uint64_t launches;
    uint64_t copies_to_device, copies_to_host, copies_on_device, sets;
    uint64_t bytes_to_device, bytes_to_host, bytes_on_device, bytes_set;
    uint64_t allocations, releases; /**< of device memory, by whatever function */
    double nanoseconds;             /**< MODELLED time of all the work of the device */
};

/** What the emulated GPU can do at best, from its row of the table that MODEL.md explains. */
struct simt_limits {
    double
        tensor_flops; /**< of mma in fp16 and bf16, dense, a second; 0: the GPU has none in bf16 */
    double memory;    /**< of device memory, as a copy reaches it: bytes a second */
    double l2;        /**< of the L2 cache: bytes a second */
    double bus;       /**< between the host's pageable memory and the device: bytes a second */
};

/** The functions of simt's library. */
struct simt_api {
    /** @return the emulated GPU, as SIMT_GPU names it: "h200". */
    const char *(*gpu_key)(void);
    /** Reads the totals; waits for nothing, as all work is done when a call returns. */
    void (*read_totals)(struct simt_totals *totals);
    /** Reads the emulated GPU's limits. */
    void (*read_limits)(struct simt_limits *limits);
    /**
     * Takes the longest launch since this was called last.
     * @return false, and zeros, when there was no launch
     */
    bool (*take_longest)(struct simt_profile *profile);
    /** Names a tensor, see simt_name_tensor(). @return false when it refuses the name */
    bool (*name)(const void *pointer, const char *name);
};

/** @return true when this process runs on simt; @p api is zeros else. */
bool simt_find(struct simt_api *api);

/** simt's own; NULL on a GPU. Use simt_name_tensor(). */
bool simt_name(const void *pointer, const char *name) __attribute__((weak));

/**
 * @brief Names a tensor in device memory, so that simt's messages say "q" and not "allocation #2".
 *        Does nothing on a GPU.
 *
 * A name at the beginning of an allocation stays until cudaFree(); another one holds for the next
 * few launches. A name may be given again.
 *
 * @param pointer to device memory; NULL is allowed
 * @param name    copied; of a longer one the first 31 characters. simt ignores a name with
 *                characters besides printable ASCII
 */
static inline void simt_name_tensor(const void *pointer, const char *name) {
    if (simt_name != 0 && pointer != 0) {
        (void)simt_name(pointer, name);
    }
}

/** @return the counts between two readings. */
struct simt_totals simt_totals_between(const struct simt_totals *before,
                                       const struct simt_totals *after);

#ifdef __cplusplus
}
#endif

#endif
