/**
 * @file server.h
 * @brief The device's end: checks the calls of programs and passes them to the implementation.
 *
 * One thread serves all connections, a call at a time. What a program sends is distrusted: sizes,
 * numbers, pointers, handles and the order of packets. A program that breaks the protocol loses its
 * connection, and nothing else happens.
 */
#ifndef WARPBOOK_COMMON_SIMT_RUNTIME_REMOTE_SERVER_H_
#define WARPBOOK_COMMON_SIMT_RUNTIME_REMOTE_SERVER_H_

#include <stdbool.h>
#include <stdint.h>

#include "common/simt/runtime/memory/program_memory.h"
#include "common/simt/runtime/remote/calls.h"
#include "common/simt/runtime/remote/packet.h"
#include "common/simt/runtime/remote/posts.h"

struct runtime;

/** Calls inside of host functions, inside of calls ...: so many at most. */
enum { SERVER_DEPTH = 8 };

struct server {
    struct program program; /**< how the implementation reaches the one whose call is served */
    struct runtime *runtime;
    int socket;   /**< of that program; -1: none */
    bool broken;  /**< its connection is of no more use */
    uint64_t key; /**< hides addresses in handles */
    unsigned depth;
    struct packet *requests[SERVER_DEPTH], *replies[SERVER_DEPTH];
    struct packet *between; /**< what comes while a call runs */
    struct posts_inbox *inbox;
    struct packet *post;   /**< the call without an answer that is served */
    cudaError_t posted;    /**< first error of these since an answer */
    struct packet *tail;   /**< a PUSH that travels with the answer; extra 0: there is none */
    struct server *speaks; /**< whose call is served, for output; NULL: this one's */
};

/** One call. */
struct frame {
    struct server *server;
    const struct packet *request;
    struct packet *reply;
    size_t at;
    bool good; /**< the request is well-formed so far */
    cudaError_t error;
    struct scratch *scratch;
};

/** Waits for the next packet, which comes to `requests[depth]`. @return as packet_receive() */
MUST_CHECK enum status server_receive(struct server *server);

/** Serves the call in `requests[depth]`, behind those without an answer that came with it.
 *  @return false when the connection is of no more use */
bool server_call(struct server *server);

/** Frees what server_prepare() made. */
void server_free(struct server *server);

/** Fills in how the implementation reaches a program. */
void server_open_program(struct server *server);

/** Makes room for packets, and a key. */
bool server_prepare(struct server *server);

/** Reads the settings, and makes the devices' memory; what is wrong ends the process. */
struct runtime *server_begin(void);

/** Sends a program the first packet. @return false: it has gone */
bool server_greet(const struct server *server, int socket);

/** Serves one call. @return false when the connection is of no more use */
bool server_serve(struct server *server, int socket, bool controller);

/** Has the process's stdout and stderr go to the program whose call is served. */
bool server_redirect_output(struct server *server);

/** Serves until its controller is gone, or, without one, its program. @param confined take away
 *  what the process has no use for. @return the exit status of the process */
int server_run(int program, int controller, bool confined);

/** The same for programs that come and go, until the last one has gone. @param listener takes their
 *  connections */
int server_run_shared(int listener);

/** What a frame's parts are made of; sizes and numbers are checked. */
void frame_take(struct frame *frame, void *value, size_t bytes);
bool frame_take_target(struct frame *frame, void *target, size_t bytes);
uint64_t frame_take_number(struct frame *frame);
void *frame_take_handle(struct frame *frame);
cudaGraphNode_t frame_take_node(struct frame *frame);
/** @return memory that is freed with the frame, zeros; NULL, and the frame has failed. */
void *frame_scratch(struct frame *frame, size_t count, size_t bytes);
/** @return a copy of the program's @p count elements of @p bytes each; NULL: there are none. */
void *frame_pull(struct frame *frame, uint64_t address, size_t count, size_t bytes);
cudaGraphNode_t *frame_pull_nodes(struct frame *frame, uint64_t address, size_t count);
/** @return room for *room elements, which is made less where it is more than any graph has. */
void *frame_room(struct frame *frame, uint64_t address, size_t *room, size_t bytes);
/** @return a string, or NULL */
const char *frame_take_text(struct frame *frame);
char *frame_text(struct frame *frame, uint64_t wanted, int *size);
unsigned char *frame_take_arguments(struct frame *frame, uint32_t *bytes);
void **frame_point(struct frame *frame, const unsigned char *block, uint32_t bytes,
                   const void *function);
const cudaLaunchConfig_t *frame_take_config(struct frame *frame);
/** Structs with handles of arrays, which are only numbers until they are found in the list. */
bool frame_take_planes(struct frame *frame, struct cudaMemcpy3DParms *planes);
bool frame_take_resource(struct frame *frame, struct cudaResourceDesc *resource);

void frame_give(struct frame *frame, const void *value, size_t bytes);
void frame_give_handle(struct frame *frame, const void *object);
void frame_give_text(struct frame *frame, const char *text, size_t size);
void frame_give_nodes(struct frame *frame, const cudaGraphNode_t *nodes, const size_t *count);
void frame_push_nodes(struct frame *frame, uint64_t address, cudaGraphNode_t *nodes,
                      const size_t *count);
void frame_push(struct frame *frame, uint64_t address, const void *from, const size_t *count,
                size_t bytes);
void frame_give_kernel_node(struct frame *frame, struct cudaKernelNodeParams *parameters);
void frame_give_resource(struct frame *frame, const struct cudaResourceDesc *resource);
void frame_free(struct frame *frame);

/** Calls the function of a row, with what the frame has. @return false: there is no such row */
bool serve_number(struct frame *frame, uint32_t number);

/** Takes away what the process has no use for: files, sockets, other processes. */
bool confine(void);

#endif
