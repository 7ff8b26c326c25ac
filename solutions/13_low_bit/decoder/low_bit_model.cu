#include "solutions/13_low_bit/decoder/low_bit_model.h"

#include "labs/13_low_bit/low_bit.h"

static struct low_bit_layout layout_of(const struct low_bit_decoder_model *m,
                                       enum low_bit_product which) {
    const struct decoder_model *s = &m->sizes;
    const size_t heads = s->NH * s->HS;
    const size_t rows[] = {heads + 2 * s->KVH * s->HS, s->C, 2 * s->hidden, s->C, s->V};
    const size_t columns[] = {s->C, heads, s->C, s->hidden, s->C};
    struct low_bit_layout l = {m->type, rows[which], columns[which], 0, NN_F32, false};
    l.group = m->type == LOW_BIT_INT4 ? m->group : l.columns;
    l.scale_dtype = m->type == LOW_BIT_INT4 ? m->scale_dtype : NN_F32;
    return l;
}

struct low_bit_stream low_bit_model_stream(const struct low_bit_decoder_model *m,
                                           enum low_bit_product which) {
    const struct low_bit_layout l = layout_of(m, which);
    return low_bit_stream_of(&l, which == LOW_BIT_GATE_UP);
}

enum status low_bit_model_check(const struct low_bit_decoder_model *m, struct error *error) {
    const struct decoder_model *s = &m->sizes;
    const enum status bad = STATUS_UNSUPPORTED;
    if (s->HS != 64 && s->HS != 128 && s->HS != 256) {
        return error_set(error, bad, "low-bit decoder: heads of %zu; 64, 128 and 256 are supported",
                         s->HS);
    }
    if (s->KVH == 0 || s->NH == 0 || s->NH % s->KVH != 0 ||
        (s->NH != s->KVH && s->NH / s->KVH % 2 != 0)) {
        return error_set(
            error, bad,
            "low-bit decoder: %zu query heads and %zu key heads; one or an even number "
            "of queries a key head is supported",
            s->NH, s->KVH);
    }
    if (s->C % 8 != 0 || s->hidden % 8 != 0 || s->C == 0 || s->hidden == 0 || s->V == 0) {
        return error_set(error, bad,
                         "low-bit decoder: C = %zu, hidden = %zu, V = %zu; C and hidden must be "
                         "multiples of 8, and none is 0",
                         s->C, s->hidden, s->V);
    }
    if (s->dtype != NN_BF16) {
        return error_set(error, bad, "low-bit decoder: an embedding in %s; it must be bf16",
                         nn_dtype_name(s->dtype));
    }
    for (int i = 0; i < LOW_BIT_PRODUCTS; i++) {
        const struct low_bit_layout l = layout_of(m, (enum low_bit_product)i);
        TRY(low_bit_check_layout(&l, error));
    }
    return STATUS_OK;
}
