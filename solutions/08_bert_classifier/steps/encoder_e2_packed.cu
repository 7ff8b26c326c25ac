/**
 * @file encoder_e2_packed.cu
 * @brief No padding: the sequences lie one after the other.
 *
 * Changes since e1: rows are the batch's own; attention gets the start of each sequence, and has no
 * mask. Positions count from each sequence's start.
 *
 * Why: only attention reads more than one row. All other operators take time per row, and in a
 * batch of 32 news articles padded to the longest more than half of the rows are padding.
 *
 * Launches: as e1, without the mask's copy. FLOPs: as e1, of `rows` rows.
 */
#include <string.h>

#include "solutions/08_bert_classifier/steps/ladder.h"

enum status encoder_run_packed(struct encoder *e, const struct encoder_batch *batch,
                               encoder_layer_function *run_layer, struct error *error) {
    TRY(encoder_reserve(e, batch->rows, error));
    e->used = 0;
    struct encoder_list starts = encoder_list_create(e, batch->B + 1);
    memcpy(starts.host, batch->starts, starts.count * sizeof *starts.host);
    const struct encoder_ids lists = encoder_list_rows(e, batch);
    const struct encoder_view view = {.rows = batch->rows,
                                      .B = batch->B,
                                      .longest = batch->longest,
                                      .starts = starts.device,
                                      .host_starts = batch->starts};
    TRY(encoder_upload(e, &starts, error));
    TRY(encoder_embed_one_by_one(e, &lists, batch->rows, error));
    for (size_t l = 0; l < e->model->L; l++) {
        TRY(run_layer(e, &e->model->layers[l], &view, error));
    }
    return encoder_store_results(e, batch, starts.device, error);
}

enum status encoder_e2_packed(struct encoder *e, const struct encoder_batch *batch,
                              struct error *error) {
    return encoder_run_packed(e, batch, encoder_layer_one_by_one, error);
}
