/**
 * @file dependent.h
 * @brief Programmatic dependent launches: which kernels of a stream may still run when the next one
 *        begins (memory/primary.h).
 *
 * A kernel that is launched with programmatic stream serialization may begin before the one in
 * front of it has ended; and before that one's own primaries have, if none of its threads waited
 * for them. Anything else orders: another launch, a copy, an event, a host that waits.
 */
#ifndef WARPBOOK_COMMON_SIMT_RUNTIME_STREAM_DEPENDENT_H_
#define WARPBOOK_COMMON_SIMT_RUNTIME_STREAM_DEPENDENT_H_

#include "common/simt/core/launch/launch.h"
#include "common/simt/memory/primary.h"

struct runtime;
struct kernel_work;
struct CUstream_st;

/** Before a kernel of the stream whose work runs: fills in what the launch must know of those
 * before it, and what it has to note. @param graph it is replayed from a graph: nothing is followed
 */
void dependent_begin(struct runtime *runtime, const struct kernel_work *work, bool graph,
                     struct simt_launch *launch);

/** The kernel has run. @param launch as begun; its list of sites is taken where it is needed */
void dependent_end(struct runtime *runtime, const struct kernel_work *work,
                   struct simt_launch *launch);

/** A launch that was begun and did not run: frees the launches before it. */
void dependent_drop(struct simt_launch *launch);

/** All earlier work of a stream comes before what follows. */
void dependent_forget(struct CUstream_st *stream);

/** The same of all streams: the host has waited. */
void dependent_forget_all(struct runtime *runtime);

#endif
