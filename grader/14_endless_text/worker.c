/* Lab 14: functions that run in the worker. */
#include "grader/isolation/worker.h"
#include "common/device/device.h"
#include "common/simt/simt.h"
#include "grader/14_endless_text/calls.h"
#include "labs/14_endless_text/given/decoder.h"
#include "labs/14_endless_text/given/graph.h"

static const struct endless_functions functions = {endless_attention, endless_add_norms, NULL};

static void name_attention(const struct endless_attention_call *c) {
    const struct endless_attention *a = &c->attention;
    simt_name_tensor(a->position, "position");
    simt_name_tensor(a->angles, "angles");
    simt_name_tensor(a->q, "q");
    simt_name_tensor(a->k_new, "k_new");
    simt_name_tensor(a->v_new, "v_new");
    simt_name_tensor(a->k, "k");
    simt_name_tensor(a->v, "v");
    simt_name_tensor(a->out, "out");
    simt_name_tensor(c->workspace, "workspace");
}

static enum status run_attention(void *arguments, struct error *error) {
    const struct endless_attention_call *c = arguments;
    name_attention(c);
    return endless_attention(&c->attention, c->workspace, c->stream, error);
}

static enum status start_attention(const void *work, device_stream stream, struct error *error) {
    const struct endless_attention_call *c = work;
    return endless_attention(&c->attention, c->workspace, stream, error);
}

static enum status record(void *arguments, struct error *error) {
    struct endless_attention_call *c = arguments;
    name_attention(c);
    return endless_graph_record(&c->graph, start_attention, c, c->stream, error);
}

static enum status launch(void *arguments, struct error *error) {
    const struct endless_launch_call *c = arguments;
    TRY(endless_graph_launch(c->graph, c->stream, error));
    return device_synchronize(c->stream, error);
}

static enum status run_add_norms(void *arguments, struct error *error) {
    const struct endless_add_norms_call *c = arguments;
    simt_name_tensor(c->add.x, "x");
    simt_name_tensor(c->add.a, "a");
    simt_name_tensor(c->add.b, "b");
    for (size_t i = 0; i < c->add.count && i < 2; i++) {
        simt_name_tensor(c->add.norms[i].weight, i == 0 ? "norms[0].weight" : "norms[1].weight");
        simt_name_tensor(c->add.norms[i].bias, i == 0 ? "norms[0].bias" : "norms[1].bias");
        simt_name_tensor(c->add.norms[i].out, i == 0 ? "norms[0].out" : "norms[1].out");
    }
    for (size_t i = 0; i < c->repeats; i++) {
        TRY(endless_add_norms(&c->add, c->stream, error));
    }
    return STATUS_OK;
}

static enum status open_decoder(void *arguments, struct error *error) {
    struct endless_open_call *c = arguments;
    c->model.layers = c->layers;
    struct endless_decoder *decoder = NULL;
    TRY(endless_decoder_create(&decoder, &c->model, &functions, error));
    c->decoder = decoder;
    return STATUS_OK;
}

static enum status feed(void *arguments, struct error *error) {
    const struct endless_feed_call *c = arguments;
    endless_decoder_launch_singly(c->decoder, c->singly);
    for (size_t i = 0; i < c->count; i++) {
        TRY(endless_decoder_feed(c->decoder, c->tokens[i], c->position + i, c->logits + i * c->V,
                                 error));
        TRY(device_synchronize(endless_decoder_stream(c->decoder), error));
    }
    return STATUS_OK;
}

static const struct worker_entry entries[] = {
    {"endless_attention", sizeof(struct endless_attention_call), run_attention},
    {"endless_record", sizeof(struct endless_attention_call), record},
    {"endless_launch", sizeof(struct endless_launch_call), launch},
    {"endless_add_norms", sizeof(struct endless_add_norms_call), run_add_norms},
    {"endless_open", sizeof(struct endless_open_call), open_decoder},
    {"endless_feed", sizeof(struct endless_feed_call), feed},
    {0}};

const struct worker worker = {entries, &worker_device};
