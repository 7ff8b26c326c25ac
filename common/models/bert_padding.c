#include "common/models/bert_padding.h"

#include <string.h>

/* Tokens of sequence b, if its padding is behind them; else 0. */
static size_t text_length(const struct bert_input *input, size_t b) {
    const uint8_t *mask = input->mask + b * input->T;
    size_t length = 0;
    while (length < input->T && mask[length] != 0) {
        length++;
    }
    for (size_t t = length; t < input->T; t++) {
        if (mask[t] != 0) {
            return 0;
        }
    }
    return length;
}

bool bert_padding_is_behind(const struct bert_input *input) {
    for (size_t b = 0; input->mask != NULL && b < input->B; b++) {
        if (text_length(input, b) == 0) {
            return false;
        }
    }
    return input->mask != NULL;
}

struct bert_input bert_pack(const struct bert_packed *packed, const struct bert_input *input) {
    size_t row = 0;
    for (size_t b = 0; b < input->B; b++) {
        size_t length = text_length(input, b), first = b * input->T;
        packed->starts[b] = (int32_t)row;
        memcpy(packed->ids + row, input->ids + first, length * sizeof *packed->ids);
        if (input->types != NULL) {
            memcpy(packed->types + row, input->types + first, length * sizeof *packed->types);
        }
        row += length;
    }
    packed->starts[input->B] = (int32_t)row;
    return (struct bert_input){.ids = packed->ids,
                               .types = input->types != NULL ? packed->types : NULL,
                               .B = input->B,
                               .starts = packed->starts};
}

void bert_unpack(float *hidden, const int32_t *starts, size_t B, size_t T, size_t C) {
    for (size_t b = B; b-- > 0;) { /* from behind: no row moves to where another one still lies */
        size_t length = (size_t)(starts[b + 1] - starts[b]);
        float *to = hidden + b * T * C;
        memmove(to, hidden + (size_t)starts[b] * C, length * C * sizeof *to);
        memset(to + length * C, 0, (T - length) * C * sizeof *to);
    }
}
