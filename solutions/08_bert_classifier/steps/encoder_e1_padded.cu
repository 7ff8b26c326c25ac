/**
 * @file encoder_e1_padded.cu
 * @brief As the starter does: every sequence padded to the longest, a mask, a launch an operator.
 *
 * Rows: B * longest, of which the batch's are `kept`. Padding has id 0 and is computed like every
 * token; the mask excludes it from attention's sums, and lab 07 skips tiles of masked keys.
 *
 * Launches: 5 copies (6 with hidden), 4 for the embeddings, 14 a layer, a gather of
 * the first rows. FLOPs: 24 C^2 a padded row and layer (hidden = 4C), and attention.
 */
#include "solutions/08_bert_classifier/steps/ladder.h"

struct padded_lists {
    struct encoder_ids rows;          /* (padded rows) */
    struct encoder_list firsts, kept; /* (B), (rows): padded rows */
    struct encoder_list mask;         /* bytes, (padded rows) */
};

static size_t mask_numbers(size_t rows) {
    return (rows + sizeof(int32_t) - 1) / sizeof(int32_t);
}

static void pad_sequence(struct padded_lists *lists, const struct encoder_batch *batch, size_t b) {
    size_t start = (size_t)batch->starts[b], length = (size_t)batch->starts[b + 1] - start;
    uint8_t *mask = (uint8_t *)lists->mask.host;
    lists->firsts.host[b] = (int32_t)(b * batch->longest);
    for (size_t t = 0; t < batch->longest; t++) {
        size_t row = b * batch->longest + t;
        bool is_token = t < length;
        lists->rows.ids.host[row] = is_token ? batch->ids[start + t] : 0;
        lists->rows.types.host[row] =
            is_token && batch->types != NULL ? batch->types[start + t] : 0;
        lists->rows.positions.host[row] = is_token ? (int32_t)t : 0;
        mask[row] = is_token;
        if (is_token) {
            lists->kept.host[start + t] = (int32_t)row;
        }
    }
}

static struct padded_lists pad(struct encoder *e, const struct encoder_batch *batch, size_t rows) {
    e->used = 0;
    struct padded_lists lists = {
        {encoder_list_create(e, rows), encoder_list_create(e, rows), encoder_list_create(e, rows)},
        encoder_list_create(e, batch->B),
        encoder_list_create(e, batch->rows),
        encoder_list_create(e, mask_numbers(rows))};
    for (size_t b = 0; b < batch->B; b++) {
        pad_sequence(&lists, batch, b);
    }
    return lists;
}

enum status encoder_e1_padded(struct encoder *e, const struct encoder_batch *batch,
                              struct error *error) {
    size_t rows = batch->B * batch->longest;
    TRY(encoder_reserve(e, rows, error));
    struct padded_lists lists = pad(e, batch, rows);
    const struct encoder_view view = {.rows = rows,
                                      .B = batch->B,
                                      .longest = batch->longest,
                                      .mask = (const uint8_t *)lists.mask.device};
    TRY(encoder_upload(e, &lists.mask, error));
    TRY(encoder_upload(e, &lists.firsts, error));
    TRY(encoder_embed_one_by_one(e, &lists.rows, rows, error));
    for (size_t l = 0; l < e->model->L; l++) {
        TRY(encoder_layer_one_by_one(e, &e->model->layers[l], &view, error));
    }
    if (batch->hidden != NULL) {
        TRY(encoder_upload(e, &lists.kept, error));
        TRY(encoder_gather(e, batch->hidden, e->x, lists.kept.device, batch->rows, false, error));
    }
    return encoder_gather(e, batch->first, e->x, lists.firsts.device, batch->B, false, error);
}
