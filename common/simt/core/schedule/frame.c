#include <stdlib.h>
#include <string.h>

#include "common/simt/core/schedule/warp.h"

enum { MAX_DEPTH = 1024, STACK_ALIGNMENT = 16, RETURN_BYTES = 16 };

static uint32_t thread_count(const struct simt_run *run) {
    return run->threads[0] * run->threads[1] * run->threads[2];
}

/* Value of a special register for one lane. */
static uint64_t special_value(const struct simt_block_run *b, const struct simt_warp_run *w,
                              const struct simt_frame *frame, const struct simt_fill *fill,
                              uint32_t lane) {
    const struct simt_run *run = b->block.run;
    uint32_t thread = w->warp.index * SIMT_LANES + lane, axis;
    switch ((enum simt_special)fill->special) {
    case SIMT_CONSTANT_VALUE:
        return fill->value;
    case SIMT_TID_X:
        return thread % run->threads[0];
    case SIMT_TID_Y:
        return thread / run->threads[0] % run->threads[1];
    case SIMT_TID_Z:
        return thread / run->threads[0] / run->threads[1];
    case SIMT_NTID_X:
    case SIMT_NTID_Y:
    case SIMT_NTID_Z:
        return run->threads[fill->special - SIMT_NTID_X];
    case SIMT_CTAID_X:
    case SIMT_CTAID_Y:
    case SIMT_CTAID_Z:
        return b->block.index[fill->special - SIMT_CTAID_X];
    case SIMT_NCTAID_X:
    case SIMT_NCTAID_Y:
    case SIMT_NCTAID_Z:
        return run->grid[fill->special - SIMT_NCTAID_X];
    case SIMT_SMID: /* as placement.h has it, where blocks end in their order */
        return b->block.order % run->processors;
    case SIMT_NSMID:
        return run->processors;
    case SIMT_LANEID:
        return lane;
    case SIMT_WARPID:
        return w->warp.index;
    case SIMT_NWARPID:
        return (thread_count(run) + SIMT_LANES - 1) / SIMT_LANES;
    case SIMT_LANEMASK_EQ:
        return (uint32_t)1 << lane;
    case SIMT_LANEMASK_LT:
        return ((uint32_t)1 << lane) - 1;
    case SIMT_LANEMASK_LE:
        return ((uint64_t)2 << lane) - 1;
    case SIMT_LANEMASK_GT:
        return (uint32_t) ~(((uint64_t)2 << lane) - 1);
    case SIMT_LANEMASK_GE:
        return (uint32_t) ~(((uint32_t)1 << lane) - 1);
    case SIMT_DYNAMIC_SHARED:
        return b->dynamic_shared_bytes;
    case SIMT_TOTAL_SHARED:
        return b->block.shared_bytes;
    case SIMT_LOCAL_ADDRESS:
        return frame->local_base + fill->value;
    case SIMT_RESERVED_SHARED:
        return b->block.shared_bytes - SIMT_RESERVED_BYTES + fill->value;
    case SIMT_CLUSTERID_X:
    case SIMT_CLUSTERID_Y:
    case SIMT_CLUSTERID_Z:
        axis = fill->special - SIMT_CLUSTERID_X;
        return b->block.index[axis] / run->cluster[axis];
    case SIMT_NCLUSTERID_X:
    case SIMT_NCLUSTERID_Y:
    case SIMT_NCLUSTERID_Z:
        axis = fill->special - SIMT_NCLUSTERID_X;
        return run->grid[axis] / run->cluster[axis];
    case SIMT_CLUSTER_CTAID_X:
    case SIMT_CLUSTER_CTAID_Y:
    case SIMT_CLUSTER_CTAID_Z:
        axis = fill->special - SIMT_CLUSTER_CTAID_X;
        return b->block.index[axis] % run->cluster[axis];
    case SIMT_CLUSTER_NCTAID_X:
    case SIMT_CLUSTER_NCTAID_Y:
    case SIMT_CLUSTER_NCTAID_Z:
        return run->cluster[fill->special - SIMT_CLUSTER_NCTAID_X];
    case SIMT_CLUSTER_RANK:
        return b->block.rank;
    case SIMT_CLUSTER_SIZE:
        return b->block.cluster != NULL ? b->block.cluster->size : 1;
    case SIMT_ENVREG1:
        return run->grid_workspace >> 32;
    case SIMT_ENVREG2:
        return run->grid_workspace & UINT32_MAX;
    }
    return 0;
}

/* Differs from block to block of one launch. */
static bool differs_by_block(enum simt_special special) {
    switch (special) {
    case SIMT_CTAID_X:
    case SIMT_CTAID_Y:
    case SIMT_CTAID_Z:
    case SIMT_SMID:
    case SIMT_CLUSTERID_X:
    case SIMT_CLUSTERID_Y:
    case SIMT_CLUSTERID_Z:
    case SIMT_CLUSTER_CTAID_X:
    case SIMT_CLUSTER_CTAID_Y:
    case SIMT_CLUSTER_CTAID_Z:
    case SIMT_CLUSTER_RANK:
        return true;
    default:
        return false;
    }
}

static bool differs_by_lane(enum simt_special special) {
    switch (special) {
    case SIMT_TID_X:
    case SIMT_TID_Y:
    case SIMT_TID_Z:
    case SIMT_LANEID:
    case SIMT_LANEMASK_EQ:
    case SIMT_LANEMASK_LT:
    case SIMT_LANEMASK_LE:
    case SIMT_LANEMASK_GT:
    case SIMT_LANEMASK_GE:
        return true;
    default:
        return false;
    }
}

static void fill_row(union simt_row *row, bool wide, const uint64_t values[SIMT_LANES]) {
    for (uint32_t lane = 0; lane < SIMT_LANES && wide; lane++) {
        row->u64[lane] = values[lane];
    }
    for (uint32_t lane = 0; lane < SIMT_LANES && !wide; lane++) {
        row->u32[lane] = (uint32_t)values[lane];
    }
}

static void fill_row_alike(union simt_row *row, bool wide, uint64_t value) {
    for (uint32_t lane = 0; lane < SIMT_LANES && wide; lane++) {
        row->u64[lane] = value;
    }
    for (uint32_t lane = 0; lane < SIMT_LANES && !wide; lane++) {
        row->u32[lane] = (uint32_t)value;
    }
}

/* @param all else those alone that another block fills in another way */
static void fill_rows(const struct simt_block_run *b, const struct simt_warp_run *w,
                      struct simt_frame *frame, bool all) {
    for (size_t n = 0; n < frame->code->fill_count; n++) {
        const struct simt_fill *fill = &frame->code->fills[n];
        if (!all && !differs_by_block((enum simt_special)fill->special)) {
            continue;
        }
        union simt_row *row = (union simt_row *)(void *)(frame->rows + fill->offset);
        if (!differs_by_lane((enum simt_special)fill->special)) {
            fill_row_alike(row, fill->wide, special_value(b, w, frame, fill, 0));
            continue;
        }
        uint64_t values[SIMT_LANES];
        for (uint32_t lane = 0; lane < SIMT_LANES; lane++) {
            values[lane] = special_value(b, w, frame, fill, lane);
        }
        fill_row(row, fill->wide, values);
    }
}

/* Undefined in PTX; zeros make runs repeat. A large kernel has a megabyte of registers a warp, of
 * which it may use few, so memory that the system gives as zeros is left alone. */
static bool take_rows(struct simt_frame *frame, size_t bytes) {
    enum { ALIGNMENT = 64 };
    frame->memory = calloc(1, bytes + ALIGNMENT);
    uintptr_t end = (uintptr_t)frame->memory + ALIGNMENT - 1;
    frame->rows = (unsigned char *)(end / ALIGNMENT * ALIGNMENT);
    return frame->memory != NULL;
}

static uint32_t stack_of(const struct simt_code *code) {
    return (uint32_t)((code->local_bytes + STACK_ALIGNMENT - 1) / STACK_ALIGNMENT *
                      STACK_ALIGNMENT);
}

size_t simt_frame_bytes(const struct simt_code *code) {
    return stack_of(code) + RETURN_BYTES;
}

bool simt_frame_fits(const struct simt_run *run, const struct simt_code *code,
                     const struct simt_frame *caller) {
    size_t used = simt_frame_bytes(code);
    bool recursive = false;
    for (const struct simt_frame *f = caller; f->caller != NULL; f = f->caller) {
        recursive = recursive || f->code == code;
        used += simt_frame_bytes(f->code);
    }
    return !recursive || (used <= run->stack_bytes && caller->depth < MAX_DEPTH);
}

static void set_constant_predicates(const struct simt_block_run *block, struct simt_frame *frame) {
    frame->predicates[SIMT_PREDICATE_TRUE] = UINT32_MAX;
    frame->predicates[SIMT_PREDICATE_IN_CLUSTER] = block->block.cluster != NULL ? UINT32_MAX : 0;
}

struct simt_frame *simt_frame_create(const struct simt_block_run *block,
                                     const struct simt_warp_run *warp, const struct simt_code *code,
                                     struct simt_frame *caller) {
    struct simt_frame *frame = calloc(1, sizeof *frame);
    if (frame == NULL) {
        return NULL;
    }
    frame->predicates = calloc(code->predicates, sizeof *frame->predicates);
    if (!take_rows(frame, code->row_bytes) || frame->predicates == NULL) {
        simt_frame_free(frame);
        return NULL;
    }
    frame->caller = caller;
    frame->code = code;
    frame->depth = caller != NULL ? caller->depth + 1 : 0;
    frame->local_base = caller != NULL ? caller->local_base + stack_of(caller->code) : 0;
    set_constant_predicates(block, frame);
    fill_rows(block, warp, frame, true);
    return frame;
}

/* Registers are zeros at first, where a function can see what they were. */
static void clear_registers(struct simt_frame *frame) {
    const struct simt_code *code = frame->code;
    if (code->unset == NULL || code->call_count > 0) {
        memset(frame->rows, 0, code->register_bytes);
        return;
    }
    for (size_t n = 0; n < code->unset_count; n++) {
        size_t size = ptx_type_size(code->function->registers[code->unset[n]].type);
        uint32_t cell = code->cells[code->unset[n]];
        if (cell < code->row_bytes / SIMT_ROW32) { /* no predicate */
            size_t lane = size > 8 ? 16 : size == 8 ? 8 : 4;
            memset(frame->rows + (size_t)cell * SIMT_ROW32, 0, lane * SIMT_LANES);
        }
    }
}

struct simt_frame *simt_frame_renew(const struct simt_block_run *block,
                                    const struct simt_warp_run *warp, struct simt_frame *frame) {
    free(frame->cells);
    frame->cells = NULL;
    memset(frame->predicates, 0, frame->code->predicates * sizeof *frame->predicates);
    set_constant_predicates(block, frame);
    clear_registers(frame);
    fill_rows(block, warp, frame, false);
    return frame;
}

void simt_frame_free(struct simt_frame *frame) {
    if (frame != NULL) {
        free(frame->cells);
        free(frame->memory);
        free(frame->predicates);
        free(frame);
    }
}
