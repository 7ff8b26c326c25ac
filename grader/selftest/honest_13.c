#include "grader/selftest/honest_ways.h"
#include "labs/13_low_bit/low_bit.h"

enum status __real_low_bit_prepare(const struct low_bit_matrix *matrix, void *prepared,
                                   device_stream stream, struct error *error);
enum status __wrap_low_bit_prepare(const struct low_bit_matrix *matrix, void *prepared,
                                   device_stream stream, struct error *error);
enum status __real_low_bit_linear(const struct low_bit_linear *linear, void *workspace,
                                  device_stream stream, struct error *error);
enum status __wrap_low_bit_linear(const struct low_bit_linear *linear, void *workspace,
                                  device_stream stream, struct error *error);

struct low_bit_prepare_arguments {
    const struct low_bit_matrix *matrix;
    void *prepared;
};

static enum status do_low_bit_prepare(const void *arguments, device_stream stream,
                                      struct error *error) {
    const struct low_bit_prepare_arguments *a = arguments;
    return __real_low_bit_prepare(a->matrix, a->prepared, stream, error);
}

enum status __wrap_low_bit_prepare(const struct low_bit_matrix *matrix, void *prepared,
                                   device_stream stream, struct error *error) {
    const struct low_bit_prepare_arguments a = {matrix, prepared};
    return honest_around(do_low_bit_prepare, &a, stream, true, error);
}

struct low_bit_linear_arguments {
    const struct low_bit_linear *linear;
    void *workspace;
};

static enum status do_low_bit_linear(const void *arguments, device_stream stream,
                                     struct error *error) {
    const struct low_bit_linear_arguments *a = arguments;
    return __real_low_bit_linear(a->linear, a->workspace, stream, error);
}

enum status __wrap_low_bit_linear(const struct low_bit_linear *linear, void *workspace,
                                  device_stream stream, struct error *error) {
    const struct low_bit_linear_arguments a = {linear, workspace};
    return honest_around(do_low_bit_linear, &a, stream, true, error);
}
