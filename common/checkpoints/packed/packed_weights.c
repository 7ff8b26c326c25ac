#include "common/checkpoints/packed/packed_weights.h"

#include <stdio.h>
#include <string.h>

#include "common/base/checked.h"

enum { NAME_BYTES = 192, WORD_BITS = 32 };

/* A part of a matrix: its name and shape. */
struct part {
    char name[NAME_BYTES];
    bool is_integer;
    size_t rank, shape[2];
};

/* compressed-tensors appends to NAME.weight, GPTQ to NAME. */
static void name_part(struct part *part, const char *name, bool gptq, const char *suffix) {
    size_t length = strlen(name), end = strlen("weight");
    snprintf(part->name, sizeof part->name, "%.*s%s", (int)(gptq ? length - end : length), name,
             suffix);
}

/* Checks a part, which need not be there unless it is needed. */
static enum status find(const struct decoder_shards *shards, const struct part *want, bool needed,
                        const struct safetensors_tensor **out, struct error *error) {
    const struct decoder_located *located = decoder_shards_find(shards, want->name);
    *out = NULL;
    if (located == NULL) {
        return needed ? error_set(error, STATUS_BAD_FORMAT, "%s: tensor \"%s\" is missing",
                                  shards->path, want->name)
                      : STATUS_OK;
    }
    const struct safetensors_tensor *t = located->tensor;
    bool right = want->is_integer ? t->dtype == SAFETENSORS_I32 : safetensors_is_weight(t->dtype);
    if (!right) {
        return error_set(error, STATUS_UNSUPPORTED, "%s: tensor \"%s\" has another type than %s",
                         located->shard->path, want->name,
                         want->is_integer ? "I32" : "F32, F16 or BF16");
    }
    if (t->rank != want->rank || memcmp(t->shape, want->shape, want->rank * sizeof(size_t)) != 0) {
        char got[SAFETENSORS_SHAPE_BYTES], wanted[SAFETENSORS_SHAPE_BYTES];
        return error_set(error, STATUS_MISMATCH, "%s: tensor \"%s\" is %s, must be %s",
                         located->shard->path, want->name,
                         safetensors_shape_text(t->shape, t->rank, got),
                         safetensors_shape_text(want->shape, want->rank, wanted));
    }
    *out = t;
    return STATUS_OK;
}

static int32_t integer(const struct safetensors_tensor *t, size_t index) {
    int32_t value;
    memcpy(&value, (const char *)t->data + index * sizeof value, sizeof value);
    return value;
}

static enum status check_order(const struct packed_matrix *m, struct error *error) {
    for (size_t c = 0; m->order != NULL && c < m->columns; c++) {
        int32_t group = integer(m->order, c);
        if (group < 0 || (size_t)group >= m->groups) {
            return error_set(error, STATUS_BAD_FORMAT,
                             "tensor \"%s\": column %zu is in group %d of %zu", m->order->name, c,
                             group, m->groups);
        }
    }
    return STATUS_OK;
}

static enum status find_compressed(struct packed_matrix *m, const struct decoder_shards *shards,
                                   const char *name, struct error *error) {
    size_t a_word = WORD_BITS / m->config.bits;
    struct part words = {
        .is_integer = true, .rank = 2, .shape = {m->rows, ceil_div(m->columns, a_word)}};
    struct part scales = {.rank = 2, .shape = {m->rows, m->groups}};
    struct part zeros = {
        .is_integer = true, .rank = 2, .shape = {ceil_div(m->rows, a_word), m->groups}};
    struct part order = {.is_integer = true, .rank = 1, .shape = {m->columns}};
    name_part(&words, name, false, "_packed");
    name_part(&scales, name, false, "_scale");
    name_part(&zeros, name, false, "_zero_point");
    name_part(&order, name, false, "_g_idx");
    TRY(find(shards, &words, false, &m->words, error));
    if (m->words == NULL) {
        return STATUS_OK;
    }
    TRY(find(shards, &scales, true, &m->scales, error));
    TRY(m->config.symmetric ? STATUS_OK : find(shards, &zeros, true, &m->zeros, error));
    return find(shards, &order, false, &m->order, error);
}

static enum status find_gptq(struct packed_matrix *m, const struct decoder_shards *shards,
                             const char *name, struct error *error) {
    size_t a_word = WORD_BITS / m->config.bits;
    struct part words = {.is_integer = true, .rank = 2, .shape = {m->columns / a_word, m->rows}};
    struct part scales = {.rank = 2, .shape = {m->groups, m->rows}};
    struct part zeros = {.is_integer = true, .rank = 2, .shape = {m->groups, m->rows / a_word}};
    struct part order = {.is_integer = true, .rank = 1, .shape = {m->columns}};
    name_part(&words, name, true, "qweight");
    name_part(&scales, name, true, "scales");
    name_part(&zeros, name, true, "qzeros");
    name_part(&order, name, true, "g_idx");
    if (decoder_shards_find(shards, words.name) == NULL) {
        return STATUS_OK;
    }
    if (m->rows % a_word != 0 || m->columns % a_word != 0) {
        return error_set(error, STATUS_MISMATCH,
                         "%s: tensor \"%s\" of %zu x %zu weights: both must be multiples of %zu",
                         shards->path, words.name, m->rows, m->columns, a_word);
    }
    TRY(find(shards, &words, true, &m->words, error));
    TRY(find(shards, &scales, true, &m->scales, error));
    TRY(find(shards, &zeros, true, &m->zeros, error));
    return find(shards, &order, false, &m->order, error);
}

enum status packed_find(struct packed_matrix *matrix, const struct decoder_shards *shards,
                        const struct packed_config *config, const char *name, size_t rows,
                        size_t columns, struct error *error) {
    *matrix = (struct packed_matrix){.config = *config, .rows = rows, .columns = columns};
    if (config->format == PACKED_NONE) {
        return STATUS_OK;
    }
    if (config->group == 0 || config->group > columns) {
        matrix->config.group = columns;
    }
    matrix->groups = ceil_div(columns, matrix->config.group);
    TRY(config->format == PACKED_GPTQ ? find_gptq(matrix, shards, name, error)
                                      : find_compressed(matrix, shards, name, error));
    return check_order(matrix, error);
}

/* Field `index` of the packed words that begin at word `first`, `step` words from each other. */
static int field(const struct safetensors_tensor *t, size_t first, size_t step, size_t index,
                 size_t bits) {
    size_t a_word = WORD_BITS / bits;
    uint32_t word = (uint32_t)integer(t, first + index / a_word * step);
    return (int)(word >> (index % a_word * bits) & ((1u << bits) - 1));
}

static int zero_of(const struct packed_matrix *m, size_t row, size_t group) {
    size_t bits = m->config.bits;
    if (m->zeros == NULL) {
        return 1 << (bits - 1);
    }
    return m->config.format == PACKED_GPTQ
               ? field(m->zeros, group * m->zeros->shape[1], 1, row, bits) + m->config.zero_add
               : field(m->zeros, group, m->groups, row, bits);
}

static float scale_of(const struct packed_matrix *m, size_t row, size_t group) {
    struct safetensors_tensor one = *m->scales;
    size_t index =
        m->config.format == PACKED_GPTQ ? group * m->rows + row : row * m->groups + group;
    float scale = 0.0f;
    one.data = (const char *)one.data + index * (one.bytes / one.count);
    one.count = 1;
    (void)!safetensors_read_f32(&one, &scale); /* its type was checked */
    return scale;
}

void packed_dequantize(const struct packed_matrix *m, float *out) {
    bool gptq = m->config.format == PACKED_GPTQ;
    for (size_t row = 0; row < m->rows; row++) {
        size_t first = gptq ? row : row * m->words->shape[1], step = gptq ? m->rows : 1;
        size_t group = m->groups; /* none yet */
        float scale = 0.0f;
        int zero = 0;
        for (size_t c = 0; c < m->columns; c++) {
            size_t mine = m->order != NULL ? (size_t)integer(m->order, c) : c / m->config.group;
            if (mine != group) {
                group = mine;
                scale = scale_of(m, row, group);
                zero = zero_of(m, row, group);
            }
            *out++ = scale * (float)(field(m->words, first, step, c, m->config.bits) - zero);
        }
    }
}

size_t packed_row_words(size_t columns, size_t bits) {
    return ceil_div(columns, WORD_BITS / bits);
}

void packed_words(const struct low_bit_matrix *matrix, uint32_t *words) {
    const struct low_bit_layout *layout = &matrix->layout;
    bool int4 = layout->type == LOW_BIT_INT4;
    size_t bits = int4 ? 4 : 8, a_word = WORD_BITS / bits;
    size_t a_row = packed_row_words(layout->columns, bits);
    memset(words, 0, layout->rows * a_row * sizeof *words);
    for (size_t row = 0; row < layout->rows; row++) {
        for (size_t c = 0; c < layout->columns; c++) {
            /* int8 is stored with 128 added, which changes its highest bit */
            uint32_t stored = low_bit_get(matrix, row, c) ^ (int4 ? 0u : 0x80u);
            words[row * a_row + c / a_word] |= stored << (c % a_word * bits);
        }
    }
}

void packed_zeros(const struct low_bit_matrix *matrix, uint32_t *words) {
    enum { A_WORD = 8 };
    size_t groups = low_bit_groups(&matrix->layout), rows = matrix->layout.rows;
    memset(words, 0, ceil_div(rows, A_WORD) * groups * sizeof *words);
    for (size_t row = 0; row < rows; row++) {
        for (size_t g = 0; g < groups; g++) {
            uint32_t zero = matrix->zeros[row * groups + g];
            words[row / A_WORD * groups + g] |= zero << (row % A_WORD * 4);
        }
    }
}
