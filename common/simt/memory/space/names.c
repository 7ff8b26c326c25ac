#include "common/simt/memory/space/names.h"

#include <stddef.h>
#include <stdio.h>

/* An operator may be several kernels, and names its tensors once. */
enum { LAUNCHES_OF_A_CALL = 4 };

bool simt_name_is_good(const char *name) {
    for (const char *at = name; *at != '\0'; at++) {
        if (*at < ' ' || *at > '~' || *at == '"') {
            return false;
        }
    }
    return name[0] != '\0';
}

static bool is_inside(const struct simt_allocation *allocation, uint64_t address) {
    return address - allocation->address < allocation->bytes;
}

/* A name inside of an allocation that was given more than some launches ago. */
static bool is_old(const struct simt_names *names, const struct simt_name_entry *entry,
                   const struct simt_allocation *allocation, uint64_t launches) {
    return entry->address != allocation->address && is_inside(allocation, entry->address) &&
           entry->launch + launches < names->launches;
}

static void forget_old(struct simt_names *names, const struct simt_allocation *allocation) {
    for (size_t n = 0; n < SIMT_MOST_NAMES; n++) {
        if (is_old(names, &names->entries[n], allocation, 0)) {
            names->entries[n].address = 0;
        }
    }
}

void simt_names_add(struct simt_names *names, const struct simt_allocation *allocation,
                    uint64_t address, const char *name) {
    simt_names_forget(names, address, address + 1);
    forget_old(names, allocation);
    struct simt_name_entry *entry = &names->entries[names->next];
    names->next = (names->next + 1) % SIMT_MOST_NAMES;
    *entry = (struct simt_name_entry){.address = address, .launch = names->launches};
    snprintf(entry->text, sizeof entry->text, "%s", name);
}

void simt_names_forget(struct simt_names *names, uint64_t begin, uint64_t end) {
    for (size_t n = 0; n < SIMT_MOST_NAMES; n++) {
        struct simt_name_entry *entry = &names->entries[n];
        if (entry->address >= begin && entry->address < end) {
            entry->address = 0;
        }
    }
}

const struct simt_name_entry *simt_names_find(const struct simt_names *names,
                                              const struct simt_allocation *allocation,
                                              uint64_t address) {
    const struct simt_name_entry *best = NULL;
    for (size_t n = 0; n < SIMT_MOST_NAMES; n++) {
        const struct simt_name_entry *entry = &names->entries[n];
        bool fits = entry->address != 0 && is_inside(allocation, entry->address) &&
                    entry->address <= address &&
                    !is_old(names, entry, allocation, LAUNCHES_OF_A_CALL);
        if (fits && (best == NULL || entry->address > best->address)) {
            best = entry;
        }
    }
    return best;
}
