#include "common/simt/memory/xray.h"

#include <stdlib.h>
#include <string.h>

bool simt_xray_create(struct simt_xray *xray, size_t instructions, size_t sites) {
    *xray = (struct simt_xray){.count = instructions, .site_count = sites};
    xray->instructions = calloc(instructions + 1, sizeof *xray->instructions);
    xray->requests = calloc(2 * sites + 1, sizeof *xray->requests);
    return xray->instructions != NULL && xray->requests != NULL;
}

void simt_xray_clear(struct simt_xray *xray) {
    for (size_t n = 0; n < xray->count; n++) {
        xray->instructions[n] =
            (struct simt_xray_instruction){.instruction = xray->instructions[n].instruction};
    }
    memset(xray->requests, 0, 2 * xray->site_count * sizeof *xray->requests);
}

void simt_xray_keep(struct simt_xray *xray, uint32_t site,
                    const struct simt_xray_request *request) {
    struct simt_xray_request *kept =
        &xray->requests[2 * (size_t)site + (request->space == PTX_SHARED)];
    if (kept->mask == 0) {
        *kept = *request;
    }
}

static void add_instruction(struct simt_xray_instruction *to,
                            const struct simt_xray_instruction *from) {
    to->executed += from->executed;
    to->lanes += from->lanes;
    to->loads += from->loads;
    for (size_t w = 0; w < SIMT_WAIT_COUNT; w++) {
        to->wait[w] += from->wait[w];
    }
}

void simt_xray_add(struct simt_xray *to, const struct simt_xray *from) {
    for (size_t n = 0; n < to->count; n++) {
        add_instruction(&to->instructions[n], &from->instructions[n]);
    }
    for (size_t n = 0; n < 2 * to->site_count; n++) {
        const struct simt_xray_request *a = &to->requests[n];
        const struct simt_xray_request *b = &from->requests[n];
        if (b->mask != 0 && (a->mask == 0 || b->block < a->block)) {
            to->requests[n] = *b;
        }
    }
}

void simt_xray_free(struct simt_xray *xray) {
    free(xray->instructions);
    free(xray->requests);
    *xray = (struct simt_xray){0};
}
