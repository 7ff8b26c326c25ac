/**
 * @file ask.h
 * @brief What the library asks of the device beside CUDA's functions: rows of calls.h, too.
 *
 * They stand for the functions of simt.h, and for what a program's library needs to know or to
 * tell: its modules, how a kernel's arguments lie, what an address is.
 */
#ifndef WARPBOOK_COMMON_SIMT_RUNTIME_REMOTE_ASK_H_
#define WARPBOOK_COMMON_SIMT_RUNTIME_REMOTE_ASK_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cuda_runtime_api.h>

#include "common/simt/runtime/remote/calls.h"

cudaError_t simt_ask_totals(struct simt_totals *totals);
cudaError_t simt_ask_limits(struct simt_limits *limits);
/** cudaErrorNotReady when there was no launch. */
cudaError_t simt_ask_longest(struct simt_profile *profile);
/** For a controller alone. */
cudaError_t simt_ask_state(struct simt_device_state *state);
cudaError_t simt_ask_gpu(char *key, int size);
cudaError_t simt_ask_name(const void *pointer, const char *name);

/** What libnccl.so.2 asks for: see nccl/collective.h. None of them waits for other ranks. */
cudaError_t simt_collective_join(struct collective_join *join);
cudaError_t simt_collective_split(struct collective_split *split);
cudaError_t simt_collective_status(struct collective_status *status);
cudaError_t simt_collective_submit(const struct collective *operation, cudaStream_t stream);
cudaError_t simt_collective_exchange(const struct collective_exchange *exchange,
                                     cudaStream_t stream);

/** How the arguments of a kernel lie; loads its module. */
cudaError_t simt_ask_layout(struct simt_kernel_layout *layout, const void *function);
/** Describes an address of device memory. */
cudaError_t simt_ask_place(struct simt_place *place, const void *address);

/** Gives the program a piece of managed memory that it uses and the device has. */
cudaError_t simt_ask_page(const void *address, unsigned writes);

/** Adds a module with a copy of the fat binary of @p bytes bytes at @p data in the program. */
cudaError_t simt_add_module(simt_module_handle *module, struct fatbin_wrapper wrapper,
                            const void *data, size_t bytes);
/** Adds a copy of one more file to a module of version 2, which is linked of its files. */
cudaError_t simt_add_file(simt_module_handle module, const void *data, size_t bytes);
cudaError_t simt_drop_module(simt_module_handle module);
/** @param spelt the name as the source spells it */
cudaError_t simt_add_kernel(simt_module_handle module, const void *host, const char *name,
                            const char *spelt);
/** @param managed where the program keeps the variable's address; NULL: it is not managed */
cudaError_t simt_add_variable(simt_module_handle module, const void *host, void **managed,
                              const char *name, size_t bytes);
/** Loads a module, which sets the addresses of its managed variables. */
cudaError_t simt_load_module(simt_module_handle module);

/** Adds a conditional node with empty bodies; and the graph of one of them. */
cudaError_t simt_add_condition(cudaGraphNode_t *node, cudaGraph_t graph,
                               const cudaGraphNode_t *after, size_t count,
                               cudaGraphConditionalHandle handle,
                               enum cudaGraphConditionalNodeType type, unsigned size);
cudaError_t simt_ask_body(cudaGraphNode_t node, unsigned number, cudaGraph_t *body);

/** Adds a node that allocates memory, and one that frees it; and what one of either has.
 *  @param pointer receives the memory's address */
cudaError_t simt_add_allocation(cudaGraphNode_t *node, cudaGraph_t graph,
                                const cudaGraphNode_t *after, size_t count, int device,
                                size_t bytes, void **pointer);
cudaError_t simt_ask_allocation(cudaGraphNode_t node, int *device, size_t *bytes, void **pointer);
/** What graphs have of a device's memory, one of CUDA's attributes; and sets it. */
cudaError_t simt_ask_graph_memory(int device, int attribute, unsigned long long *value);
cudaError_t simt_set_graph_memory(int device, int attribute, unsigned long long value);

/** The program ends: says what it leaves. @param refused the program's library refused a call */
cudaError_t simt_finish(unsigned refused);

#endif
