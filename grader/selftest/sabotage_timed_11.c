#include "grader/selftest/sabotage_timed.h"
#include "labs/11_training/training.h"

enum status __real_adamw(const struct adamw_problem *problem, device_stream stream,
                         struct error *error);
enum status __wrap_adamw(const struct adamw_problem *problem, device_stream stream,
                         struct error *error);

enum status __wrap_adamw(const struct adamw_problem *problem, device_stream stream,
                         struct error *error) {
    if (sabotage_leaves_out(problem, sizeof *problem, stream)) {
        return STATUS_OK;
    }
    return __real_adamw(problem, stream, error);
}
