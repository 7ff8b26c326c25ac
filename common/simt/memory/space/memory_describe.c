/* Where an address lies, in words. */
#include "common/simt/memory/space/memory.h"
#include "common/simt/memory/space/names.h"

enum { NULL_PAGE = 1 << 16, SHORT_BEFORE = 256, NAME_BYTES = 300 };

/* An address this far from an allocation has nothing to do with it. */
#define NEAR_BYTES ((uint64_t)1 << 30)

void simt_allocation_text(const struct simt_memory *memory,
                          const struct simt_allocation *allocation, uint64_t address, char *text,
                          size_t size) {
    uint64_t begin = allocation->address, at = address > begin ? address : begin;
    uint64_t last = allocation->bytes > 0 ? begin + allocation->bytes - 1 : begin;
    const struct simt_name_entry *name =
        simt_names_find(simt_memory_names(memory), allocation, at < last ? at : last);
    char called[SIMT_NAME_BYTES + 64], inside[SIMT_NAME_BYTES + 64] = "";
    snprintf(called, sizeof called, "allocation #%" PRIu64, allocation->serial);
    if (name != NULL && name->address == begin) {
        snprintf(called, sizeof called, "\"%s\"", name->text);
    } else if (name != NULL) {
        snprintf(inside, sizeof inside, "; \"%s\" begins at byte %" PRIu64, name->text,
                 name->address - begin);
    }
    snprintf(text, size, "%s (%s, %zu byte%s%s)", called, allocation->what, allocation->bytes,
             simt_plural(allocation->bytes), inside);
}

uint64_t simt_memory_before(const struct simt_memory *memory, uint64_t address) {
    struct simt_allocation below, above;
    if (address < NULL_PAGE || !simt_memory_above(memory, address, &above)) {
        return 0;
    }
    bool has_below = simt_memory_below(memory, address, &below);
    uint64_t behind = has_below ? address - below.address - below.bytes : UINT64_MAX;
    bool inside = has_below && address - below.address < below.bytes;
    uint64_t before = above.address - address;
    return !inside && before <= SHORT_BEFORE && before < behind ? before : 0;
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
        simt_allocation_text(memory, &below, address, name, sizeof name);
        snprintf(text, size, "%" PRIu64 " byte%s into %s", inside, simt_plural(inside), name);
        return;
    }
    uint64_t behind = has_below ? inside - below.bytes : UINT64_MAX;
    uint64_t before = simt_memory_before(memory, address);
    if (has_above && before > 0) {
        simt_allocation_text(memory, &above, address, name, sizeof name);
        snprintf(text, size, "%" PRIu64 " byte%s before the start of %s", before,
                 simt_plural(before), name);
    } else if (behind < NEAR_BYTES) {
        simt_allocation_text(memory, &below, address, name, sizeof name);
        simt_describe_past(behind, past, sizeof past);
        snprintf(text, size, "%s %s%s", past, name, below.freed ? ", which was freed" : "");
    } else if (simt_memory_is_device(memory, (const void *)(uintptr_t)address)) {
        snprintf(text, size, "where nothing is allocated");
    } else {
        snprintf(text, size, "which is not device memory (a pointer of the host?)");
    }
}
