/* A function for each row of calls.h: takes the arguments from the frame, calls, gives the results.
 */
#include "common/simt/runtime/remote/client.h"
#include "common/simt/runtime/remote/each.h"
#include "common/simt/runtime/remote/names.h"
#include "common/simt/runtime/remote/numbers.h"
#include "common/simt/runtime/remote/server.h"

/* First all is taken, in the order of the parameters. */
#define RECEIVE(v, p) RECEIVE_1(v, STRIP p)
#define RECEIVE_1(...) RECEIVE_2(__VA_ARGS__)
#define RECEIVE_2(v, kind, what) RECEIVE_##kind(v, what)
#define RECEIVE_IN(v, T) \
    T v;                 \
    frame_take(frame, (void *)(uintptr_t)&v, sizeof v);
#define RECEIVE_INOUT(v, T) \
    T v##_;                 \
    T *v = frame_take_target(frame, (void *)(uintptr_t)&v##_, sizeof v##_) ? &v##_ : NULL;
#define RECEIVE_POINTED(v, T) \
    T v##_;                   \
    const T *v = frame_take_target(frame, &v##_, sizeof v##_) ? &v##_ : NULL;
#define RECEIVE_FROM(v, bytes) const void *v = (const void *)(uintptr_t)frame_take_number(frame);
#define RECEIVE_TO(v, bytes) void *v = (void *)(uintptr_t)frame_take_number(frame);
#define RECEIVE_HANDLE(v, T) T v = (T)frame_take_handle(frame);
#define RECEIVE_NODE(v, T) T v = frame_take_node(frame);
#define RECEIVE_NEW(v, T)             \
    T v##_ = (T)(uintptr_t)UNTOUCHED; \
    T *v = frame_take_number(frame) != 0 ? &v##_ : NULL;
#define RECEIVE_NODES(v, count)               \
    uint64_t v##_ = frame_take_number(frame); \
    const cudaGraphNode_t *v = NULL;
#define RECEIVE_NODES_OUT(v, room)            \
    uint64_t v##_ = frame_take_number(frame); \
    cudaGraphNode_t *v = NULL;
#define RECEIVE_EDGES_OUT(v, room)            \
    uint64_t v##_ = frame_take_number(frame); \
    cudaGraphEdgeData *v = NULL;
#define RECEIVE_NODES_GIVEN(v, count)         \
    uint64_t v##_ = frame_take_number(frame); \
    cudaGraphNode_t *v = NULL;
#define RECEIVE_NODES_KEPT(v, count)    \
    const cudaGraphNode_t *v##_ = NULL; \
    const cudaGraphNode_t **v = frame_take_number(frame) != 0 ? &v##_ : NULL;
#define RECEIVE_TEXT(v, unused) const char *v = frame_take_text(frame);
#define RECEIVE_TEXT_OUT(v, size)             \
    uint64_t v##_ = frame_take_number(frame); \
    char *v = NULL;
#define RECEIVE_TEXT_KEPT(v, unused) \
    const char *v##_ = NULL;         \
    const char **v = frame_take_number(frame) != 0 ? &v##_ : NULL;
#define RECEIVE_ARGUMENTS(v, kernel)                                     \
    uint32_t v##_bytes = 0;                                              \
    const unsigned char *v##_ = frame_take_arguments(frame, &v##_bytes); \
    void **v = NULL;
#define RECEIVE_KERNEL_NODE(v, unused)                               \
    struct cudaKernelNodeParams v##_ = {0};                          \
    uint32_t v##_bytes = 0;                                          \
    const struct cudaKernelNodeParams *v =                           \
        frame_take_target(frame, &v##_, sizeof v##_) ? &v##_ : NULL; \
    const unsigned char *v##_block = v != NULL ? frame_take_arguments(frame, &v##_bytes) : NULL;
#define RECEIVE_KERNEL_NODE_OUT(v, unused)  \
    struct cudaKernelNodeParams v##_ = {0}; \
    struct cudaKernelNodeParams *v = frame_take_number(frame) != 0 ? &v##_ : NULL;
#define RECEIVE_CONFIG(v, unused) const cudaLaunchConfig_t *v = frame_take_config(frame);
#define RECEIVE_PLANES(v, unused)  \
    struct cudaMemcpy3DParms v##_; \
    const struct cudaMemcpy3DParms *v = frame_take_planes(frame, &v##_) ? &v##_ : NULL;
#define RECEIVE_RESOURCE(v, unused) \
    struct cudaResourceDesc v##_;   \
    const struct cudaResourceDesc *v = frame_take_resource(frame, &v##_) ? &v##_ : NULL;
#define RECEIVE_RESOURCE_OUT(v, unused) \
    struct cudaResourceDesc v##_;       \
    struct cudaResourceDesc *v = frame_take_resource(frame, &v##_) ? &v##_ : NULL;
#define RECEIVE_ACCESS(v, count)              \
    uint64_t v##_ = frame_take_number(frame); \
    const struct cudaMemAccessDesc *v = NULL;
#define RECEIVE_POOL_VALUE(v, which) \
    uint64_t v##_;                   \
    void *v = frame_take_target(frame, &v##_, sizeof v##_) ? &v##_ : NULL;
#define RECEIVE_POOL_VALUE_OUT(v, which) RECEIVE_POOL_VALUE(v, which)

/* Then what depends on other parameters is made of it. */
#define PREPARE(v, p) PREPARE_1(v, STRIP p)
#define PREPARE_1(...) PREPARE_2(__VA_ARGS__)
#define PREPARE_2(v, kind, what) PREPARE_##kind(v, what)
#define PREPARE_IN(v, T)
#define PREPARE_INOUT(v, T)
#define PREPARE_POINTED(v, T)
#define PREPARE_FROM(v, bytes)
#define PREPARE_TO(v, bytes)
#define PREPARE_HANDLE(v, T)
#define PREPARE_NODE(v, T)
#define PREPARE_NEW(v, T)
#define PREPARE_NODES(v, count) v = frame_pull_nodes(frame, v##_, count);
#define PREPARE_NODES_OUT(v, room) v = frame_room(frame, v##_, room, sizeof *v);
#define PREPARE_EDGES_OUT(v, room) v = frame_room(frame, v##_, room, sizeof *v);
#define PREPARE_NODES_GIVEN(v, count) v = frame_pull_nodes(frame, v##_, count);
#define PREPARE_NODES_KEPT(v, count)
#define PREPARE_TEXT(v, unused)
#define PREPARE_TEXT_OUT(v, size) v = frame_text(frame, v##_, &size);
#define PREPARE_TEXT_KEPT(v, unused)
#define PREPARE_ARGUMENTS(v, kernel) v = frame_point(frame, v##_, v##_bytes, kernel);
#define PREPARE_KERNEL_NODE(v, unused) \
    v##_.kernelParams = frame_point(frame, v##_block, v##_bytes, v##_.func);
#define PREPARE_KERNEL_NODE_OUT(v, unused)
#define PREPARE_CONFIG(v, unused)
#define PREPARE_PLANES(v, unused)
#define PREPARE_ACCESS(v, count) v = frame_pull(frame, v##_, count, sizeof *v);
#define PREPARE_POOL_VALUE(v, which)
#define PREPARE_POOL_VALUE_OUT(v, which)
#define PREPARE_RESOURCE(v, unused)
#define PREPARE_RESOURCE_OUT(v, unused)

/* At last the results. */
#define GIVE(v, p) GIVE_1(v, STRIP p)
#define GIVE_1(...) GIVE_2(__VA_ARGS__)
#define GIVE_2(v, kind, what) GIVE_##kind(v, what)
#define GIVE_IN(v, T)
#define GIVE_INOUT(v, T)                                            \
    if (v != NULL) {                                                \
        frame_give(frame, (const void *)(uintptr_t)v, sizeof v##_); \
    }
#define GIVE_POINTED(v, T)
#define GIVE_FROM(v, bytes)
#define GIVE_TO(v, bytes)
#define GIVE_HANDLE(v, T)
#define GIVE_NODE(v, T)
#define GIVE_NEW(v, T)                  \
    if (v != NULL) {                    \
        frame_give_handle(frame, v##_); \
    }
#define GIVE_NODES(v, count)
#define GIVE_NODES_OUT(v, room) frame_push_nodes(frame, v##_, v, room);
#define GIVE_EDGES_OUT(v, room) frame_push(frame, v##_, v, room, sizeof *v);
#define GIVE_NODES_GIVEN(v, count)
#define GIVE_NODES_KEPT(v, count) frame_give_nodes(frame, v##_, count);
#define GIVE_TEXT(v, unused)
#define GIVE_TEXT_OUT(v, size)                   \
    if (v != NULL && size > 0) {                 \
        frame_give_text(frame, v, (size_t)size); \
    }
#define GIVE_TEXT_KEPT(v, unused) frame_give_text(frame, v##_, 0);
#define GIVE_ARGUMENTS(v, kernel)
#define GIVE_KERNEL_NODE(v, unused)
#define GIVE_KERNEL_NODE_OUT(v, unused) frame_give_kernel_node(frame, v);
#define GIVE_CONFIG(v, unused)
#define GIVE_PLANES(v, unused)
#define GIVE_ACCESS(v, count)
#define GIVE_POOL_VALUE(v, which)
#define GIVE_POOL_VALUE_OUT(v, which) GIVE_INOUT(v, which)
#define GIVE_RESOURCE(v, unused)
#define GIVE_RESOURCE_OUT(v, unused)   \
    if (v != NULL) {                   \
        frame_give_resource(frame, v); \
    }

#define SERVE(name, count, ...)                                      \
    static void serve_##name(struct frame *frame) {                  \
        EACH_##count(RECEIVE, __VA_ARGS__) if (frame->good) {        \
            EACH_##count(PREPARE, __VA_ARGS__)                       \
        }                                                            \
        if (frame->good) {                                           \
            frame->error = name(LIST_##count(NAME_OF, __VA_ARGS__)); \
            EACH_##count(GIVE, __VA_ARGS__)                          \
        }                                                            \
    }

DEVICE_CALLS(SERVE)

bool serve_number(struct frame *frame, uint32_t number) {
    static void (*const ROWS[CALL_COUNT])(struct frame *) = {
#define ROW(name, ...) [CALL_##name] = serve_##name,
        DEVICE_CALLS(ROW)
#undef ROW
    };
    if (number >= CALL_COUNT) {
        return false;
    }
    ROWS[number](frame);
    return true;
}
