/**
 * @file remote.h
 * @brief Lab 15's functions on several ranks in the worker in use.
 */
#ifndef WARPBOOK_GRADER_15_MANY_GPUS_REMOTE_H_
#define WARPBOOK_GRADER_15_MANY_GPUS_REMOTE_H_

#include "labs/10_llama2_decoder/decoder.h"
#include "labs/15_many_gpus/problem/sums.h"

#ifdef __cplusplus
extern "C" {
#endif

/** Of each test's own: how many GPUs simt has for it. */
extern const char remote_many_wanted[];

/** @return GPUs that reach each other; 0 with a line where the worker does not answer. */
int remote_many_devices(struct error *error);

MUST_CHECK enum status remote_many_open(void **rig, int ranks, size_t bytes, struct error *error);
void remote_many_close(void *rig);

/** The problem's calls become a CUDA graph, if the worker's ladder says that they can be recorded.
 */
MUST_CHECK enum status remote_many_record(void *rig, const struct many_sums *sums,
                                          struct error *error);

/** The problem's calls in the worker: loads, runs `times` times (*ms: the fastest; NULL: not
 * timed), reads back. With times above 1 each run adds up what the one before it left. */
MUST_CHECK enum status remote_many_sums(void *rig, struct many_sums_problem *p, double *ms,
                                        struct error *error);

MUST_CHECK enum status remote_many_multiply(void *rig, struct many_products_problem *p,
                                            struct error *error);

/** As many_cut(); the part is 0xff bytes where the worker does not answer. */
void remote_many_cut(enum many_matrix matrix, const struct many_shape *shape, int rank, int ranks,
                     struct many_part *part);

/** Decoders of all ranks for a model whose weights are memory of device 0. */
MUST_CHECK enum status remote_many_decode_open(void **decoders, int ranks,
                                               const struct decoder_model *model,
                                               struct error *error);

#ifdef __cplusplus
}
#endif

#endif
