/**
 * @file renamed_starter.h
 * @brief The recorded starter's functions under other names, to run beside others.
 */
#ifndef WARPBOOK_LABS_15_MANY_GPUS_GIVEN_RENAMED_STARTER_H_
#define WARPBOOK_LABS_15_MANY_GPUS_GIVEN_RENAMED_STARTER_H_

#include "labs/15_many_gpus/many_gpus.h"

#ifdef __cplusplus
extern "C" {
#endif

/** As many_all_reduce(). */
MUST_CHECK enum status starter_many_all_reduce(struct comm *comm,
                                               const struct many_all_reduce *reduce,
                                               device_stream stream, struct error *error);

/** As many_linear(). */
MUST_CHECK enum status starter_many_linear(struct comm *comm, const struct many_linear *linear,
                                           device_stream stream, struct error *error);

#ifdef __cplusplus
}
#endif

#endif
