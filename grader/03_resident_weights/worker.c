/* Lab 03: what runs in the worker. The baseline is stage 02, for which only models run. */
#include "grader/isolation/worker.h"
#include "grader/03_resident_weights/calls.h"
#include "grader/isolation/models.h"
#include "labs/02_gpu_matmul/given/engine.h"
#include "labs/03_resident_weights/given/engine.h"
#include "labs/03_resident_weights/given/operators.h"
#include "labs/03_resident_weights/resident.h"

#ifdef GRADER_BASELINE
enum status worker_engine_create(struct engine *engine, struct error *error) {
    return engine_gpu_matmul_create(engine, error);
}

static const struct worker_entry entries[] = {WORKER_LLAMA2, {0}};
#else
static enum status create(void *arguments, struct error *error) {
    struct resident_args *a = arguments;
    return resident_create(&a->resident, error);
}

static enum status destroy(void *arguments, struct error *error) {
    const struct resident_args *a = arguments;
    (void)error;
    resident_destroy(a->resident);
    return STATUS_OK;
}

static enum status alloc(void *arguments, struct error *error) {
    struct resident_args *a = arguments;
    return resident_alloc(a->resident, a->bytes, &a->memory, error);
}

static enum status release(void *arguments, struct error *error) {
    const struct resident_args *a = arguments;
    (void)error;
    resident_release(a->resident, a->memory);
    return STATUS_OK;
}

static enum status weights(void *arguments, struct error *error) {
    struct resident_args *a = arguments;
    return resident_weights(a->resident, a->host, a->bytes, &a->handle, error);
}

static enum status release_weights(void *arguments, struct error *error) {
    const struct resident_args *a = arguments;
    (void)error;
    resident_release_weights(a->resident, a->handle);
    return STATUS_OK;
}

static enum status write(void *arguments, struct error *error) {
    const struct resident_args *a = arguments;
    return resident_write(a->resident, a->memory, a->host, a->bytes, error);
}

static enum status read(void *arguments, struct error *error) {
    const struct resident_args *a = arguments;
    return resident_read(a->resident, a->host, a->memory, a->bytes, error);
}

static enum status synchronize(void *arguments, struct error *error) {
    const struct resident_args *a = arguments;
    return resident_synchronize(a->resident, error);
}

/* operands: out, a, b; arguments: a size_t. */
static enum status add_kernel(const void *arguments, void *const *d, device_stream stream,
                              struct error *error) {
    return launch_residual(d[0], d[1], d[2], *(const size_t *)arguments, stream, error);
}

static enum status add(void *arguments, struct error *error) {
    const struct add_args *a = arguments;
    const struct resident_operand operands[] = {
        {a->out, a->count * sizeof(float), RESIDENT_OUT},
        {a->a, a->count * sizeof(float), RESIDENT_IN},
        {a->b, a->count * sizeof(float), RESIDENT_IN},
    };
    return resident_call(a->resident, add_kernel, &a->count, operands, 3, error);
}

static enum status failing_kernel(const void *arguments, void *const *d, device_stream stream,
                                  struct error *error) {
    (void)arguments;
    (void)d;
    (void)stream;
    return error_set(error, STATUS_UNSUPPORTED, "the kernel says no");
}

static enum status failing(void *arguments, struct error *error) {
    const struct resident_args *a = arguments;
    const struct resident_operand operand = {a->memory, a->bytes, RESIDENT_IN_OUT};
    return resident_call(a->resident, failing_kernel, NULL, &operand, 1, error);
}

/* The engine's own read(), and what it read last, as the subject's memory names it. */
static struct {
    enum status (*read)(void *context, void *host, const void *resident, size_t bytes);
    struct resident *resident;
    const void *last;
} seen;

static enum status note_read(void *context, void *host, const void *resident, size_t bytes) {
    seen.last = resident;
    return seen.read(context, host, resident, bytes);
}

enum status worker_engine_create(struct engine *engine, struct error *error) {
    TRY(engine_resident_create(engine, error));
    seen.resident = engine_resident_of(engine);
    seen.read = engine->read;
    engine->read = note_read;
    return STATUS_OK;
}

static enum status copy_kernel(const void *arguments, void *const *d, device_stream stream,
                               struct error *error) {
    const struct show_args *a = arguments;
    return device_copy(a->to, d[0], a->bytes, stream, error);
}

static enum status show(void *arguments, struct error *error) {
    const struct show_args *a = arguments;
    const struct resident_operand operand = {seen.last, a->bytes, RESIDENT_IN};
    TRY(resident_call(seen.resident, copy_kernel, a, &operand, 1, error));
    return resident_synchronize(seen.resident, error);
}

#define ENTRY(function) \
    { #function, sizeof(struct resident_args), function }

static const struct worker_entry entries[] = {ENTRY(create),
                                              ENTRY(destroy),
                                              ENTRY(alloc),
                                              ENTRY(release),
                                              ENTRY(weights),
                                              ENTRY(release_weights),
                                              ENTRY(write),
                                              ENTRY(read),
                                              ENTRY(synchronize),
                                              ENTRY(failing),
                                              {"add", sizeof(struct add_args), add},
                                              {"show", sizeof(struct show_args), show},
                                              WORKER_LLAMA2_LOGITS,
                                              WORKER_LLAMA2,
                                              WORKER_BERT,
                                              {0}};
#endif

const struct worker worker = {entries, &worker_device};
