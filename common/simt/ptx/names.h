/**
 * @file names.h
 * @brief Names of a module, each kept once.
 */
#ifndef WARPBOOK_COMMON_SIMT_PTX_NAMES_H_
#define WARPBOOK_COMMON_SIMT_PTX_NAMES_H_

#include <stddef.h>

#include "common/simt/ptx/map.h"
#include "common/simt/ptx/memory.h"

/** Every name once, so that equal names are equal pointers. */
struct ptx_names {
    struct ptx_memory *memory; /**< where the strings live */
    struct ptx_list list;      /**< of char *; item_size is to be set */
    struct ptx_map map;        /**< from the hash of a name to its place in the list */
};

/** @return the one copy of the name, NUL-terminated; NULL: out of memory. */
char *ptx_names_keep(struct ptx_names *names, const char *text, size_t length);

void ptx_names_free(struct ptx_names *names);

#endif
