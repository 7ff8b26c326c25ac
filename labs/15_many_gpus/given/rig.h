/**
 * @file rig.h
 * @brief Given: ranks with their streams and symmetric memory, to try the lab's functions on.
 *
 * The ranks are threads of this process (common/ranks/group.h). Memory that the functions here copy
 * from and to may be of the host or of any device.
 */
#ifndef WARPBOOK_LABS_15_MANY_GPUS_GIVEN_RIG_H_
#define WARPBOOK_LABS_15_MANY_GPUS_GIVEN_RIG_H_

#include <stdint.h>

#include "common/ranks/group.h"
#include "labs/15_many_gpus/many_gpus.h"

#ifdef __cplusplus
extern "C" {
#endif

/** What one rank has. */
struct many_rank_state {
    device_stream stream;
    struct comm_memory workspace;
    struct comm_memory data;
    void *input; /**< device memory of the rank alone: data of one call that has not come yet; NULL
                      without delays */
    void *graph; /**< cudaGraphExec_t of many_rig_record(), or NULL */
};

struct many_rig {
    struct comm_group *group;
    int ranks;
    struct many_rank_state states[COMM_MAX_RANKS];
};

/** @param bytes of data on each rank; 0: none */
MUST_CHECK enum status many_rig_create(struct many_rig *rig, int ranks, size_t bytes,
                                       struct error *error);

/** Frees; a zeroed struct is allowed. */
void many_rig_free(struct many_rig *rig);

/** The workspaces are zeros again: before another step's first call. */
MUST_CHECK enum status many_rig_renew(struct many_rig *rig, struct error *error);

/** All-reduces one behind the other, of data that is side by side. */
struct many_sums {
    size_t count; /**< elements of each */
    enum nn_dtype dtype;
    size_t calls;
    /** Seed of delays by which ranks come at different times; 0: none. With delays a call's data
     *  are written in its stream right before it, and read and overwritten right behind it. */
    uint64_t delays;
};

/** @return bytes of data that a rank needs for them. */
static inline size_t many_sums_bytes(const struct many_sums *sums) {
    return sums->calls * sums->count * nn_dtype_bytes(sums->dtype);
}

/** Each rank's data = its own. @param in (calls, ranks, count) */
MUST_CHECK enum status many_rig_load(struct many_rig *rig, const struct many_sums *sums,
                                     const void *in, struct error *error);
/** Records the calls in a CUDA graph on each rank: many_rig_sum() launches it from now on. */
MUST_CHECK enum status many_rig_record(struct many_rig *rig, const struct many_sums *sums,
                                       const struct many_functions *functions, struct error *error);
/** Runs the calls on all ranks, and waits for all. */
MUST_CHECK enum status many_rig_sum(struct many_rig *rig, const struct many_sums *sums,
                                    const struct many_functions *functions, struct error *error);
/** @param out (calls, ranks, count) */
MUST_CHECK enum status many_rig_store(struct many_rig *rig, const struct many_sums *sums, void *out,
                                      struct error *error);

/** A product that is cut over the ranks, several times one behind the other with the same x. */
struct many_products {
    size_t N, K; /**< K of the whole matrix: each rank has K / ranks columns */
    enum nn_dtype dtype;
    bool bias; /**< of rank 0 */
    size_t calls;
    uint64_t delays;
    const void *weight; /**< (N, K) of dtype */
    const float *in;    /**< (K) */
    const float *add;   /**< (N): the bias */
    const float *x;     /**< (N): the residual stream before the first call */
    float *out;         /**< (ranks, N): behind the last */
};

MUST_CHECK enum status many_rig_multiply(struct many_rig *rig, const struct many_products *products,
                                         const struct many_functions *functions,
                                         struct error *error);

/** Keeps a stream busy for some microseconds: delay.cu. */
MUST_CHECK enum status many_delay(unsigned rounds, device_stream stream, struct error *error);

#ifdef __cplusplus
}
#endif

#endif
