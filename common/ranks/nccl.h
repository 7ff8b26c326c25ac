/**
 * @file nccl.h
 * @brief NCCL for comparison, opened at run time (libnccl.so.2, or the file in $WARPBOOK_NCCL).
 */
#ifndef WARPBOOK_COMMON_RANKS_NCCL_H_
#define WARPBOOK_COMMON_RANKS_NCCL_H_

#include "common/nn/dtype.h"
#include "common/ranks/comm.h"

#ifdef __cplusplus
extern "C" {
#endif

/**
 * @brief COLLECTIVE: connects the ranks by NCCL, unless they are.
 * @return STATUS_OK; STATUS_NOT_FOUND with a line that says how to name the library, on all ranks
 *         if one of them has none; STATUS_DEVICE with NCCL's message
 */
MUST_CHECK enum status comm_nccl_open(struct comm *comm, struct error *error);

/** COLLECTIVE: leaves NCCL; without effect where comm_nccl_open() has not been called. */
void comm_nccl_close(struct comm *comm);

/** ncclAllReduce() in place, sum, behind comm_nccl_open(). @param dtype NN_F32 or NN_BF16 */
MUST_CHECK enum status comm_nccl_all_reduce(struct comm *comm, void *data, size_t count,
                                            enum nn_dtype dtype, device_stream stream,
                                            struct error *error);

/** @return NCCL's version, 22304 for 2.23.4; 0 if the ranks are not connected. */
int comm_nccl_version(const struct comm *comm);

#ifdef __cplusplus
}
#endif

#endif
