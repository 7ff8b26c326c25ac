#include "common/simt/memory/access/memory_harness.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { REGISTER_BYTES = 2 * sizeof(union simt_row), MEMORY_BYTES = 1 << 26, LINE = 42 };

static void make_registers(struct harness *h) {
    static const enum ptx_type types[] = {PTX_B64, PTX_B32, PTX_B16, PTX_B128};
    for (size_t n = 0; n < HARNESS_REGISTERS; n++) {
        h->registers[n] = (struct ptx_register){.type = types[n / 16]};
    }
    h->function =
        (struct ptx_function){.registers = h->registers, .register_count = HARNESS_REGISTERS};
}

static bool make_warps(struct harness *h) {
    for (uint32_t n = 0; n < HARNESS_WARPS; n++) {
        h->warps[n] = (struct simt_warp){.block = &h->block, .index = n, .members = UINT32_MAX};
        h->warps[n].rows = aligned_alloc(64, (size_t)HARNESS_REGISTERS * REGISTER_BYTES);
        h->warps[n].predicates = calloc(8, sizeof(uint32_t));
        if (h->warps[n].rows == NULL || h->warps[n].predicates == NULL) {
            return false;
        }
        memset(h->warps[n].rows, 0, (size_t)HARNESS_REGISTERS * REGISTER_BYTES);
        h->warp = &h->warps[n];
        harness_mask(h, UINT32_MAX);
    }
    h->warp = &h->warps[0];
    return true;
}

bool harness_create(struct harness *h, enum simt_check check) {
    *h = (struct harness){.files = {NULL, (char *)"kernel.cu"}};
    make_registers(h);
    h->module = (struct ptx_module){.files = h->files, .file_count = 2};
    bool full = check == SIMT_CHECK_FULL;
    const struct simt_shadow_size size = {.shared_bytes = HARNESS_SHARED,
                                          .local_bytes =
                                              (size_t)HARNESS_WARPS * SIMT_LANES * HARNESS_LOCAL,
                                          .warps = HARNESS_WARPS};
    bool made = simt_memory_create(&h->memory, MEMORY_BYTES) == STATUS_OK && make_warps(h);
    if (made && full) {
        made = simt_global_shadow_create(&h->global_shadow, h->memory) == STATUS_OK &&
               simt_global_shadow_begin(h->global_shadow, 1) == 1 &&
               simt_shadow_create(&h->block.shadow, &size,
                                  simt_global_shadow_watch(h->global_shadow, 0)) == STATUS_OK;
    }
    h->run = (struct simt_run){.memory = h->memory,
                               .module = &h->module,
                               .kernel = "_Z5saxpyPf",
                               .parameters = h->parameters,
                               .parameter_bytes = sizeof h->parameters,
                               .grid = {8, 2, 1},
                               .threads = {32 * HARNESS_WARPS, 1, 1},
                               .check = check};
    h->block.run = &h->run;
    h->block.shared = calloc(1, HARNESS_SHARED);
    h->block.shared_bytes = HARNESS_SHARED;
    h->block.local = calloc((size_t)HARNESS_WARPS * SIMT_LANES, HARNESS_LOCAL);
    h->block.local_bytes = HARNESS_LOCAL;
    h->block.counters = &h->counters;
    h->block.cache = simt_access_cache_create();
    return made && h->block.shared != NULL && h->block.local != NULL && h->block.cache != NULL;
}

void harness_free(struct harness *h) {
    for (size_t n = 0; n < HARNESS_WARPS; n++) {
        free(h->warps[n].rows);
        free(h->warps[n].predicates);
    }
    free(h->block.shared);
    free(h->block.local);
    simt_access_cache_free(h->block.cache);
    simt_shadow_free(h->block.shadow);
    simt_global_shadow_free(h->global_shadow);
    simt_memory_free(h->memory);
}

void harness_next_block(struct harness *h, uint64_t order) {
    h->block.order = order;
    h->block.index[0] = (uint32_t)order % h->run.grid[0];
    h->block.index[1] = (uint32_t)order / h->run.grid[0];
    h->block.agent = (struct simt_agent){.id = (uint32_t)order};
    h->block.fault.kind = SIMT_FAULT_NONE;
    for (size_t n = 0; n < HARNESS_WARPS; n++) {
        h->warps[n].fault = NULL;
    }
    if (h->block.shadow != NULL) {
        simt_shadow_reset(h->block.shadow);
    }
}

void harness_mask(struct harness *h, uint32_t mask) {
    h->warp->mask = mask;
    for (uint32_t n = 0; n < SIMT_LANES; n++) {
        h->warp->lanes[n] = (mask >> n & 1) != 0 ? UINT32_MAX : 0;
    }
}

static uint32_t row_offset(int number) {
    return (uint32_t)number * REGISTER_BYTES;
}

union simt_row *harness_row(const struct harness *h, int number) {
    return simt_row(h->warp, row_offset(number));
}

uint64_t harness_alloc(struct harness *h, size_t bytes) {
    uint64_t address = 0;
    if (simt_memory_alloc(h->memory, bytes, 256, "cudaMalloc", &address) != STATUS_OK) {
        return 0;
    }
    return address;
}

unsigned char *harness_host(const struct harness *h, uint64_t address) {
    return simt_memory_host(h->memory, address);
}

/* "ld.global.f32": the base and the modifiers, each with an end of its own. */
static void split_opcode(struct harness_instruction *in, const char *opcode) {
    snprintf(in->opcode, sizeof in->opcode, "%s", opcode);
    snprintf(in->text, sizeof in->text, "%s", opcode);
    in->source.opcode = in->opcode;
    in->source.base = in->text;
    for (char *dot = strchr(in->text, '.'); dot != NULL; dot = strchr(dot + 1, '.')) {
        *dot = '\0';
        in->source.modifiers[in->source.modifier_count++] = dot + 1;
    }
}

static struct ptx_operand as_register(int number) {
    return (struct ptx_operand){.kind = PTX_OPERAND_REGISTER, .index = (uint32_t)number};
}

static struct ptx_operand as_registers(struct ptx_operand *elements, const int *numbers,
                                       size_t count) {
    for (size_t n = 0; n < count; n++) {
        elements[n] = as_register(numbers[n]);
    }
    return count == 1 ? elements[0]
                      : (struct ptx_operand){.kind = PTX_OPERAND_VECTOR,
                                             .elements = elements,
                                             .element_count = count};
}

bool harness_decode(struct harness *h, struct harness_instruction *in, const char *opcode,
                    const struct harness_operands *o) {
    struct simt_instruction *out = &in->decoded;
    size_t count = 0;
    *in = (struct harness_instruction){0};
    *out = (struct simt_instruction){.guard = -1, .pred_dst = {-1, -1}, .immediate = o->offset};
    split_opcode(in, opcode);
    if (o->dst_count > 0) {
        in->operands[count++] = as_registers(in->elements[0], o->dst, o->dst_count);
    }
    in->operands[count++] = (struct ptx_operand){.kind = PTX_OPERAND_ADDRESS,
                                                 .has_register = true,
                                                 .index = (uint32_t)o->address,
                                                 .offset = o->offset};
    if (o->src_count > 0) {
        in->operands[count++] = as_registers(in->elements[1], o->src, o->src_count);
    }
    if (o->compare != 0) {
        in->operands[count++] = as_register(o->compare);
    }
    in->source.operands = in->operands;
    in->source.operand_count = count;
    in->source.file = 1;
    in->source.line = LINE;
    out->source = &in->source;
    for (size_t n = 0; n < o->dst_count; n++) {
        out->dst[out->dst_count++] = row_offset(o->dst[n]);
    }
    out->src[out->src_count++] = row_offset(o->address);
    for (size_t n = 0; n < o->src_count; n++) {
        out->src[out->src_count++] = row_offset(o->src[n]);
    }
    if (o->compare != 0) {
        out->src[out->src_count++] = row_offset(o->compare);
    }
    const struct simt_decoding decoding = {.source = &in->source, .function = &h->function};
    return simt_decode_memory(&decoding, out);
}

bool harness_run(struct harness *h, const char *opcode, const struct harness_operands *operands) {
    struct harness_instruction in;
    if (!harness_decode(h, &in, opcode, operands)) {
        return false;
    }
    in.decoded.run(h->warp, &in.decoded);
    simt_access_cache_tally(h->block.cache, &h->counters, NULL);
    return h->warp->fault == NULL;
}

void harness_addresses(struct harness *h, int number, uint64_t first, int64_t stride) {
    union simt_row *row = harness_row(h, number);
    for (int64_t n = 0; n < SIMT_LANES; n++) {
        uint64_t address = first + (uint64_t)(n * stride);
        if (number < R32) {
            row->u64[n] = address;
        } else {
            row->u32[n] = (uint32_t)address;
        }
    }
}
