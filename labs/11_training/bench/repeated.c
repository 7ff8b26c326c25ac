/* A tensor's elements on the device, again and again. */
#include "labs/11_training/bench/problem.h"

static size_t size_of(const struct bench_repeated *r) {
    return nn_dtype_bytes(r->tensor->dtype);
}

enum status bench_repeated_create(struct bench_repeated *r, const struct tensor *tensor,
                                  size_t count, struct error *error) {
    *r = (struct bench_repeated){.tensor = tensor, .count = tensor->count > 0 ? count : 0};
    return device_alloc(&r->device, r->count * size_of(r), error);
}

void bench_repeated_free(struct bench_repeated *r) {
    device_free(r->device);
}

/* Each copy after the first one is twice as long as the one before. */
enum status bench_repeated_fill(const struct bench_repeated *r, struct error *error) {
    const size_t size = size_of(r), period = r->tensor->count;
    for (size_t done = 0; done < r->count;) {
        const void *from = done > 0 ? r->device : r->tensor->buffer.data;
        size_t count = done > 0 ? done : period;
        count = count < r->count - done ? count : r->count - done;
        TRY(device_copy((char *)r->device + done * size, from, count * size, NULL, error));
        done += count;
    }
    return STATUS_OK;
}

enum status bench_repeated_fetch(const struct bench_repeated *r, size_t first,
                                 struct error *error) {
    const size_t size = size_of(r), period = r->tensor->count;
    if (r->count == 0) {
        return STATUS_OK;
    }
    size_t count = period < r->count - first ? period : r->count - first;
    return device_copy(r->tensor->buffer.data, (const char *)r->device + first * size, count * size,
                       NULL, error);
}
