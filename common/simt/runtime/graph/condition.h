/**
 * @file condition.h
 * @brief Conditional nodes: bodies that run if, while or when a condition says so, which kernels
 * set on the device.
 */
#ifndef WARPBOOK_COMMON_SIMT_RUNTIME_GRAPH_CONDITION_H_
#define WARPBOOK_COMMON_SIMT_RUNTIME_GRAPH_CONDITION_H_

#include <stdbool.h>
#include <stddef.h>

#include <cuda_runtime_api.h>

#include "common/simt/core/launch/launch.h"

struct runtime;
struct CUgraph_st;
struct work;

/** What the handle of a condition stands for: its number plus 1. */
struct condition {
    const struct CUgraph_st *graph; /**< it was made for; NULL: that is gone */
    unsigned initial;
    bool resets;   /**< to `initial`, whenever a graph with its node is launched */
    bool has_node; /**< one node may have it */
};

/** All conditions of the program; executable graphs share them with their graphs. */
struct conditions {
    struct simt_conditions values;
    struct condition *all; /**< (values.count) */
    size_t capacity;
};

/** Bodies of a node at most. */
enum { CONDITION_MOST_BODIES = 1024 };

/** A graph is destroyed: nodes can no longer be made with its handles. */
void conditions_forget(struct conditions *conditions, const struct CUgraph_st *graph);

/** An executable graph is launched: sets its conditions that have a default value. */
void conditions_begin(struct conditions *conditions, const struct CUgraph_st *graph);

/** @return cudaSuccess where a graph may be made executable: the bodies of its conditional nodes
 * have nodes of the kinds alone that a device can launch by itself. */
cudaError_t conditions_check(const struct runtime *runtime, const struct CUgraph_st *graph);

/** @return whether a graph has a conditional node, at any depth. */
bool conditions_are_in(const struct CUgraph_st *graph);

/** Runs the bodies of a conditional node, as its condition says. */
cudaError_t condition_run(struct runtime *runtime, const struct work *work);

#endif
