/**
 * @file decode_memory.h
 * @brief What the files of the memory instructions share.
 */
#ifndef WARPBOOK_COMMON_SIMT_MEMORY_ACCESS_DECODE_MEMORY_H_
#define WARPBOOK_COMMON_SIMT_MEMORY_ACCESS_DECODE_MEMORY_H_

#include "common/simt/memory/access/request.h"

/** What the modifiers of ld, st, atom and red say. */
struct simt_memory_form {
    enum ptx_space space;
    enum ptx_type type;
    uint32_t count; /**< elements: v2, v4, v8 */
    bool strong;    /**< volatile, relaxed, acquire, release */
};

/** @return handler of ld or st, NULL when there is none for the space. */
simt_handler *simt_load_store_handler(struct simt_instruction *instruction, enum ptx_space space,
                                      bool store, bool plain32);

/**
 * @brief Sets the handler and the details of atom or red.
 * @return false when the operation is not known for the type and space
 */
bool simt_decode_atomic(const struct ptx_instruction *source, const struct simt_memory_form *form,
                        struct simt_instruction *instruction);

/* Fences and the ordering side of ld, st and atom, as the race checks see them. */

/** The ordering flags of simt_instruction.detail[0]. */
enum { SIMT_ORDERS = (int)((unsigned)SIMT_ACQUIRES | SIMT_RELEASES_BLOCK | SIMT_RELEASES_DEVICE) };

/** Before the access: what it releases. */
void simt_sync_release(struct simt_warp *warp, uint32_t flags);

/** After the access: what it acquires. */
void simt_sync_acquire(struct simt_warp *warp, uint32_t flags);

/** @return the ordering flags that an instruction's modifiers stand for; fences too. */
uint32_t simt_sync_flags(const struct ptx_instruction *source);

#endif
