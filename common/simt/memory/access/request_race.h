/**
 * @file request_race.h
 * @brief Says which two accesses race. For request_check.c only.
 */
#ifndef WARPBOOK_COMMON_SIMT_MEMORY_ACCESS_REQUEST_RACE_H_
#define WARPBOOK_COMMON_SIMT_MEMORY_ACCESS_REQUEST_RACE_H_

#include "common/simt/memory/access/request.h"

/** What to try where two blocks of a cluster reach the same shared memory. */
#define SIMT_CLUSTER_HINT                                                          \
    "a barrier of the cluster (cluster.sync()) is missing between the two, or an " \
    "mbarrier at which one block arrives and for which the other waits"

/** What to try where a block returns too early. */
#define SIMT_END_HINT                                                       \
    "a block must not return while others of its cluster reach its shared " \
    "memory: end with a barrier of the cluster (cluster.sync())"

/** A lane's access races with one of another block. */
void simt_race_between_blocks(const struct simt_request *request, uint32_t lane,
                              const struct simt_race *race);

/** A lane's access races with one of another thread of its block. */
void simt_race_inside_block(const struct simt_request *request, uint32_t lane,
                            const struct simt_race *race);

/** Two lanes of one store write different values to the same place. */
void simt_race_of_values(const struct simt_request *request, uint32_t lane, uint32_t other);

/** The async proxy reads what a thread has written, with no proxy fence in between. */
void simt_race_with_proxy(const struct simt_request *request, uint32_t lane,
                          const struct simt_generic_write *write);

/** A lane's access disturbs the async proxy. */
void simt_race_with_flight(const struct simt_request *request, uint32_t lane,
                           const struct simt_flight *flight);

/** A lane's access meets an asynchronous copy that is still on its way. */
void simt_race_with_copy(const struct simt_request *request, uint32_t lane,
                         const struct simt_copier *copier);

#endif
