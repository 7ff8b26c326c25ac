#include "common/simt/core/decode/decode_internal.h"

#include <stdlib.h>
#include <string.h>

enum { MOST_ZEROS = 12 };

static uint32_t least(uint32_t a, uint32_t b) {
    return a < b ? a : b;
}

static bool is_integer(const struct ptx_instruction *in) {
    for (size_t n = 0;; n++) {
        enum ptx_type type = ptx_modifier_type(in, n);
        if (type == PTX_NO_TYPE) {
            return n > 0;
        }
        if (type < PTX_B8 || type > PTX_S64) {
            return false;
        }
    }
}

enum rule { UNKNOWN, SAME, LEAST, PRODUCT, PRODUCT_SUM, SHIFT_LEFT, SHIFT_RIGHT, MASK };

static enum rule rule_of(const struct ptx_instruction *in) {
    static const struct {
        const char *base;
        enum rule rule;
    } rules[] = {{"mov", SAME},        {"cvt", SAME},       {"cvta", SAME},       {"neg", SAME},
                 {"add", LEAST},       {"sub", LEAST},      {"or", LEAST},        {"xor", LEAST},
                 {"min", LEAST},       {"max", LEAST},      {"selp", LEAST},      {"mul", PRODUCT},
                 {"mad", PRODUCT_SUM}, {"shl", SHIFT_LEFT}, {"shr", SHIFT_RIGHT}, {"and", MASK}};
    if (!is_integer(in) || ptx_has_modifier(in, "hi") || ptx_has_modifier(in, "sat")) {
        return UNKNOWN;
    }
    for (size_t n = 0; n < sizeof rules / sizeof *rules; n++) {
        if (ptx_is_same(in->base, rules[n].base)) {
            return rules[n].rule;
        }
    }
    return UNKNOWN;
}

/* Low zero bits of the result of an instruction with one destination. */
static uint32_t result_of(const struct simt_alignment *a, const struct simt_instruction *i) {
    enum rule rule = i->source != NULL ? rule_of(i->source) : UNKNOWN;
    uint32_t operands = rule == SAME ? 1 : rule == PRODUCT_SUM ? 3 : 2;
    uint32_t zeros[3] = {0};
    uint64_t amount = 0;
    if (rule == UNKNOWN || i->src_count < operands || i->long_src != NULL || i->dst_count != 1) {
        return 0;
    }
    for (uint32_t n = 0; n < operands; n++) {
        zeros[n] = simt_alignment_zeros(a, i->src[n]);
    }
    bool known = rule != SAME && simt_alignment_constant(a, i->src[1], &amount) && amount < 64;
    switch (rule) {
    case SAME:
        return i->src_count == 1 ? zeros[0] : 0;
    case LEAST:
        return least(zeros[0], zeros[1]);
    case PRODUCT:
        return zeros[0] + zeros[1];
    case PRODUCT_SUM:
        return least(zeros[0] + zeros[1], zeros[2]);
    case SHIFT_LEFT:
        return zeros[0] + (known ? (uint32_t)amount : 0);
    case SHIFT_RIGHT:
        return known && zeros[0] > amount ? zeros[0] - (uint32_t)amount : 0;
    case MASK:
        return zeros[0] > zeros[1] ? zeros[0] : zeros[1];
    case UNKNOWN:
        break;
    }
    return 0;
}

/* Lowers the alignment of an instruction's results to what it guarantees. @return true when
 * something changed */
static bool lower(const struct simt_alignment *a, const struct simt_instruction *i) {
    uint32_t zeros = result_of(a, i);
    bool changed = false;
    for (uint32_t n = 0; n < i->dst_count; n++) {
        uint8_t *known = &a->zeros[i->dst[n] / SIMT_ROW32];
        if (zeros < *known) {
            *known = (uint8_t)zeros;
            changed = true;
        }
    }
    return changed;
}

/* Constants are known; special registers are not aligned; registers are, until a use says not. */
static void start(const struct simt_alignment *a, const struct simt_code *code) {
    memset(a->zeros, MOST_ZEROS, code->register_bytes / SIMT_ROW32);
    for (size_t n = 0; n < code->fill_count; n++) {
        const struct simt_fill *fill = &code->fills[n];
        if (fill->special == SIMT_CONSTANT_VALUE) {
            uint32_t row = fill->offset / SIMT_ROW32;
            uint32_t zeros = fill->value != 0 ? (uint32_t)__builtin_ctzll(fill->value) : MOST_ZEROS;
            a->value[row] = &fill->value;
            a->zeros[row] = (uint8_t)least(zeros, MOST_ZEROS);
        }
    }
}

enum status simt_alignment_find(struct simt_alignment *alignment, const struct simt_code *code) {
    size_t rows = code->row_bytes / SIMT_ROW32 + 1;
    alignment->zeros = calloc(rows, sizeof *alignment->zeros);
    alignment->value = calloc(rows, sizeof *alignment->value);
    if (alignment->zeros == NULL || alignment->value == NULL) {
        return STATUS_OUT_OF_MEMORY;
    }
    start(alignment, code);
    bool changed = true;
    while (changed) {
        changed = false;
        for (size_t n = 0; n < code->count; n++) {
            changed = lower(alignment, &code->instructions[n]) || changed;
        }
    }
    return STATUS_OK;
}

void simt_alignment_free(struct simt_alignment *alignment) {
    free(alignment->zeros);
    free(alignment->value);
}
