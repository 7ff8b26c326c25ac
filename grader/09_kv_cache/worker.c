/* Lab 09: functions that run in the worker. */
#include "grader/isolation/worker.h"
#include "common/models/llama2_device.h"
#include "grader/09_kv_cache/calls.h"
#include "grader/isolation/decoding.h"
#include "grader/isolation/models.h"
#include "labs/09_kv_cache/given/engine.h"
#include "labs/09_kv_cache/problem/graph.h"

static enum status run_linear(void *arguments, struct error *error) {
    const struct kv_linear_call *c = arguments;
    kv_linear_name_tensors(&c->linear);
    return kv_linear(&c->linear, c->stream, error);
}

static enum status run_attention(void *arguments, struct error *error) {
    const struct kv_attention_call *c = arguments;
    kv_attention_name_tensors(&c->attention);
    return kv_attention(&c->attention, c->workspace, c->stream, error);
}

static enum status record(void *arguments, struct error *error) {
    struct kv_attention_call *c = arguments;
    return kv_graph_record(&c->graph, kv_attention, &c->attention, c->workspace, c->stream, error);
}

static enum status launch(void *arguments, struct error *error) {
    const struct kv_launch_call *c = arguments;
    return kv_graph_launch(c->graph, c->stream, error);
}

enum status worker_engine_create(struct engine *engine, struct error *error) {
    return engine_kv_cache_create(engine, error);
}

static const void *given; /* what "kv_given" said last */

static enum status take_given(void *arguments, struct error *error) {
    const struct kv_given_call *c = arguments;
    (void)error;
    given = c->weights;
    return STATUS_OK;
}

enum status __real_llama2_device_load(struct llama2_device *device,
                                      const struct llama2_decoder_model *model,
                                      device_stream stream, struct error *error);
enum status __wrap_llama2_device_load(struct llama2_device *device,
                                      const struct llama2_decoder_model *model,
                                      device_stream stream, struct error *error);

/* Of the engine (--wrap): the grader's weights replace the worker's before the lab's code sees one.
 */
enum status __wrap_llama2_device_load(struct llama2_device *device,
                                      const struct llama2_decoder_model *model,
                                      device_stream stream, struct error *error) {
    TRY(__real_llama2_device_load(device, model, stream, error));
    if (given == NULL) {
        return STATUS_OK;
    }
    TRY(device_copy((void *)device->embedding, given, device->bytes, stream, error));
    return device_synchronize(stream, error);
}

static const struct worker_entry entries[] = {
    {"kv_linear", sizeof(struct kv_linear_call), run_linear},
    {"kv_attention", sizeof(struct kv_attention_call), run_attention},
    {"kv_record", sizeof(struct kv_attention_call), record},
    {"kv_launch", sizeof(struct kv_launch_call), launch},
    {"kv_given", sizeof(struct kv_given_call), take_given},
    WORKER_LLAMA2_LOGITS,
    WORKER_DECODING,
    {0}};

const struct worker worker = {entries, &worker_device};
