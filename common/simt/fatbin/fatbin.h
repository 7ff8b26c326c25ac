/**
 * @file fatbin.h
 * @brief Finds the PTX text, and machine code, inside the fat binary that nvcc puts into a program.
 *
 * Layout (nvcc 13): a wrapper {u32 0x466243b1, u32 1, const void *data, ...};
 * the data begins with u32 0xba55ed50, u16 version, u16 header size, u64 size
 * of what follows; then entries: kind u16@0 (1 = PTX, 2 = machine code), header
 * size u32@4, payload size u64@8, compressed size u32@16, flags u64@40 (1 << 20: for
 * that GPU alone, as compute_90a; 1 << 21: for its family, as compute_100f), raw size
 * u64@56. nvcc compresses payloads unless told --compress-mode=none.
 */
#ifndef WARPBOOK_COMMON_SIMT_FATBIN_FATBIN_H_
#define WARPBOOK_COMMON_SIMT_FATBIN_FATBIN_H_

#include <stdbool.h>
#include <stddef.h>

#include "common/base/status.h"

/** PTX inside a fat binary; not owned, not NUL-terminated. */
struct fatbin_ptx {
    const char *text;
    size_t size;
    unsigned architecture; /**< 75 for compute_75, 90 for compute_90a */
};

/** As the GPU that PTX is looked for: whatever there is. */
enum { FATBIN_ANY_GPU = 999 };

/**
 * @brief Picks the PTX of the highest architecture that a GPU of architecture @p highest runs; of
 *        compute_90 and compute_90a the latter.
 * @param data  the fat binary's data (after the wrapper)
 * @param limit bytes that may be read at @p data; the size inside is checked against it
 * @return STATUS_OK; STATUS_UNSUPPORTED when there is only machine code, only newer PTX or only
 *         compressed PTX, with a line that says how to build; STATUS_BAD_FORMAT; STATUS_TRUNCATED
 */
MUST_CHECK enum status fatbin_find_ptx(const void *data, size_t limit, unsigned highest,
                                       struct fatbin_ptx *ptx, struct error *error);

/** The same with the zeros that stand behind the text: reads nothing of it. */
MUST_CHECK enum status fatbin_find_padded_ptx(const void *data, size_t limit, unsigned highest,
                                              struct fatbin_ptx *ptx, struct error *error);

/** PTX that is compressed with zstd; not owned. */
struct fatbin_packed {
    const void *bytes;
    size_t size, text_size; /**< compressed, and what the entry says it unpacks to */
    unsigned architecture;
};

/**
 * @brief Picks such PTX that is compressed.
 * @return false when there is none. A damaged fat binary gives what stands before the damage.
 */
bool fatbin_find_packed(const void *data, size_t limit, unsigned highest,
                        struct fatbin_packed *packed);

/** What an entry of a fat binary is. */
struct fatbin_entry {
    bool ptx;              /**< else machine code, or something else that no GPU code is */
    unsigned architecture; /**< 75 for compute_75 or sm_75 */
    bool compressed;
    char suffix; /**< 'a' for compute_90a, 'f' for compute_100f, else 0 */
};

/**
 * @brief Steps through a fat binary's entries.
 * @param at begins as 0
 * @return false at the end, and where the fat binary is damaged
 */
bool fatbin_next_entry(const void *data, size_t limit, size_t *at, struct fatbin_entry *entry);

/** Machine code inside a fat binary; not owned. */
struct fatbin_code {
    const void *bytes;
    size_t size;
    unsigned architecture; /**< 90 for sm_90 */
};

/**
 * @brief Picks the machine code nearest to an architecture: the same, else older, else newer.
 *
 * Only what is not compressed. A damaged fat binary gives what stands before the damage.
 *
 * @return false when there is none
 */
bool fatbin_find_code(const void *data, size_t limit, unsigned architecture,
                      struct fatbin_code *code);

/**
 * @return whether the machine code in a fat binary has functions. Programs have one without, which
 *         nvcc's linker adds. True also where the code is compressed and cannot be unpacked here.
 */
bool fatbin_has_code(const void *data, size_t limit);

/*
 * PTX that nvcc compressed becomes text, where the system has libzstd.so.1.
 *
 * The library is looked for when it is needed, so nothing here depends on it.
 */

/** @return true when the system has libzstd, which fatbin_unpack() needs. */
bool fatbin_can_unpack(void);

/**
 * @brief Unpacks PTX.
 * @param text receives memory with *size bytes, zeros at the end cut off; the caller frees it
 * @return STATUS_OK; STATUS_UNSUPPORTED without libzstd; STATUS_BAD_FORMAT for damaged data or a
 *         size that no PTX has; STATUS_OUT_OF_MEMORY
 */
MUST_CHECK enum status fatbin_unpack(const struct fatbin_packed *packed, char **text, size_t *size,
                                     struct error *error);

#endif
