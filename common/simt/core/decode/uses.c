#include "common/simt/core/decode/uses.h"

#include <stdbool.h>
#include <stdlib.h>

#include "common/simt/core/decode/decode_internal.h"

/* Where the next number goes; list NULL: they are only counted. */
struct writer {
    uint32_t *list;
    size_t count;
};

static void put(struct writer *writer, uint32_t number) {
    if (writer->list != NULL) {
        writer->list[writer->count] = number;
    }
    writer->count++;
}

/* The registers of an operand, those inside of addresses and vectors too. */
static void put_operand(struct writer *writer, const struct ptx_operand *operand) {
    if (operand->kind == PTX_OPERAND_REGISTER ||
        (operand->kind == PTX_OPERAND_ADDRESS && operand->has_register)) {
        put(writer, operand->index);
    }
    for (size_t n = 0; n < operand->element_count; n++) {
        put_operand(writer, &operand->elements[n]);
    }
}

static void put_reads(struct writer *writer, const struct ptx_instruction *in) {
    bool writes = decode_has_destination(in) && in->operand_count > 0;
    for (size_t n = writes ? 1 : 0; n < in->operand_count; n++) {
        put_operand(writer, &in->operands[n]);
    }
    if (in->guarded) {
        put(writer, in->guard);
    }
    if (in->guarded && writes) {
        put_operand(writer, &in->operands[0]);
    }
}

/* Fills in `start` and, where the writer has one, the list. */
static void walk(struct simt_code *code, struct writer *writer) {
    uint32_t *start = code->uses.start;
    for (size_t n = 0; n < code->count; n++) {
        const struct ptx_instruction *in = code->instructions[n].source;
        start[2 * n] = (uint32_t)writer->count;
        if (in != NULL) {
            put_reads(writer, in);
        }
        start[2 * n + 1] = (uint32_t)writer->count;
        if (in != NULL && decode_has_destination(in) && in->operand_count > 0) {
            put_operand(writer, &in->operands[0]);
        }
    }
    start[2 * code->count] = (uint32_t)writer->count;
}

enum status simt_uses_find(struct simt_code *code) {
    struct simt_uses *uses = &code->uses;
    uses->start = calloc(2 * code->count + 1, sizeof *uses->start);
    if (uses->start == NULL) {
        return STATUS_OUT_OF_MEMORY;
    }
    struct writer writer = {0};
    walk(code, &writer);
    uses->list = calloc(writer.count + 1, sizeof *uses->list);
    if (uses->list == NULL) {
        return STATUS_OUT_OF_MEMORY;
    }
    writer = (struct writer){.list = uses->list};
    walk(code, &writer);
    return STATUS_OK;
}

void simt_uses_free(struct simt_code *code) {
    free(code->uses.start);
    free(code->uses.list);
}
