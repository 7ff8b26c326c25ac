/**
 * @file hopper.h
 * @brief Kernels of Hopper's own instructions on which simt's times are compared with a GPU: TMA,
 *        mbarriers, clusters, wgmma.
 */
#ifndef WARPBOOK_COMMON_SIMT_CALIBRATION_HOPPER_HOPPER_H_
#define WARPBOOK_COMMON_SIMT_CALIBRATION_HOPPER_HOPPER_H_

#include <stdbool.h>
#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

/** 16-bit elements that each of the three device buffers must hold: 64 MiB. */
#define HOPPER_ELEMENTS ((size_t)1 << 25)

/** Device buffers of bf16. */
struct hopper_buffers {
    void *a, *b; /**< inputs */
    void *out;
};

/** A product out (M, N) = a (M, K) * b (N, K)^T; M = 0: the kernel is none. */
struct hopper_product {
    size_t M, N, K;
};

/** A kernel that is timed. */
struct hopper_kernel {
    const char *name;
    struct hopper_product product;
    /** Launches it on the default stream. @return false: the launch was refused */
    bool (*launch)(const struct hopper_buffers *buffers, const struct hopper_product *product);
};

enum {
    HOPPER_PRODUCTS = 20,
    HOPPER_UNITS = 18,
    HOPPER_PEERS = 16,
    HOPPER_EXCHANGES = 16,
    HOPPER_CONFLICTS = 24
};

/** Products of bf16 matrices by one template: schedules, stages, tiles, clusters, epilogues. */
extern const struct hopper_kernel hopper_products[HOPPER_PRODUCTS];

/** One unit each: wgmma by N, copies by the size of their boxes, latencies of barriers. */
extern const struct hopper_kernel hopper_units[HOPPER_UNITS];

/** Accesses to the shared memory of other blocks, by kind, size and cluster. */
extern const struct hopper_kernel hopper_peers[HOPPER_PEERS];

/** Accesses to other blocks' shared memory whose lanes meet in a word, a bank or a block. The first
 *  eight may set constants of the model. */
extern const struct hopper_kernel hopper_conflicts[HOPPER_CONFLICTS];

/** Kernels whose blocks work together through shared memory. */
extern const struct hopper_kernel hopper_exchanges[HOPPER_EXCHANGES];

#ifdef __cplusplus
}
#endif

#endif
