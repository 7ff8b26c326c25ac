/**
 * @file each.h
 * @brief Applies a macro to each parameter of a row of calls.h: op(a, (KIND, what)) op(b, ...) ...
 */
#ifndef WARPBOOK_COMMON_SIMT_RUNTIME_REMOTE_EACH_H_
#define WARPBOOK_COMMON_SIMT_RUNTIME_REMOTE_EACH_H_

/* clang-format off */
#define EACH_0(op, ...)
#define EACH_1(op, A) op(a, A)
#define EACH_2(op, A, B) op(a, A) op(b, B)
#define EACH_3(op, A, B, C) EACH_2(op, A, B) op(c, C)
#define EACH_4(op, A, B, C, D) EACH_3(op, A, B, C) op(d, D)
#define EACH_5(op, A, B, C, D, E) EACH_4(op, A, B, C, D) op(e, E)
#define EACH_6(op, A, B, C, D, E, F) EACH_5(op, A, B, C, D, E) op(f, F)
#define EACH_7(op, A, B, C, D, E, F, G) EACH_6(op, A, B, C, D, E, F) op(g, G)
#define EACH_8(op, A, B, C, D, E, F, G, H) EACH_7(op, A, B, C, D, E, F, G) op(h, H)
#define EACH_9(op, A, B, C, D, E, F, G, H, I) EACH_8(op, A, B, C, D, E, F, G, H) op(i, I)

/* The same with commas between them. */
#define LIST_0(op, ...)
#define LIST_1(op, A) op(a, A)
#define LIST_2(op, A, B) op(a, A), op(b, B)
#define LIST_3(op, A, B, C) LIST_2(op, A, B), op(c, C)
#define LIST_4(op, A, B, C, D) LIST_3(op, A, B, C), op(d, D)
#define LIST_5(op, A, B, C, D, E) LIST_4(op, A, B, C, D), op(e, E)
#define LIST_6(op, A, B, C, D, E, F) LIST_5(op, A, B, C, D, E), op(f, F)
#define LIST_7(op, A, B, C, D, E, F, G) LIST_6(op, A, B, C, D, E, F), op(g, G)
#define LIST_8(op, A, B, C, D, E, F, G, H) LIST_7(op, A, B, C, D, E, F, G), op(h, H)
#define LIST_9(op, A, B, C, D, E, F, G, H, I) LIST_8(op, A, B, C, D, E, F, G, H), op(i, I)

/* The list of parameters of a function. */
#define PARAMETERS_0(...) void
#define PARAMETERS_1(...) LIST_1(DECLARE, __VA_ARGS__)
#define PARAMETERS_2(...) LIST_2(DECLARE, __VA_ARGS__)
#define PARAMETERS_3(...) LIST_3(DECLARE, __VA_ARGS__)
#define PARAMETERS_4(...) LIST_4(DECLARE, __VA_ARGS__)
#define PARAMETERS_5(...) LIST_5(DECLARE, __VA_ARGS__)
#define PARAMETERS_6(...) LIST_6(DECLARE, __VA_ARGS__)
#define PARAMETERS_7(...) LIST_7(DECLARE, __VA_ARGS__)
#define PARAMETERS_8(...) LIST_8(DECLARE, __VA_ARGS__)
#define PARAMETERS_9(...) LIST_9(DECLARE, __VA_ARGS__)

#define NAME_OF(v, p) v
#define DECLARE(v, p) DECLARE_1(v, STRIP p)
#define DECLARE_1(...) DECLARE_2(__VA_ARGS__)
#define DECLARE_2(v, kind, what) TYPE_##kind(what) v
#define STRIP(...) __VA_ARGS__

#define TYPE_IN(T) T
#define TYPE_INOUT(T) T *
#define TYPE_POINTED(T) const T *
#define TYPE_FROM(bytes) const void *
#define TYPE_TO(bytes) void *
#define TYPE_HANDLE(T) T
#define TYPE_NODE(T) T
#define TYPE_NEW(T) T *
#define TYPE_NODES(count) const cudaGraphNode_t *
#define TYPE_NODES_OUT(room) cudaGraphNode_t *
#define TYPE_EDGES_OUT(room) cudaGraphEdgeData *
#define TYPE_NODES_GIVEN(count) cudaGraphNode_t *
#define TYPE_NODES_KEPT(count) const cudaGraphNode_t **
#define TYPE_TEXT(unused) const char *
#define TYPE_TEXT_OUT(size) char *
#define TYPE_TEXT_KEPT(unused) const char **
#define TYPE_ARGUMENTS(kernel) void **
#define TYPE_KERNEL_NODE(unused) const struct cudaKernelNodeParams *
#define TYPE_KERNEL_NODE_OUT(unused) struct cudaKernelNodeParams *
#define TYPE_CONFIG(unused) const cudaLaunchConfig_t *
#define TYPE_PLANES(unused) const struct cudaMemcpy3DParms *
#define TYPE_ACCESS(count) const struct cudaMemAccessDesc *
#define TYPE_POOL_VALUE(which) void *
#define TYPE_POOL_VALUE_OUT(which) void *
#define TYPE_RESOURCE(unused) const struct cudaResourceDesc *
#define TYPE_RESOURCE_OUT(unused) struct cudaResourceDesc *
/* clang-format on */

#endif
