/**
 * @file ladder.h
 * @brief The steps of solution 15: all-reduces, and the product in front of one.
 */
#ifndef WARPBOOK_SOLUTIONS_15_MANY_GPUS_STEPS_LADDER_H_
#define WARPBOOK_SOLUTIONS_15_MANY_GPUS_STEPS_LADDER_H_

#include "labs/15_many_gpus/many_gpus.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum status many_all_reduce_function(struct comm *comm,
                                             const struct many_all_reduce *reduce,
                                             device_stream stream, struct error *error);
typedef enum status many_linear_function(struct comm *comm, const struct many_linear *linear,
                                         device_stream stream, struct error *error);

many_all_reduce_function many_v1_host, many_v2_peer_copies, many_v3_ring, many_v5_one_shot,
    many_v6_two_shot;
many_linear_function many_v1_linear, many_v2_linear, many_v3_linear, many_v5_linear, many_v7_linear;

struct decoder; /* of solution 10 */

/** v8: a token from the embedding of d's io.token on to the logits, in one kernel. */
MUST_CHECK enum status many_v8_token(struct comm *comm, const struct decoder *d,
                                     const struct comm_memory *workspace, size_t position,
                                     struct error *error);

/** Bytes up to which v5's packets are used: they have room, and are faster than v6. */
size_t many_one_shot_most(const struct comm *comm);

/** linear as a product, an all-reduce and an addition, three launches. */
MUST_CHECK enum status many_linear_by(many_all_reduce_function *all_reduce, struct comm *comm,
                                      const struct many_linear *linear, device_stream stream,
                                      struct error *error);

#ifdef __cplusplus
}
#endif

#endif
