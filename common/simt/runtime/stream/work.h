/**
 * @file work.h
 * @brief One piece of work of a stream: run at once, or kept as a node of a graph.
 */
#ifndef WARPBOOK_COMMON_SIMT_RUNTIME_STREAM_WORK_H_
#define WARPBOOK_COMMON_SIMT_RUNTIME_STREAM_WORK_H_

#include <stdbool.h>
#include <stddef.h>

#include <cuda_runtime_api.h>

struct runtime;
struct kernel;

enum work_kind {
    WORK_EMPTY,
    WORK_KERNEL,
    WORK_COPY,
    WORK_SET,
    WORK_HOST,
    WORK_GRAPH, /**< of nodes alone, as what follows */
    WORK_CONDITION,
    WORK_RECORD,
    WORK_WAIT,
    WORK_COLLECTIVE,
    WORK_ALLOCATE, /**< of graphs alone, as WORK_RELEASE */
    WORK_RELEASE
};

/** Rows of bytes in memory: row r of plane p begins at pointer + p * slice + r * pitch. */
struct area {
    void *pointer;
    size_t pitch, slice;
};

/** `width` bytes of `height` rows of `depth` planes. */
struct box {
    size_t width, height, depth;
};

struct kernel_work {
    struct kernel *kernel;
    dim3 grid, block;
    dim3 cluster;  /**< x = 0: what the kernel says, or no clusters */
    size_t shared; /**< dynamic, bytes */
    bool cooperative;
    bool dependent;            /**< with programmatic stream serialization */
    unsigned char *parameters; /**< parameter block; owned */
};

struct copy_work {
    struct area to, from;
    struct box box;
    enum cudaMemcpyKind kind;
};

struct set_work {
    struct area to;
    struct box box;
    unsigned value, element; /**< the low `element` bytes of value, 1, 2 or 4, fill each element */
};

struct host_work {
    cudaHostFn_t function;
    void *data;
};

struct CUgraph_st;
struct collective_work;

/** Memory that a graph allocates or frees; see graph/memory_nodes.h. */
struct memory_work {
    void *pointer;
    size_t bytes; /**< allocated */
    int device;   /**< it is allocated on */
};

/** A conditional node. */
struct condition_work {
    cudaGraphConditionalHandle handle;
    enum cudaGraphConditionalNodeType type;
    unsigned size;
    struct CUgraph_st **bodies; /**< (size) owned, like the array */
};

struct work {
    enum work_kind kind;
    const char *call; /**< API function, for messages */
    union {
        struct kernel_work kernel;
        struct copy_work copy;
        struct set_work set;
        struct host_work host;
        struct CUgraph_st *graph; /**< a child graph; owned */
        struct condition_work condition;
        cudaEvent_t event; /**< recorded, or waited for */
        struct memory_work memory;
        struct collective_work *collective; /**< owned */
    };
};

/** @return work that copies @p bytes. */
struct work work_copy_bytes(const char *call, void *to, const void *from, size_t bytes,
                            enum cudaMemcpyKind kind);

/** Work that copies what 3D parameters say; arrays become their memory. */
cudaError_t work_copy_planes(const struct runtime *runtime, const char *call,
                             const struct cudaMemcpy3DParms *parameters, struct work *work);

/**
 * @brief Looks whether the work's memory is there: directions, pitches, ends of allocations.
 *
 * What is wrong is explained on stderr.
 */
cudaError_t work_check(struct runtime *runtime, const struct work *work);

/** The same for work that becomes a node of a graph: memory that a graph allocates need not be
 *  there yet. */
cudaError_t work_check_recorded(struct runtime *runtime, const struct work *work);

/**
 * @brief Does the work, and moves the modelled clock on.
 * @param graph it is replayed from a graph
 *
 * A kernel's fault becomes the context's pending error; while one is pending
 * nothing runs any more.
 */
cudaError_t work_run(struct runtime *runtime, const struct work *work, bool graph);

/** Copies, with parameters of its own. */
cudaError_t work_duplicate(struct work *copy, const struct work *work);

void work_free(struct work *work);

/** The graphs that are part of a piece of work: a child graph, the bodies of a conditional node.
 *  @return how many */
size_t work_graphs(const struct work *work, struct CUgraph_st *const **graphs);

#endif
