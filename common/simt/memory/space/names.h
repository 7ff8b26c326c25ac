/**
 * @file names.h
 * @brief Names that a program gives to its tensors in device memory, for messages.
 */
#ifndef WARPBOOK_COMMON_SIMT_MEMORY_SPACE_NAMES_H_
#define WARPBOOK_COMMON_SIMT_MEMORY_SPACE_NAMES_H_

#include <stdbool.h>
#include <stdint.h>

#include "common/simt/memory/space/memory.h"

enum { SIMT_NAME_BYTES = 32, SIMT_MOST_NAMES = 256 };

/** A tensor begins here. */
struct simt_name_entry {
    uint64_t address; /**< 0: no name */
    uint64_t launch;  /**< number of launches before it was named */
    char text[SIMT_NAME_BYTES];
};

/** The latest names; begins as zeros. */
struct simt_names {
    struct simt_name_entry entries[SIMT_MOST_NAMES];
    uint32_t next; /**< the oldest entry, which is replaced next */
    uint64_t launches;
};

/** @return true when a program may use @p name: printable ASCII, not empty. */
bool simt_name_is_good(const char *name);

/** Names an address inside of @p allocation. */
void simt_names_add(struct simt_names *names, const struct simt_allocation *allocation,
                    uint64_t address, const char *name);

/** Forgets the names of addresses from @p begin to before @p end. */
void simt_names_forget(struct simt_names *names, uint64_t begin, uint64_t end);

/** @return the nearest name at or below @p address inside of @p allocation, or NULL. */
const struct simt_name_entry *simt_names_find(const struct simt_names *names,
                                              const struct simt_allocation *allocation,
                                              uint64_t address);

#endif
