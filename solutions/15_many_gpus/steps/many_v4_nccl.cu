/**
 * @file many_v4_nccl.cu
 * @brief v4: NCCL, the field's library, opened at run time.
 *
 * Changes since v3: none of ours. NCCL chooses ring or tree, and a protocol, by size.
 */
#include "common/ranks/nccl.h"
#include "solutions/15_many_gpus/steps/ladder.h"

enum status many_v4_nccl(struct comm *comm, const struct many_all_reduce *reduce,
                         device_stream stream, struct error *error) {
    TRY(many_all_reduce_check(comm, reduce, error));
    return comm_nccl_all_reduce(comm, reduce->data[comm->rank], reduce->count, reduce->dtype,
                                stream, error);
}
