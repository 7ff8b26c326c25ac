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
    double nanoseconds; /**< MODELLED time of all the work of the device */
};

/** What the emulated GPU can do at best, from its row of the table that MODEL.md explains. */
struct simt_limits {
    double
        tensor_flops; /**< of mma in fp16 and bf16, dense, a second; 0: the GPU has none in bf16 */
    double memory;    /**< of device memory, as a copy reaches it: bytes a second */
    double l2;        /**< of the L2 cache: bytes a second */
    double bus;       /**< between the host's pageable memory and the device: bytes a second */
};

/** The four functions of simt's library. */
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
};

/** @return true when this process runs on simt; @p api is zeros else. */
bool simt_find(struct simt_api *api);

/** @return the counts between two readings. */
struct simt_totals simt_totals_between(const struct simt_totals *before,
                                       const struct simt_totals *after);

#ifdef __cplusplus
}
#endif

#endif
