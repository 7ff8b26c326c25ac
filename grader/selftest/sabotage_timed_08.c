#include "grader/selftest/sabotage_timed.h"
#include "labs/04_sgemm/sgemm.h"
#include "labs/08_bert_classifier/encoder.h"

sgemm_function __real_sgemm, __wrap_sgemm;

enum status __real_encoder_create(struct encoder **encoder, const struct encoder_model *model,
                                  size_t max_tokens, device_stream stream, struct error *error);
enum status __wrap_encoder_create(struct encoder **encoder, const struct encoder_model *model,
                                  size_t max_tokens, device_stream stream, struct error *error);
enum status __real_encoder_run(struct encoder *encoder, const struct encoder_batch *batch,
                               struct error *error);
enum status __wrap_encoder_run(struct encoder *encoder, const struct encoder_batch *batch,
                               struct error *error);

enum { KEPT = 40, MOST_TEXTS = 64 };

static device_stream stream_of_last;

enum status __wrap_encoder_create(struct encoder **encoder, const struct encoder_model *model,
                                  size_t max_tokens, device_stream stream, struct error *error) {
    static struct encoder_model models[8];
    static size_t used;
    struct encoder_model *own = &models[used++ % 8];
    *own = *model;
    stream_of_last = stream;
    own->L -= chosen_mistake() == MISTAKE_one_layer_less ? 1 : 0;
    return __real_encoder_create(encoder, own, max_tokens, stream, error);
}

/* "part_of_it": reads the first words of each text. */
static enum status read_less(struct encoder *encoder, const struct encoder_batch *batch,
                             struct error *error) {
    static int32_t ids[KEPT * MOST_TEXTS], types[KEPT * MOST_TEXTS], starts[MOST_TEXTS + 1];
    struct encoder_batch less = *batch;
    less.rows = 0;
    for (size_t b = 0; b < batch->B; b++) {
        int32_t end = batch->starts[b + 1];
        for (int32_t i = batch->starts[b]; i < end && i < batch->starts[b] + KEPT; i++) {
            ids[less.rows] = batch->ids[i];
            types[less.rows++] = batch->types != NULL ? batch->types[i] : 0;
        }
        starts[b + 1] = (int32_t)less.rows;
    }
    less.ids = ids;
    less.types = types;
    less.starts = starts;
    less.longest = batch->longest < KEPT ? batch->longest : KEPT;
    return __real_encoder_run(encoder, &less, error);
}

enum status __wrap_encoder_run(struct encoder *encoder, const struct encoder_batch *batch,
                               struct error *error) {
    if (sabotage_leaves_out(batch, sizeof *batch, stream_of_last)) {
        return STATUS_OK;
    }
    return chosen_mistake() == MISTAKE_part_of_it && batch->hidden == NULL && batch->B <= MOST_TEXTS
               ? read_less(encoder, batch, error)
               : __real_encoder_run(encoder, batch, error);
}

/* "rounds", "leaves_columns": lesser weights. */
enum status __wrap_sgemm(const struct sgemm_problem *problem, void *workspace, device_stream stream,
                         struct error *error) {
    struct sgemm_problem p = *problem;
    p.B = sabotage_lesser(0, p.B, p.N * p.K, p.K, stream);
    return __real_sgemm(&p, workspace, stream, error);
}
