#include "grader/selftest/sabotage_timed.h"
#include "labs/09_kv_cache/kv_cache.h"

enum status __real_kv_linear(const struct kv_linear *linear, device_stream stream,
                             struct error *error);
enum status __wrap_kv_linear(const struct kv_linear *linear, device_stream stream,
                             struct error *error);

enum status __wrap_kv_linear(const struct kv_linear *linear, device_stream stream,
                             struct error *error) {
    if (sabotage_leaves_out(linear, sizeof *linear, stream)) {
        return STATUS_OK;
    }
    return __real_kv_linear(linear, stream, error);
}
