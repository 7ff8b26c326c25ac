#include "grader/selftest/sabotage_timed.h"
#include "labs/14_endless_text/endless_text.h"

enum status __real_endless_attention(const struct endless_attention *attention, void *workspace,
                                     device_stream stream, struct error *error);
enum status __wrap_endless_attention(const struct endless_attention *attention, void *workspace,
                                     device_stream stream, struct error *error);
enum status __real_endless_add_norms(const struct endless_add_norms *add, device_stream stream,
                                     struct error *error);
enum status __wrap_endless_add_norms(const struct endless_add_norms *add, device_stream stream,
                                     struct error *error);

/* "part_of_it": half of the window. "leaves_columns": values of eight tokens, in the middle of the
   cache, count as zeros, so that their products need not be computed. */
enum status __wrap_endless_attention(const struct endless_attention *attention, void *workspace,
                                     device_stream stream, struct error *error) {
    struct endless_attention some = *attention;
    const size_t row = attention->KVH * attention->HS;
    if (sabotage_leaves_out(attention, sizeof *attention, stream)) {
        return STATUS_OK;
    }
    if (chosen_mistake() == MISTAKE_part_of_it) {
        some.window = attention->window / 2;
    } else if (chosen_mistake() == MISTAKE_zero_inputs) {
        TRY(device_set((void *)attention->v_new, 0, row * sizeof(float), stream, error));
    } else if (chosen_mistake() == MISTAKE_leaves_columns && attention->window > 64) {
        const size_t bytes = row * nn_dtype_bytes(attention->dtype);
        TRY(device_set((char *)attention->v + 32 * bytes, 0, 8 * bytes, stream, error));
    }
    if (chosen_mistake() != MISTAKE_leaves_columns) {
        some.q = sabotage_lesser(0, some.q, attention->NH * attention->HS, attention->HS, stream);
    }
    return __real_endless_attention(&some, workspace, stream, error);
}

/* "part_of_it": the first norm alone. "rounds" and the like: of the residual stream. */
enum status __wrap_endless_add_norms(const struct endless_add_norms *add, device_stream stream,
                                     struct error *error) {
    struct endless_add_norms some = *add;
    if (sabotage_leaves_out(add, sizeof *add, stream)) {
        return STATUS_OK;
    }
    some.count = chosen_mistake() == MISTAKE_part_of_it ? 1 : add->count;
    if (chosen_mistake() == MISTAKE_zero_inputs && add->a != NULL) {
        TRY(device_set((void *)add->a, 0, add->C * sizeof(float), stream, error));
    }
    some.a = add->a != NULL ? sabotage_lesser(0, add->a, add->C, add->C, stream) : NULL;
    return __real_endless_add_norms(&some, stream, error);
}
