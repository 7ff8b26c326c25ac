/* Where an address lies, in words. */
#include "common/simt/memory/space/memory.h"

enum { NULL_PAGE = 1 << 16, SHORT_BEFORE = 256, NAME_BYTES = 200 };

/* An address this far from an allocation has nothing to do with it. */
#define NEAR_BYTES ((uint64_t)1 << 30)

static void name_allocation(const struct simt_allocation *allocation, char *text, size_t size) {
    snprintf(text, size, "allocation #%" PRIu64 " (%s, %zu byte%s)", allocation->serial,
             allocation->what, allocation->bytes, simt_plural(allocation->bytes));
}

void simt_memory_describe(const struct simt_memory *memory, uint64_t address, char *text,
                          size_t size) {
    struct simt_allocation below, above;
    char name[NAME_BYTES], past[64];
    if (address < NULL_PAGE) {
        snprintf(text, size, "which is a null pointer");
        return;
    }
    bool has_below = simt_memory_below(memory, address, &below);
    bool has_above = simt_memory_above(memory, address, &above);
    uint64_t inside = has_below ? address - below.address : 0;
    if (has_below && inside < below.bytes) {
        name_allocation(&below, name, sizeof name);
        snprintf(text, size, "%" PRIu64 " byte%s into %s", inside, simt_plural(inside), name);
        return;
    }
    uint64_t behind = has_below ? inside - below.bytes : UINT64_MAX;
    uint64_t before = has_above ? above.address - address : UINT64_MAX;
    if (before <= SHORT_BEFORE && before < behind) {
        name_allocation(&above, name, sizeof name);
        snprintf(text, size, "%" PRIu64 " byte%s before the start of %s", before,
                 simt_plural(before), name);
    } else if (behind < NEAR_BYTES) {
        name_allocation(&below, name, sizeof name);
        simt_describe_past(behind, past, sizeof past);
        snprintf(text, size, "%s %s%s", past, name, below.freed ? ", which was freed" : "");
    } else if (simt_memory_is_device(memory, (const void *)(uintptr_t)address)) {
        snprintf(text, size, "where nothing is allocated");
    } else {
        snprintf(text, size, "which is not device memory (a pointer of the host?)");
    }
}
