#include "grader/08_bert_classifier/remote.h"

#include "grader/08_bert_classifier/calls.h"
#include "grader/isolation/remote.h"

enum status remote_encoder_create(struct encoder **encoder, const struct encoder_model *model,
                                  size_t max_tokens, device_stream stream, struct error *error) {
    void *layers, *there;
    struct encoder_model copy = *model;
    *encoder = NULL;
    TRY(remote_copy(&layers, model->layers, model->L * sizeof *model->layers, error));
    copy.layers = layers;
    TRY(remote_copy(&there, &copy, sizeof copy, error));
    struct encoder_create_call c = {there, max_tokens, stream, NULL};
    TRY(remote_call("encoder_create", &c, sizeof c, error));
    *encoder = c.encoder;
    return STATUS_OK;
}

enum status remote_encoder_batch(const struct encoder_batch **there,
                                 const struct encoder_batch *batch, struct error *error) {
    struct encoder_batch_call c = {*batch, NULL};
    void *ids, *types = NULL, *starts;
    *there = NULL;
    TRY(remote_copy(&ids, batch->ids, batch->rows * sizeof *batch->ids, error));
    if (batch->types != NULL) {
        TRY(remote_copy(&types, batch->types, batch->rows * sizeof *batch->types, error));
    }
    TRY(remote_copy(&starts, batch->starts, (batch->B + 1) * sizeof *batch->starts, error));
    c.batch.ids = ids;
    c.batch.types = types;
    c.batch.starts = starts;
    TRY(remote_call("encoder_batch", &c, sizeof c, error));
    *there = c.made;
    return STATUS_OK;
}

enum status remote_encoder_run(struct encoder *encoder, const struct encoder_batch *there,
                               struct error *error) {
    struct encoder_run_call c = {encoder, there};
    return remote_call("encoder_run", &c, sizeof c, error);
}

enum status remote_encoder_time(struct encoder *encoder, const struct encoder_batch *there,
                                double *ms, struct error *error) {
    struct encoder_run_call c = {encoder, there};
    return remote_call_timed("encoder_run", &c, sizeof c, NULL, ms, error);
}

enum status remote_encoder_launches(struct encoder *encoder, const struct encoder_batch *there,
                                    device_stream stream, size_t *launches, struct error *error) {
    struct encoder_run_call c = {encoder, there};
    return remote_count_launches("encoder_run", &c, sizeof c, stream, launches, error);
}

void remote_encoder_free(struct encoder *encoder) {
    struct encoder_run_call c = {.encoder = encoder};
    if (encoder != NULL && remote_alive()) {
        enum status ignored = remote_call("encoder_free", &c, sizeof c, NULL);
        (void)ignored;
    }
}
