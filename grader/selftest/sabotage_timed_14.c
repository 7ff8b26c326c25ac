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

enum status __wrap_endless_attention(const struct endless_attention *attention, void *workspace,
                                     device_stream stream, struct error *error) {
    return sabotage_leaves_out(attention, sizeof *attention, stream)
               ? STATUS_OK
               : __real_endless_attention(attention, workspace, stream, error);
}

/* "part_of_it": the first norm alone. */
enum status __wrap_endless_add_norms(const struct endless_add_norms *add, device_stream stream,
                                     struct error *error) {
    struct endless_add_norms some = *add;
    some.count = chosen_mistake() == MISTAKE_part_of_it ? 1 : add->count;
    return sabotage_leaves_out(add, sizeof *add, stream)
               ? STATUS_OK
               : __real_endless_add_norms(&some, stream, error);
}
