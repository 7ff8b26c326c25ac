/**
 * @file peers.h
 * @brief Given: data parallel training (train_peers.h) over the lab's all-reduce.
 */
#ifndef WARPBOOK_LABS_15_MANY_GPUS_GIVEN_PEERS_H_
#define WARPBOOK_LABS_15_MANY_GPUS_GIVEN_PEERS_H_

#include "common/train/train_peers.h"
#include "labs/15_many_gpus/many_gpus.h"

#ifdef __cplusplus
extern "C" {
#endif

/**
 * @brief COLLECTIVE: makes the exchange of a model that is trained on a stream.
 * @param comm   outlives it
 * @param step   whose all-reduce is used; copied
 * @param stream of the training engine's work
 */
MUST_CHECK enum status many_peers_create(struct train_peers *peers, struct comm *comm,
                                         const struct many_step *step, device_stream stream,
                                         struct error *error);

/** COLLECTIVE: frees; a zeroed struct is allowed. */
void many_peers_free(struct train_peers *peers);

#ifdef __cplusplus
}
#endif

#endif
