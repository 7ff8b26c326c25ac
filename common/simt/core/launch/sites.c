/*
 * Numbers of a kernel's memory instructions, and their counts.
 */
#include <stdbool.h>
#include <stdlib.h>

#include "common/simt/core/launch/module.h"

/* Constants and parameters count nothing, but patterns are remembered by these numbers too. */
static bool is_site(const struct simt_instruction *instruction) {
    switch ((enum simt_class)instruction->op_class) {
    case SIMT_CLASS_GLOBAL:
    case SIMT_CLASS_SHARED:
    case SIMT_CLASS_LOCAL:
    case SIMT_CLASS_CONSTANT:
    case SIMT_CLASS_ATOMIC:
    case SIMT_CLASS_TENSOR:  /* ldmatrix, wmma.load */
    case SIMT_CLASS_BARRIER: /* mbarrier */
        return true;
    default:
        return false;
    }
}

uint32_t simt_number_sites(struct simt_code *code, uint32_t first) {
    for (size_t n = 0; n < code->count; n++) {
        if (is_site(&code->instructions[n])) {
            code->instructions[n].site = first++;
        }
    }
    return first;
}

static void fill_in(const struct simt_code *code, struct simt_site *sites) {
    for (size_t n = 0; n < code->count; n++) {
        const struct simt_instruction *instruction = &code->instructions[n];
        if (is_site(instruction)) {
            sites[instruction->site].source = instruction->source;
        }
    }
}

enum status simt_sites_prepare(struct simt_sites *list, const struct simt_module *module,
                               const struct simt_kernel *kernel, struct error *error) {
    if (list == NULL || list->sites != NULL) {
        return STATUS_OK;
    }
    list->sites = calloc((size_t)kernel->site_count + 1, sizeof *list->sites);
    if (list->sites == NULL) {
        return error_set(error, STATUS_OUT_OF_MEMORY, "%s: no memory for the counts of %u places",
                         kernel->function->name, kernel->site_count);
    }
    list->count = kernel->site_count;
    list->module = module->ptx;
    for (size_t n = 0; n < kernel->code_count; n++) {
        fill_in(kernel->codes[n], list->sites);
    }
    return STATUS_OK;
}

void simt_sites_free(struct simt_sites *sites) {
    free(sites->sites);
    *sites = (struct simt_sites){0};
}
