/* A worker with a real device, which its own process has: simt here, as a GPU would be. */
#include "common/device/device.h"
#include "grader/isolation/test_calls.h"
#include "grader/isolation/worker.h"

static enum status copy(void *arguments, struct error *error) {
    const struct copy_call *c = arguments;
    return device_copy(c->to, c->from, c->bytes, (device_stream)c->stream, error);
}

static const struct worker_entry entries[] = {{"copy", sizeof(struct copy_call), copy}, {0}};

const struct worker worker = {entries, &worker_device};
