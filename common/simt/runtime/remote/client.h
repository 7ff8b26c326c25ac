/**
 * @file client.h
 * @brief The program's end: sends calls to the device process, and does what the device asks.
 *
 * SIMT_DEVICE chooses, when the program first asks for the device:
 *
 *     (not set), inside   the device is in this process
 *     process             a process of its own, which this program starts and which ends with it
 *     N                   the device process behind the socket with descriptor N
 */
#ifndef WARPBOOK_COMMON_SIMT_RUNTIME_REMOTE_CLIENT_H_
#define WARPBOOK_COMMON_SIMT_RUNTIME_REMOTE_CLIENT_H_

#include <stdbool.h>

#include <cuda_runtime_api.h>

#include "common/simt/runtime/remote/calls.h"
#include "common/simt/runtime/remote/packet.h"

/** @return true when calls go to a device process. */
bool client_is_on(void);

/** A call: its arguments are put, it runs, its results are taken. */
struct call {
    struct packet packet;
    unsigned char asked[32]; /**< the first of its arguments, when it has run */
    const void *from;        /**< memory that travels with the call, or NULL */
    size_t at;               /**< of the next result */
    cudaError_t refused;     /**< what is wrong before it was sent */
    bool failed;             /**< there are no results */
};

/** Holds the connection until call_end(). */
void call_begin(struct call *call, uint32_t number);
cudaError_t call_run(struct call *call);
cudaError_t call_end(struct call *call, cudaError_t error);

void call_put(struct call *call, const void *value, size_t bytes);
/** A pointer's target, or that there is none. */
void call_put_target(struct call *call, const void *target, size_t bytes);
void call_put_number(struct call *call, uint64_t number);
void call_put_text(struct call *call, const char *text);
/** Memory that the call is to write, or likely to read. */
void call_put_destination(struct call *call, void *to, size_t bytes);
void call_put_source(struct call *call, const void *from, size_t bytes);
void call_put_arguments(struct call *call, void **arguments, const void *kernel);
void call_put_kernel_node(struct call *call, const struct cudaKernelNodeParams *parameters);
void call_put_config(struct call *call, const cudaLaunchConfig_t *config);
/** Of a memory pool: some attributes are an int, the others are 64 bits. */
void call_put_pool_value(struct call *call, const void *value, enum cudaMemPoolAttr which);

void call_take(struct call *call, void *value, size_t bytes);
/** @return a handle; UNTOUCHED when the call gave none. */
uint64_t call_take_number(struct call *call);
void call_take_text(struct call *call, char *text, int size);
void call_take_kept_text(struct call *call, const char **text);
void call_take_nodes(struct call *call, const cudaGraphNode_t **nodes);
void call_take_pool_value(struct call *call, void *value, enum cudaMemPoolAttr which);
void call_take_kernel_node(struct call *call, struct cudaKernelNodeParams *parameters);

/** In place of a handle that the device has not given. */
#define UNTOUCHED UINT64_MAX

/** Tells the device, if it is at work, of a module that came or goes. */
struct module;
void client_add_module(struct module *module);
void client_drop_module(struct module *module);

/** Has the device load a module. @return false when it cannot */
bool client_load_module(struct module *module);

#endif
