#include "common/simt/core/decode/decode_internal.h"

#include <stdbool.h>
#include <stdlib.h>

static bool ends_block(const struct simt_instruction *i) {
    return i->flow == SIMT_FLOW_BRANCH || i->flow == SIMT_FLOW_BRANCH_TABLE ||
           i->flow == SIMT_FLOW_RETURN || i->flow == SIMT_FLOW_EXIT || i->flow == SIMT_FLOW_TRAP;
}

static bool falls_through(const struct simt_instruction *i) {
    return !ends_block(i) || i->guard >= 0;
}

static void mark_leaders(const struct simt_code *code) {
    code->leader[0] = true;
    for (size_t n = 0; n < code->count; n++) {
        const struct simt_instruction *i = &code->instructions[n];
        if (i->flow == SIMT_FLOW_BRANCH) {
            code->leader[i->immediate] = true;
        }
        for (size_t t = 0; i->flow == SIMT_FLOW_BRANCH_TABLE && t < i->source->target_count; t++) {
            code->leader[i->source->target_indices[t]] = true;
        }
        if (ends_block(i) && n + 1 < code->count) {
            code->leader[n + 1] = true;
        }
    }
}

static const struct simt_instruction *last_of(const struct simt_blocks *blocks,
                                              const struct simt_code *code, size_t block) {
    return &code->instructions[blocks->first[block + 1] - 1];
}

static size_t count_edges(const struct simt_blocks *blocks, const struct simt_code *code) {
    size_t edges = 0;
    for (size_t b = 0; b < blocks->count; b++) {
        const struct simt_instruction *i = last_of(blocks, code, b);
        edges += falls_through(i) ? 1 : 0;
        edges += i->flow == SIMT_FLOW_BRANCH ? 1 : 0;
        edges += i->flow == SIMT_FLOW_BRANCH_TABLE ? i->source->target_count : 0;
    }
    return edges;
}

static void fill_edges(struct simt_blocks *blocks, const struct simt_code *code) {
    size_t n = 0;
    for (size_t b = 0; b < blocks->count; b++) {
        const struct simt_instruction *i = last_of(blocks, code, b);
        blocks->edge_start[b] = (uint32_t)n;
        if (i->flow == SIMT_FLOW_BRANCH) {
            blocks->edges[n++] = blocks->of[i->immediate];
        }
        for (size_t t = 0; i->flow == SIMT_FLOW_BRANCH_TABLE && t < i->source->target_count; t++) {
            blocks->edges[n++] = blocks->of[i->source->target_indices[t]];
        }
        if (falls_through(i) && b + 1 < blocks->count) {
            blocks->edges[n++] = (uint32_t)b + 1;
        }
    }
    blocks->edge_start[blocks->count] = (uint32_t)n;
}

enum status simt_blocks_find(struct simt_blocks *blocks, const struct simt_code *code) {
    *blocks = (struct simt_blocks){0};
    blocks->first = calloc(code->count + 1, sizeof *blocks->first);
    blocks->edge_start = calloc(code->count + 1, sizeof *blocks->edge_start);
    blocks->of = calloc(code->count + 1, sizeof *blocks->of);
    if (blocks->first == NULL || blocks->edge_start == NULL || blocks->of == NULL) {
        return STATUS_OUT_OF_MEMORY;
    }
    mark_leaders(code);
    for (size_t n = 0; n < code->count; n++) {
        if (code->leader[n]) {
            blocks->first[blocks->count++] = (uint32_t)n;
        }
        blocks->of[n] = (uint32_t)blocks->count - 1;
    }
    blocks->first[blocks->count] = (uint32_t)code->count;
    blocks->edges = calloc(count_edges(blocks, code) + 1, sizeof *blocks->edges);
    if (blocks->edges == NULL) {
        return STATUS_OUT_OF_MEMORY;
    }
    fill_edges(blocks, code);
    return STATUS_OK;
}

void simt_blocks_free(struct simt_blocks *blocks) {
    free(blocks->first);
    free(blocks->edge_start);
    free(blocks->edges);
    free(blocks->of);
}
