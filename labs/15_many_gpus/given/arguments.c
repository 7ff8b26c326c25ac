/* What the lab's functions take. */
#include <stdint.h>

#include "labs/15_many_gpus/many_gpus.h"

static bool aligned(const void *p) {
    return (uintptr_t)p % 16 == 0;
}

static enum status check_workspace(const struct comm_memory *workspace, struct error *error) {
    if (workspace == NULL || workspace->bytes < MANY_WORKSPACE_BYTES) {
        return error_set(error, STATUS_INVALID_ARGUMENT,
                         "the workspace has %zu bytes of symmetric memory; it must be %zu",
                         workspace == NULL ? 0 : workspace->bytes, MANY_WORKSPACE_BYTES);
    }
    return STATUS_OK;
}

enum status many_all_reduce_check(const struct comm *comm, const struct many_all_reduce *reduce,
                                  struct error *error) {
    if (reduce->dtype != NN_F32 && reduce->dtype != NN_BF16) {
        return error_set(error, STATUS_INVALID_ARGUMENT,
                         "all-reduce: the type must be f32 or bf16");
    }
    size_t bytes = reduce->count * nn_dtype_bytes(reduce->dtype);
    if (reduce->count == 0 || reduce->count > MANY_MAX_COUNT || bytes % 16 != 0) {
        return error_set(error, STATUS_INVALID_ARGUMENT,
                         "all-reduce: %zu elements; they must be 1 to %zu and a multiple of 16 "
                         "bytes",
                         reduce->count, MANY_MAX_COUNT);
    }
    for (int r = 0; r < comm->ranks; r++) {
        if (reduce->data[r] == NULL || !aligned(reduce->data[r])) {
            return error_set(error, STATUS_INVALID_ARGUMENT,
                             "all-reduce: the data of rank %d is %s", r,
                             reduce->data[r] == NULL ? "NULL" : "not aligned to 16 bytes");
        }
    }
    return check_workspace(reduce->workspace, error);
}

enum status many_linear_check(const struct comm *comm, const struct many_linear *l,
                              struct error *error) {
    (void)comm;
    if (l->N == 0 || l->N % 4 != 0 || l->N > MANY_MAX_N) {
        return error_set(error, STATUS_INVALID_ARGUMENT,
                         "linear: N = %zu; it must be a multiple of 4, at most %zu", l->N,
                         MANY_MAX_N);
    }
    if (l->K * nn_dtype_bytes(l->dtype) % 16 != 0) {
        return error_set(error, STATUS_INVALID_ARGUMENT,
                         "linear: K = %zu; a row must be a multiple of 16 bytes", l->K);
    }
    if (l->K == 0 && l->bias != NULL) {
        return error_set(error, STATUS_INVALID_ARGUMENT, "linear: a bias, but no columns");
    }
    if (!aligned(l->weight) || !aligned(l->in) || !aligned(l->bias) || !aligned(l->x)) {
        return error_set(error, STATUS_INVALID_ARGUMENT,
                         "linear: a pointer is not aligned to 16 bytes");
    }
    return check_workspace(l->workspace, error);
}

enum status many_shape_check(const struct many_shape *shape, int ranks, struct error *error) {
    size_t count = (size_t)ranks;
    if (shape->KVH % count != 0 || shape->hidden % count != 0) {
        return error_set(error, STATUS_UNSUPPORTED,
                         "a model with %zu key heads and %zu hidden channels cannot be cut into "
                         "%d parts: both must be multiples of it",
                         shape->KVH, shape->hidden, ranks);
    }
    return STATUS_OK;
}
