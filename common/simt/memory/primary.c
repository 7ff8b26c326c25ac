#include "common/simt/memory/primary.h"

#include <stdio.h>
#include <stdlib.h>

#include "common/simt/ptx/ptx.h"

struct simt_trace *simt_trace_create(void) {
    struct simt_trace *trace = calloc(1, sizeof *trace);
    if (trace == NULL) {
        return NULL;
    }
    trace->plain = simt_footprint_create();
    trace->atomics = simt_footprint_create();
    if (trace->plain == NULL || trace->atomics == NULL) {
        simt_trace_free(trace);
        return NULL;
    }
    return trace;
}

void simt_trace_free(struct simt_trace *trace) {
    if (trace != NULL) {
        simt_footprint_free(trace->plain);
        simt_footprint_free(trace->atomics);
        free(trace);
    }
}

void simt_primary_free(struct simt_primary *primaries) {
    while (primaries != NULL) {
        struct simt_primary *next = primaries->next;
        simt_trace_free(primaries->trace);
        free(primaries->name);
        free(primaries->sites);
        free(primaries);
        primaries = next;
    }
}

/* Says in which line a word was written. */
static void find_place(const struct simt_primary *primary, const struct simt_footprint *footprint,
                       uint64_t address, struct simt_fault_place *place) {
    uint32_t site;
    struct ptx_place found;
    if (primary->sites != NULL && simt_footprint_site(footprint, address, &site) &&
        primary->sites[site].source != NULL &&
        ptx_source_lines(primary->module, primary->sites[site].source, &found, 1) > 0) {
        snprintf(place->file, sizeof place->file, "%s", found.file);
        place->line = found.line;
    }
}

/* One word and one launch. */
static bool meets_word(const struct simt_primary *primary, uint64_t address, bool writes,
                       bool atomic, struct simt_early *early) {
    const struct simt_trace *trace = primary->trace;
    bool by_plain = simt_footprint_has(trace->plain, address, true);
    bool by_atomic = !atomic && simt_footprint_has(trace->atomics, address, true);
    bool wrote = by_plain || by_atomic;
    if (!wrote && !(writes && simt_footprint_has(trace->plain, address, false))) {
        return false;
    }
    *early = (struct simt_early){.primary = primary, .wrote = wrote};
    if (wrote) {
        find_place(primary, by_plain ? trace->plain : trace->atomics, address, &early->place);
    }
    return true;
}

bool simt_primary_meets(const struct simt_primary *primaries, uint64_t address, uint32_t bytes,
                        bool writes, bool atomic, struct simt_early *early) {
    enum { WORD = 4 };
    for (const struct simt_primary *p = primaries; p != NULL; p = p->next) {
        for (uint64_t at = address / WORD * WORD; at < address + bytes; at += WORD) {
            if (meets_word(p, at, writes, atomic, early)) {
                return true;
            }
        }
    }
    return false;
}
