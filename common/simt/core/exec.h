/**
 * @file exec.h
 * @brief How decoded PTX runs: one handler call per instruction, 32 lanes at a time.
 *
 * Registers live in rows: 32 lanes of 4 bytes (types up to 32 bits; narrower
 * ones zero-extended in their lane, whatever their sign) or 32 lanes of 8 bytes
 * (64-bit types); a 128-bit register is two rows of 8 bytes, low half first.
 * Predicates are bit masks. Immediates, parameters' addresses and special
 * registers are rows too, filled when a frame starts, so that a handler never
 * asks what kind an operand is.
 *
 * A handler runs with warp->mask, the active lanes after the guard, and must
 * leave the other lanes' registers as they are. It has no other state than the
 * warp and its instruction.
 */
#ifndef WARPBOOK_COMMON_SIMT_CORE_EXEC_H_
#define WARPBOOK_COMMON_SIMT_CORE_EXEC_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/status.h"
#include "common/simt/core/instruction_class.h"
#include "common/simt/ptx/ptx.h"

enum { SIMT_LANES = 32, SIMT_MAX_OPERANDS = 10, SIMT_MAX_VECTOR = 8 };

/** One row of registers. Handlers take the view that fits their type. */
union simt_row {
    uint32_t u32[SIMT_LANES];
    int32_t s32[SIMT_LANES];
    float f32[SIMT_LANES];
    uint64_t u64[SIMT_LANES];
    int64_t s64[SIMT_LANES];
    double f64[SIMT_LANES];
};

struct simt_warp;
struct simt_code;
struct simt_instruction;

typedef void simt_handler(struct simt_warp *warp, const struct simt_instruction *instruction);

/** What the scheduler does after a handler returned. */
enum simt_next {
    SIMT_NEXT_PC,   /**< go on with the next instruction */
    SIMT_NEXT_FLOW, /**< the scheduler itself carries it out: branch, call, return, exit, barrier */
};

enum { SIMT_JOINED_RIDER = 1 };

/** What an instruction is where its warp's time is followed (schedule/timeline.h): a bit each. */
enum simt_timing {
    SIMT_TIMING_LOAD = 1,    /**< its result comes from global or local memory */
    SIMT_TIMING_COPY = 2,    /**< cp */
    SIMT_TIMING_CLUSTER = 4, /**< waits at the barrier of the cluster */
    SIMT_TIMING_USED = 8     /**< atom: its result is read */
};

/** What becomes of undefined sources of an instruction; see memory/undefined.h. */
enum simt_undefined_rule {
    SIMT_UNDEFINED_RESULT, /**< results are undefined in the same lanes */
    SIMT_UNDEFINED_USE,    /**< a fault: control flow, atomics, barriers ... */
    SIMT_UNDEFINED_LOAD,   /**< sources are addresses: a fault. Memory decides about the results */
    SIMT_UNDEFINED_STORE,  /**< the address: a fault. The data: the handler decides by the space */
    SIMT_UNDEFINED_SELECT, /**< selp: the source that is chosen */
    SIMT_UNDEFINED_AND,    /**< a source that is zero decides alone */
    SIMT_UNDEFINED_OR,     /**< a predicate that is true decides alone */
    SIMT_UNDEFINED_SETP,   /**< setp, maybe combined with a third source by and, or */
    SIMT_UNDEFINED_SHUFFLE,
    SIMT_UNDEFINED_VOTE,
    SIMT_UNDEFINED_WARP, /**< results of all lanes where a lane's source is undefined */
    SIMT_UNDEFINED_MMA,
    SIMT_UNDEFINED_MATRIX_LOAD, /**< ldmatrix */
    SIMT_UNDEFINED_MATRIX_STORE,
    SIMT_UNDEFINED_TILE_LOAD, /**< wmma.load */
    SIMT_UNDEFINED_TILE_STORE,
    SIMT_UNDEFINED_FRAME_LOAD, /**< ld.param and st.param of a function's frame */
    SIMT_UNDEFINED_FRAME_STORE
};

/** The variable that an address was computed from, where that is certain. */
struct simt_origin {
    const struct ptx_variable *variable; /**< of shared or local memory */
    uint64_t begin, end;                 /**< shared: the offsets that belong to it */
};

/**
 * One decoded instruction.
 *
 * `dst` and `src` are byte offsets of rows from warp->rows, or predicate numbers.
 * Destinations come first in PTX; a pair d|p has d in dst[0] and p in `pred_dst`.
 *
 * What the scheduler and most handlers look at comes first, in one line of the CPU's cache.
 */
struct simt_instruction {
    _Alignas(64) simt_handler *run;
    int32_t guard; /**< predicate number; -1: none */
    bool guard_negated;
    uint8_t next;     /**< enum simt_next */
    uint8_t op_class; /**< enum simt_class */
    uint8_t flow;     /**< private to the scheduler */
    uint16_t flops;   /**< floating-point operations per active lane: 2 for fma */
    uint8_t machine;  /**< estimated number of machine instructions */
    uint8_t joined;   /**< plain shared accesses: 0, or bytes of the wider one that it stands for,
                           or SIMT_JOINED_RIDER: an earlier instruction stands for it */
    uint32_t src[SIMT_MAX_OPERANDS]; /**< rows, or predicate numbers where the operand is one */
    uint32_t dst[SIMT_MAX_VECTOR];   /**< the first line ends behind the first one */
    uint32_t site;     /**< memory: its number among those of the kernel; see simt_number_sites() */
    int64_t immediate; /**< private to the handler: an address offset, a jump target ... */
    uint32_t detail[4];  /**< private to the handler: comparison, rounding, sizes ... */
    int32_t pred_dst[2]; /**< predicates written by setp, shfl ...; -1: none */
    bool src_negated[SIMT_MAX_OPERANDS]; /**< !%p in a source */
    bool bypasses_l1; /**< loads of global memory: .cg, .cv, volatile and the like */
    uint16_t spills;  /**< 256ths of accesses to local memory, for want of registers */
    uint8_t dst_count, src_count;
    uint8_t latency;   /**< cycles until its result is there, but for loads of global memory */
    uint8_t timing;    /**< enum simt_timing, together */
    uint8_t undefined; /**< enum simt_undefined_rule */
    bool has_base;     /**< ld, st: where its base register points is kept in simt_warp.bases */
    bool repeats_base; /**< so has an instruction before it, that always runs before it */
    uint8_t base;      /**< number of the place there */
    const struct simt_origin *origin;     /**< ld, st, atom, red; NULL: not known */
    const struct ptx_instruction *source; /**< for messages and source lines */
    const uint32_t *long_src; /**< all `src_count` sources where `src` is too short for them
                                   (wmma.mma has up to 24); else NULL */
};

/** Why the scheduler looks at each instruction of a warp before it runs: simt_warp.attention. */
enum {
    SIMT_ATTENTION_FOLLOWED = 1,  /**< somebody notes them */
    SIMT_ATTENTION_UNDEFINED = 2, /**< a register may hold an undefined value */
    SIMT_ATTENTION_PRODUCTS = 4 /**< it has executed wgmma.fence: registers of wgmma are followed */
};

struct simt_undefined_cell;

/** Where the lanes of an access lay, for accesses behind it by the same base register. */
struct simt_base {
    uint64_t serial; /**< of the pattern that the addresses had; see pattern.h */
    uint64_t first;  /**< what the register holds in the first active lane */
    uint32_t mask;   /**< active lanes; 0: nothing is known */
};

enum { SIMT_BASES = 8 };

/** A warp while it runs. Only the scheduler changes what is not a register. */
struct simt_warp {
    unsigned char *rows;        /**< frame of the running function, 64-byte aligned */
    uint32_t *predicates;       /**< bit masks of the running function */
    uint32_t mask;              /**< active lanes, guard applied */
    uint32_t lanes[SIMT_LANES]; /**< the mask expanded: ~0 where active, else 0 */
    uint32_t members;           /**< lanes that exist and have not exited */
    uint32_t carry;             /**< condition code CC.CF, a bit a lane: add.cc ... madc */
    struct simt_block *block;
    struct simt_fault *fault; /**< set by simt_fail(): the launch stops after this instruction */
    uint32_t index;           /**< number of the warp in its block */
    uint32_t attention;       /**< SIMT_ATTENTION_..., together */
    uint32_t arrived;         /**< lanes that arrived at the barrier of the cluster */
    uint32_t passed;          /**< lanes whose barrier has opened, and that have not waited */
    bool reached_peer;        /**< the last access was to another block's shared memory */
    uint32_t load_cycles;     /**< that the last instruction's load takes, in a block with a clock;
                                   0: it has loaded nothing. See memory/access/block_clock.h */
    struct simt_undefined_cell **cells; /**< of the running function; see memory/undefined.h */
    uint32_t cell_count;
    struct simt_base bases[SIMT_BASES];
};

/** @return row at a byte offset. */
static inline union simt_row *simt_row(const struct simt_warp *warp, uint32_t offset) {
    return (union simt_row *)(void *)(warp->rows + offset);
}

/** @return true when all 32 lanes are active: no blending needed. */
static inline bool simt_full(const struct simt_warp *warp) {
    return warp->mask == UINT32_MAX;
}

/** Sets the active lanes; a handler that narrows them sets them back. */
static inline void simt_set_mask(struct simt_warp *warp, uint32_t mask) {
    if (warp->mask == mask) {
        return;
    }
    warp->mask = mask;
    for (uint32_t lane = 0; lane < SIMT_LANES; lane++) {
        warp->lanes[lane] = (uint32_t)0 - (mask >> lane & 1);
    }
}

/** @return the sources, however many they are. */
static inline const uint32_t *simt_sources(const struct simt_instruction *instruction) {
    return instruction->long_src != NULL ? instruction->long_src : instruction->src;
}

/**
 * What a decoder of one family of instructions gets: the instruction and its
 * operands, already resolved to rows, predicates and immediates.
 */
struct simt_decoding {
    const struct ptx_instruction *source;
    const struct ptx_function *function;
};

/**
 * @brief Tries to decode an instruction of one family.
 *
 * Vector operands are laid out flat: `mov.b64 d, {a, b}` has src[0] = a and
 * src[1] = b, `mov.b64 {a, b}, s` has dst[0] = a and dst[1] = b (an element `_`
 * keeps its place).
 *
 * Operands are resolved before the call: dst, src, pred_dst, src_negated, the
 * counts and the guard are set. The family sets run, op_class, flops, detail.
 *
 * @return true when the family knows the instruction with all its modifiers
 */
typedef bool simt_decode_family(const struct simt_decoding *decoding,
                                struct simt_instruction *instruction);

/** Integer and logic: add sub mul mad mul24 sad div rem abs neg min max and or xor not cnot lop3
 *  shl shr shf bfe bfi brev clz popc bfind fns prmt dp4a dp2a addc subc madc (the carry
 *  lives in warp->carry), vadd-like video instructions excluded. */
simt_decode_family simt_decode_integer;
/** fp32 and fp64 arithmetic: add sub mul fma mad div rcp sqrt rsqrt min max abs neg copysign
 *  testp ex2 lg2 sin cos tanh, with rounding modes, ftz and sat. */
simt_decode_family simt_decode_float;
/** f16, f16x2, bf16, bf16x2 arithmetic and comparison. */
simt_decode_family simt_decode_half;
/** cvt in all forms, cvt.pack, mov of registers (pack and unpack of vectors too). */
simt_decode_family simt_decode_convert;
/** setp set selp slct, and or xor not on predicates. */
simt_decode_family simt_decode_compare;
/** ld, st, ldu, atom, red, cvta, isspacep, prefetch, fence and membar; params and constants too.
 *  An address operand is src[n] = row of the base (8-byte lanes, or 4-byte for 32-bit addresses)
 *  with detail-free `immediate` = byte offset. */
simt_decode_family simt_decode_memory;

#endif
