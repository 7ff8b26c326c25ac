#include "grader/selftest/sabotage_timed.h"
#include "labs/09_kv_cache/kv_cache.h"

enum status __real_kv_linear(const struct kv_linear *linear, device_stream stream,
                             struct error *error);
enum status __wrap_kv_linear(const struct kv_linear *linear, device_stream stream,
                             struct error *error);
enum status __real_kv_attention(const struct kv_attention *attention, void *workspace,
                                device_stream stream, struct error *error);
enum status __wrap_kv_attention(const struct kv_attention *attention, void *workspace,
                                device_stream stream, struct error *error);

/* "part_of_it": a text's token that is not its last leaves keys and values in the cache of a model
   of one layer, and nothing else. */
static bool last_token = true;

enum status __wrap_kv_attention(const struct kv_attention *attention, void *workspace,
                                device_stream stream, struct error *error) {
    last_token = attention->longest == attention->T;
    if (chosen_mistake() == MISTAKE_every_second &&
        sabotage_leaves_out(attention, sizeof *attention, stream)) {
        return STATUS_OK;
    }
    return __real_kv_attention(attention, workspace, stream, error);
}

/* A product of those that are left out computes half of the operations, so that enough are counted.
 */
enum status __wrap_kv_linear(const struct kv_linear *linear, device_stream stream,
                             struct error *error) {
    if (chosen_mistake() == MISTAKE_part_of_it && !last_token) {
        struct kv_linear some = *linear;
        some.N = linear->N > 512 ? linear->N : 0;
        return __real_kv_linear(&some, stream, error);
    }
    if (chosen_mistake() == MISTAKE_zero_inputs) {
        TRY(device_set((void *)linear->in, 0, linear->K * sizeof(float), stream, error));
    }
    if (sabotage_leaves_out(linear, sizeof *linear, stream)) {
        return STATUS_OK;
    }
    struct kv_linear lesser = *linear;
    lesser.in = sabotage_lesser(0, linear->in, linear->K, linear->K, stream);
    return __real_kv_linear(&lesser, stream, error);
}
