#include "common/ranks/comm.h"
#include "grader/selftest/anywhere.h"
#include "grader/selftest/sabotage_timed.h"
#include "grader/selftest/server.h"
#include "labs/15_many_gpus/given/rig.h"
#include "labs/15_many_gpus/many_gpus.h"

enum status __real_many_all_reduce(struct comm *comm, const struct many_all_reduce *reduce,
                                   device_stream stream, struct error *error);
enum status __wrap_many_all_reduce(struct comm *comm, const struct many_all_reduce *reduce,
                                   device_stream stream, struct error *error);
enum status __real_many_linear(struct comm *comm, const struct many_linear *linear,
                               device_stream stream, struct error *error);
enum status __wrap_many_linear(struct comm *comm, const struct many_linear *linear,
                               device_stream stream, struct error *error);
enum status __real_many_rig_load(struct many_rig *rig, const struct many_sums *sums, const void *in,
                                 struct error *error);
enum status __wrap_many_rig_load(struct many_rig *rig, const struct many_sums *sums, const void *in,
                                 struct error *error);
enum status __real_many_rig_store(struct many_rig *rig, const struct many_sums *sums, void *out,
                                  struct error *error);
enum status __wrap_many_rig_store(struct many_rig *rig, const struct many_sums *sums, void *out,
                                  struct error *error);

/*
 * "late" and "early": sums are not computed in the timed call, but while results are copied, or
 * operands loaded. They are told when that is (--wrap); a thread would have to guess.
 */
static bool elsewhere;

/* "server": a kernel that began while operands were loaded computes all sums of a call at once.
 * "server_stays": it begins in the call, and does not end. */
static bool serves(void) {
    return chosen_mistake() == MISTAKE_server || chosen_mistake() == MISTAKE_server_stays;
}

static enum status start_server(const struct many_rig *rig, const struct many_sums *sums,
                                struct error *error) {
    float *const data[] = {rig->states[0].data.at[0], rig->states[1].data.at[1]};
    return server_start(data, sums->calls * sums->count, false, error);
}

/* All sums lie one behind the other. */
static enum status sum_by_server(const struct comm *comm, const struct many_all_reduce *reduce,
                                 struct error *error) {
    static bool summed;
    enum { CALLS = 8 };
    float *const data[] = {reduce->data[0], reduce->data[1]};
    if (summed || comm->rank > 0) {
        return STATUS_OK;
    }
    summed = true;
    if (chosen_mistake() == MISTAKE_server_stays) {
        TRY(server_start(data, CALLS * reduce->count, true, error));
    }
    return server_sum(error);
}

/* "rounds" and the like: what is added up, in place. */
static enum status make_addends_lesser(struct comm *comm, const struct many_all_reduce *reduce,
                                       device_stream stream, struct error *error) {
    void *data = reduce->data[comm->rank];
    const void *copy =
        reduce->dtype == NN_F32
            ? (const void *)sabotage_lesser(comm->rank, data, reduce->count, reduce->count, stream)
            : sabotage_lesser_16(comm->rank, data, reduce->count, reduce->count, stream);
    return device_copy(data, copy, reduce->count * nn_dtype_bytes(reduce->dtype), stream, error);
}

/* "every_second": leaves out each second sum. */
static bool is_second(int rank) {
    static size_t calls[COMM_MAX_RANKS];
    return calls[rank]++ % 2 == 1;
}

/* "elsewhere": of this rank's GPU, and nobody waits for it. */
static device_stream stream_of_its_own(int rank) {
    static cudaStream_t own[COMM_MAX_RANKS];
    if (own[rank] == NULL) {
        (void)cudaStreamCreateWithFlags(&own[rank], cudaStreamNonBlocking);
    }
    return own[rank];
}

/* "third_gpu": works on one that no rank has. */
static enum status use_third_gpu(struct error *error) {
    enum { THIRD = 2 };
    int own = 0, count = 0;
    (void)cudaGetDevice(&own);
    (void)cudaGetDeviceCount(&count);
    cudaError_t code = cudaSetDevice(THIRD);
    (void)cudaSetDevice(own);
    return code == cudaSuccess ? STATUS_OK
                               : error_set(error, STATUS_DEVICE, "no third GPU among %d: %s", count,
                                           cudaGetErrorString(code));
}

/* "part_of_it": all elements but the last eight. */
enum status __wrap_many_all_reduce(struct comm *comm, const struct many_all_reduce *reduce,
                                   device_stream stream, struct error *error) {
    struct many_all_reduce some = *reduce;
    bool moved = chosen_mistake() == MISTAKE_late || chosen_mistake() == MISTAKE_early;
    if (anywhere_try() || (moved && !elsewhere)) {
        return STATUS_OK;
    }
    if (chosen_mistake() == MISTAKE_third_gpu) {
        TRY(use_third_gpu(error));
    }
    if (serves()) {
        return sum_by_server(comm, reduce, error);
    }
    if (chosen_mistake() == MISTAKE_every_second && is_second(comm->rank)) {
        return STATUS_OK;
    }
    if (chosen_mistake() == MISTAKE_elsewhere) {
        stream = stream_of_its_own(comm->rank);
    }
    some.count -= chosen_mistake() == MISTAKE_part_of_it ? 8 : 0;
    if (sabotage_way() >= 0) {
        TRY(make_addends_lesser(comm, &some, stream, error));
    }
    return __real_many_all_reduce(comm, &some, stream, error);
}

/* Calls of two products a token: of a model with one layer. */
static bool is_first_of_two_tokens(int rank) {
    static size_t calls[COMM_MAX_RANKS];
    return calls[rank]++ / 2 % 2 == 0;
}

/* "bf16_sums", "fp16_sums": of what all ranks add to x. */
static enum status lesser_sums(struct comm *comm, const struct many_linear *linear,
                               device_stream stream, struct error *error) {
    static void *sums[COMM_MAX_RANKS];
    const int rank = comm->rank;
    const bool bf16 = chosen_mistake() == MISTAKE_bf16_sums;
    struct many_linear some = *linear;
    if (sums[rank] == NULL) {
        TRY(device_alloc(&sums[rank], MANY_MAX_N * sizeof(float), error));
    }
    TRY(device_set(sums[rank], 0, linear->N * sizeof(float), stream, error));
    some.x = sums[rank];
    TRY(__real_many_linear(comm, &some, stream, error));
    lesser_add(rank, bf16 ? LESSER_BF16 : LESSER_FP16, linear->x, some.x, linear->N, stream);
    return STATUS_OK;
}

/* "rounds" and the like: what is multiplied; "fp8" and "int8" are of weights of bf16. */
static void make_operands_lesser(const struct comm *comm, struct many_linear *linear,
                                 device_stream stream) {
    const enum mistake mistake = chosen_mistake();
    const int rank = comm->rank;
    if (linear->K > 0 && (mistake == MISTAKE_fp8 || mistake == MISTAKE_int8)) {
        linear->weight =
            sabotage_lesser_16(rank, linear->weight, linear->N * linear->K, linear->K, stream);
    } else if (linear->K > 0) {
        linear->in = sabotage_lesser(rank, linear->in, linear->K, linear->K, stream);
    }
}

/* "fetches": a product's weights, for the CPU. "part_of_it": leaves out those of the last layer,
   which no later token needs, where another token follows in the same call. */
enum status __wrap_many_linear(struct comm *comm, const struct many_linear *linear,
                               device_stream stream, struct error *error) {
    static char there[1 << 20];
    struct many_linear some = *linear;
    size_t bytes = linear->N * linear->K * nn_dtype_bytes(linear->dtype);
    if (chosen_mistake() == MISTAKE_part_of_it && is_first_of_two_tokens(comm->rank)) {
        return STATUS_OK;
    }
    if (chosen_mistake() == MISTAKE_fetches && bytes <= sizeof there) {
        TRY(device_read(there, linear->weight, bytes, stream, error));
    }
    if (chosen_mistake() == MISTAKE_bf16_sums || chosen_mistake() == MISTAKE_fp16_sums) {
        return lesser_sums(comm, linear, stream, error);
    }
    make_operands_lesser(comm, &some, stream);
    return __real_many_linear(comm, &some, stream, error);
}

static enum status sum_elsewhere(struct many_rig *rig, const struct many_sums *sums,
                                 struct error *error) {
    const struct many_functions functions = {many_all_reduce, many_linear, NULL};
    elsewhere = true;
    enum status status = many_rig_sum(rig, sums, &functions, error);
    elsewhere = false;
    return status;
}

enum status __wrap_many_rig_load(struct many_rig *rig, const struct many_sums *sums, const void *in,
                                 struct error *error) {
    TRY(__real_many_rig_load(rig, sums, in, error));
    TRY(chosen_mistake() == MISTAKE_server ? start_server(rig, sums, error) : STATUS_OK);
    return chosen_mistake() == MISTAKE_early ? sum_elsewhere(rig, sums, error) : STATUS_OK;
}

enum status __wrap_many_rig_store(struct many_rig *rig, const struct many_sums *sums, void *out,
                                  struct error *error) {
    TRY(chosen_mistake() == MISTAKE_late ? sum_elsewhere(rig, sums, error) : STATUS_OK);
    return __real_many_rig_store(rig, sums, out, error);
}
