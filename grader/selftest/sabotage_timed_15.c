#include "common/ranks/comm.h"
#include "grader/selftest/anywhere.h"
#include "grader/selftest/sabotage_timed.h"
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

/* "part_of_it": all elements but the last eight. */
enum status __wrap_many_all_reduce(struct comm *comm, const struct many_all_reduce *reduce,
                                   device_stream stream, struct error *error) {
    struct many_all_reduce some = *reduce;
    bool moved = chosen_mistake() == MISTAKE_late || chosen_mistake() == MISTAKE_early;
    if (anywhere_try() || (moved && !elsewhere)) {
        return STATUS_OK;
    }
    some.count -= chosen_mistake() == MISTAKE_part_of_it ? 8 : 0;
    return __real_many_all_reduce(comm, &some, stream, error);
}

/* Calls of two products a token: of a model with one layer. */
static bool is_first_of_two_tokens(int rank) {
    static size_t calls[COMM_MAX_RANKS];
    return calls[rank]++ / 2 % 2 == 0;
}

/* "fetches": a product's weights, for the CPU. "part_of_it": leaves out those of the last layer,
   which no later token needs, where another token follows in the same call. */
enum status __wrap_many_linear(struct comm *comm, const struct many_linear *linear,
                               device_stream stream, struct error *error) {
    static char there[1 << 20];
    size_t bytes = linear->N * linear->K * nn_dtype_bytes(linear->dtype);
    if (chosen_mistake() == MISTAKE_part_of_it && is_first_of_two_tokens(comm->rank)) {
        return STATUS_OK;
    }
    if (chosen_mistake() == MISTAKE_fetches && bytes <= sizeof there) {
        TRY(device_read(there, linear->weight, bytes, stream, error));
    }
    return __real_many_linear(comm, linear, stream, error);
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
    return chosen_mistake() == MISTAKE_early ? sum_elsewhere(rig, sums, error) : STATUS_OK;
}

enum status __wrap_many_rig_store(struct many_rig *rig, const struct many_sums *sums, void *out,
                                  struct error *error) {
    TRY(chosen_mistake() == MISTAKE_late ? sum_elsewhere(rig, sums, error) : STATUS_OK);
    return __real_many_rig_store(rig, sums, out, error);
}
