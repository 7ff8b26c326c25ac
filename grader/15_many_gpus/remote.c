#include "grader/15_many_gpus/remote.h"

#include <stdlib.h>
#include <string.h>

#include "grader/15_many_gpus/calls.h"
#include "grader/isolation/remote.h"

/* On simt, whoever starts the test. */
__attribute__((constructor)) static void want_devices(void) {
    setenv("SIMT_DEVICES", remote_many_wanted, 1);
}

int remote_many_devices(struct error *error) {
    struct many_devices_call call = {0};
    enum status status = remote_call("many_devices", &call, sizeof call, error);
    return status == STATUS_OK ? call.count : 0;
}

enum status remote_many_open(void **rig, int ranks, size_t bytes, struct error *error) {
    struct many_open_call call = {.ranks = ranks, .bytes = bytes};
    *rig = NULL;
    TRY(remote_call("many_open", &call, sizeof call, error));
    *rig = call.rig;
    return STATUS_OK;
}

void remote_many_close(void *rig) {
    struct many_open_call call = {.rig = rig};
    if (rig != NULL && remote_alive()) {
        enum status ignored = remote_call("many_close", &call, sizeof call, NULL);
        (void)ignored; /* a worker that ends frees everything */
    }
}

enum status remote_many_record(void *rig, const struct many_sums *sums, struct error *error) {
    struct many_sums_call call = {.rig = rig, .sums = *sums};
    return remote_call("many_record", &call, sizeof call, error);
}

static enum status run_sums(struct many_sums_call *call, double *ms, struct many_done *done,
                            struct error *error) {
    struct many_sums_call copy = *call;
    TRY(remote_call("many_load", &copy, sizeof copy, error));
    remote_check_idle("operands were loaded");
    copy = *call;
    TRY(ms != NULL ? remote_call_timed("many_sum", call, sizeof *call, NULL, ms, error)
                   : remote_call("many_sum", &copy, sizeof copy, error));
    const struct remote_counts timed = remote_counted();
    copy = *call;
    TRY(remote_call("many_store", &copy, sizeof copy, error));
    remote_check_idle("results were copied");
    done->sent = timed.sent;
    done->moved = timed.bytes;
    return STATUS_OK;
}

enum status remote_many_sums(void *rig, struct many_sums_problem *p, double *ms,
                             struct error *error) {
    size_t bytes = many_sums_bytes(&p->sums) * (size_t)p->ranks;
    struct many_sums_call call = {.rig = rig, .sums = p->sums};
    void *d_in = NULL, *d_out = NULL;
    enum status status = device_alloc(&d_in, bytes, error);
    if (status == STATUS_OK) {
        status = device_alloc(&d_out, bytes, error);
    }
    if (status == STATUS_OK) {
        status = device_write(d_in, p->in, bytes, NULL, error);
    }
    call.in = d_in;
    call.out = d_out;
    if (status == STATUS_OK) {
        status = run_sums(&call, ms, &p->done, error);
    }
    if (status == STATUS_OK) {
        status = device_read(p->out, d_out, bytes, NULL, error);
    }
    device_free(d_in);
    device_free(d_out);
    return status;
}

/* One block of device 0 for all operands. */
static enum status place(struct many_products *at, const struct many_products_problem *p,
                         char *d_memory, struct error *error) {
    size_t N = at->N, K = at->K, F = sizeof(float);
    size_t weight = (N * K * nn_dtype_bytes(at->dtype) + 255) / 256 * 256;
    float *numbers = (float *)(d_memory + weight);
    TRY(device_write(d_memory, p->weight, N * K * nn_dtype_bytes(at->dtype), NULL, error));
    TRY(device_write(numbers, p->in, (K + 2 * N) * F, NULL, error));
    at->weight = d_memory;
    at->in = numbers;
    at->add = numbers + K;
    at->x = at->add + N;
    at->out = (float *)at->x + N;
    return STATUS_OK;
}

enum status remote_many_multiply(void *rig, struct many_products_problem *p, struct error *error) {
    struct many_products_call call = {rig, p->products};
    size_t N = p->products.N, K = p->products.K, ranks = (size_t)p->ranks;
    void *d_memory = NULL;
    TRY(device_alloc(&d_memory, (N * K + K + (2 + ranks) * N) * sizeof(float) + 256, error));
    enum status status = place(&call.products, p, d_memory, error);
    float *d_out = call.products.out;
    if (status == STATUS_OK) {
        status = remote_call("many_multiply", &call, sizeof call, error);
    }
    if (status == STATUS_OK) {
        status = device_read(p->out, d_out, ranks * N * sizeof(float), NULL, error);
    }
    device_free(d_memory);
    return status;
}

void remote_many_cut(enum many_matrix matrix, const struct many_shape *shape, int rank, int ranks,
                     struct many_part *part) {
    struct many_cut_call call = {.matrix = matrix, .shape = *shape, .rank = rank, .ranks = ranks};
    memset(&call.part, 0xff, sizeof call.part);
    enum status status = remote_call("many_cut", &call, sizeof call, NULL);
    if (status == STATUS_OK) {
        *part = call.part;
    }
}

enum status remote_many_decode_open(void **decoders, int ranks, const struct decoder_model *model,
                                    struct error *error) {
    struct decoder_model copy = *model;
    struct many_decode_open_call call = {.ranks = ranks};
    void *layers, *memory;
    *decoders = NULL;
    TRY(remote_copy(&layers, model->layers, model->L * sizeof *model->layers, error));
    copy.layers = layers;
    TRY(remote_copy(&memory, &copy, sizeof copy, error));
    call.model = memory;
    TRY(remote_call("many_decode_open", &call, sizeof call, error));
    *decoders = call.decoders;
    return STATUS_OK;
}
