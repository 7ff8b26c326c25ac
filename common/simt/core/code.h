/**
 * @file code.h
 * @brief A function decoded for running: instructions, the layout of its frame, its control flow.
 */
#ifndef WARPBOOK_COMMON_SIMT_CORE_CODE_H_
#define WARPBOOK_COMMON_SIMT_CORE_CODE_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/status.h"
#include "common/simt/core/exec.h"
#include "common/simt/ptx/ptx.h"

/** Bytes of one row. */
enum { SIMT_ROW32 = 4 * SIMT_LANES, SIMT_ROW64 = 8 * SIMT_LANES };

/** Predicates that every frame has: constants. Those of the function follow. */
enum {
    SIMT_PREDICATE_FALSE,
    SIMT_PREDICATE_TRUE,
    SIMT_PREDICATE_IN_CLUSTER, /**< %is_explicit_cluster */
    SIMT_FIRST_PREDICATE
};

/** What the scheduler carries out itself; simt_instruction.flow. */
enum simt_flow {
    SIMT_FLOW_NONE,
    SIMT_FLOW_BRANCH,       /**< `immediate`: target */
    SIMT_FLOW_BRANCH_TABLE, /**< brx.idx: src[0] is the row of the index */
    SIMT_FLOW_CALL,         /**< `immediate`: index into simt_code.calls */
    SIMT_FLOW_RETURN,
    SIMT_FLOW_EXIT,
    SIMT_FLOW_BARRIER,   /**< detail: see enum simt_barrier_detail */
    SIMT_FLOW_WARP_SYNC, /**< waits for the lanes in row src[detail[0]], or for all of the warp when
                              detail[0] is SIMT_ALL_LANES; then runs the handler */
    SIMT_FLOW_WARPGROUP, /**< the same, once the other warps of the warpgroup have executed as many
                              wgmma */
    SIMT_FLOW_POLL,      /**< runs the handler; lanes whose pred_dst[0] stays false wait for others,
                              which get their turn (no predicate: always) */
    SIMT_FLOW_TRAP,
    SIMT_FLOW_CLOCK /**< reads a clock: detail[0] is enum simt_clock, detail[1] whether it is wide
                     */
};

/** What a kernel can read the time from. */
enum simt_clock {
    SIMT_CLOCK_CYCLES,      /**< %clock64, and %clock: its low half */
    SIMT_CLOCK_CYCLES_HIGH, /**< %clock_hi */
    SIMT_CLOCK_NANOSECONDS, /**< %globaltimer, %globaltimer_lo */
    SIMT_CLOCK_NANOSECONDS_HIGH
};

/** detail[0] of a warp-wide operation that names no lanes. */
#define SIMT_ALL_LANES UINT32_MAX

/**
 * detail of SIMT_FLOW_BARRIER. src[0] is the row of the barrier's number, src[1] that of the
 * count of threads where there is one; the last source of bar.red is a predicate.
 */
enum simt_barrier_detail {
    SIMT_BARRIER_COUNTED, /**< there is a count */
    SIMT_BARRIER_MODE,    /**< enum simt_barrier_mode */
    SIMT_BARRIER_ALIGNED  /**< all lanes of a warp come together */
};

/** Number of barrier.cluster: behind those that programs number. */
enum { SIMT_CLUSTER_BARRIER = 16 };

enum simt_barrier_mode {
    SIMT_BARRIER_SYNC,
    SIMT_BARRIER_ARRIVE, /**< counts its threads and does not wait */
    SIMT_BARRIER_POPC,
    SIMT_BARRIER_AND,
    SIMT_BARRIER_OR
};

/** A row of the frame that is filled when the frame starts. */
struct simt_fill {
    uint32_t offset;
    bool wide;       /**< 8-byte lanes */
    uint8_t special; /**< enum simt_special, or 0: the constant `value` */
    uint64_t value;
};

/** Special registers that are rows. */
enum simt_special {
    SIMT_CONSTANT_VALUE,
    SIMT_TID_X,
    SIMT_TID_Y,
    SIMT_TID_Z,
    SIMT_NTID_X,
    SIMT_NTID_Y,
    SIMT_NTID_Z,
    SIMT_CTAID_X,
    SIMT_CTAID_Y,
    SIMT_CTAID_Z,
    SIMT_NCTAID_X,
    SIMT_NCTAID_Y,
    SIMT_NCTAID_Z,
    SIMT_SMID,
    SIMT_NSMID,
    SIMT_LANEID,
    SIMT_WARPID,
    SIMT_NWARPID,
    SIMT_LANEMASK_EQ,
    SIMT_LANEMASK_LT,
    SIMT_LANEMASK_LE,
    SIMT_LANEMASK_GT,
    SIMT_LANEMASK_GE,
    SIMT_DYNAMIC_SHARED,
    SIMT_TOTAL_SHARED,
    SIMT_LOCAL_ADDRESS,   /**< of a local variable: `value` bytes from the frame's local memory */
    SIMT_ENVREG1,         /**< grid.sync(): high half of the address of its workspace */
    SIMT_ENVREG2,         /**< the low half */
    SIMT_RESERVED_SHARED, /**< `value` bytes into the shared memory that the system reserves */
    SIMT_CLUSTERID_X,
    SIMT_CLUSTERID_Y,
    SIMT_CLUSTERID_Z,
    SIMT_NCLUSTERID_X,
    SIMT_NCLUSTERID_Y,
    SIMT_NCLUSTERID_Z,
    SIMT_CLUSTER_CTAID_X,
    SIMT_CLUSTER_CTAID_Y,
    SIMT_CLUSTER_CTAID_Z,
    SIMT_CLUSTER_NCTAID_X,
    SIMT_CLUSTER_NCTAID_Y,
    SIMT_CLUSTER_NCTAID_Z,
    SIMT_CLUSTER_RANK,
    SIMT_CLUSTER_SIZE
};

/** Bytes of shared memory behind the block's own that the system reserves; zeros at first. */
enum { SIMT_RESERVED_BYTES = 1024, SIMT_RESERVED_ALIGNMENT = 128 };

/** Storage of a .param variable of a device function or a call: words of 32 lanes in the frame. */
struct simt_parameter {
    const char *name;
    uint32_t offset; /**< of its first row32 */
    uint32_t words;
};

/** One call site. */
struct simt_call {
    const char *callee; /**< NULL: through the pointer in row `pointer` */
    uint32_t pointer;
    const struct simt_code
        *code;           /**< set once all functions are decoded; NULL: a system function */
    uint32_t *arguments; /**< rows of the caller's .param areas, in order */
    uint32_t argument_count;
    uint32_t *results;
    uint32_t result_count;
};

/**
 * Which of the function's PTX registers instructions read and write. Of instruction n: reads are
 * list[start[2n] .. start[2n+1]-1], writes list[start[2n+1] .. start[2n+2]-1]; numbers are indices
 * into function->registers. A guard is read; so is what a guarded instruction writes, which may
 * keep its value.
 */
struct simt_uses {
    uint32_t *start; /**< (2 * instructions + 1) */
    uint32_t *list;
};

/** What the instructions before one count for, in all: the difference of two of these is what those
 *  in between count for. */
struct simt_sums {
    uint32_t classes[SIMT_CLASS_COUNT]; /**< warp instructions */
    uint32_t machine;                   /**< machine instructions */
    uint32_t flops;                     /**< of a lane */
    uint64_t spills;                    /**< 256ths of accesses, see struct simt_instruction */
};

struct simt_code {
    const struct ptx_function *function;
    struct simt_instruction *instructions;
    size_t count;
    struct simt_sums *sums;  /**< (count + 1) */
    uint32_t first;          /**< number of instruction 0 among those of the kernel's functions */
    uint32_t *rank;          /**< (count): running order of the block an instruction belongs to */
    bool *leader;            /**< (count): control can arrive here from elsewhere */
    uint32_t row_bytes;      /**< of a frame */
    uint32_t register_bytes; /**< the part of it that starts as zeros */
    uint32_t *unset;         /**< (unset_count) PTX registers that may be read before the function
                                  writes them; NULL: not known, any may */
    size_t unset_count;
    uint32_t predicates;
    uint32_t *cells; /**< by PTX register: its cell, see memory/undefined.h */
    struct simt_fill *fills;
    size_t fill_count;
    struct simt_parameter *parameters; /**< own parameters, results, then those of call sequences */
    size_t parameter_count;
    struct simt_call *calls;
    size_t call_count;
    uint64_t address;                /**< value of a pointer to the function */
    struct simt_code *const *linked; /**< all functions of the kernel, for calls through pointers */
    size_t linked_count;
    struct simt_origin *origins; /**< by instruction; those without a variable are not used */
    uint32_t **lists;            /**< sources of instructions that have many */
    size_t list_count;
    size_t static_shared_bytes; /**< of this function alone */
    size_t local_bytes;         /**< of one thread, this function alone */
    struct simt_uses uses;
    uint32_t estimated_registers;
    bool reserves_shared; /**< asks where the reserved shared memory is */
    bool order_sensitive; /**< results can depend on the order of blocks: run them one by one */
};

/** Where a symbol of the module lives. */
enum simt_symbol_kind {
    SIMT_SYMBOL_NONE,
    SIMT_SYMBOL_ADDRESS,
    SIMT_SYMBOL_SHARED,
    SIMT_SYMBOL_DYNAMIC_SHARED
};

/** Finds the address or offset of a symbol of the module. Provided by the module. */
struct simt_linker {
    void *context;
    /** Global and const: *address is the address; shared: the offset in the block's memory. */
    enum simt_symbol_kind (*find)(void *context, const char *symbol, uint64_t *address);
    size_t shared_base;    /**< where the function's own shared variables begin */
    size_t dynamic_shared; /**< where dynamic shared memory begins */
};

/** @return number of cells of a frame: those of its rows, then those of its predicates. */
static inline uint32_t simt_cell_count(const struct simt_code *code) {
    return code->row_bytes / SIMT_ROW32 + code->predicates;
}

/** Bytes that a function's own .shared variables take when they begin at @p base. */
size_t simt_shared_bytes(const struct ptx_function *function, size_t base);

/**
 * @brief Decodes one function.
 * @return STATUS_OK, STATUS_UNSUPPORTED naming the instruction and the source line,
 *         STATUS_BAD_FORMAT, STATUS_OUT_OF_MEMORY
 */
MUST_CHECK enum status simt_decode(struct simt_code **code, const struct ptx_module *module,
                                   const struct ptx_function *function,
                                   const struct simt_linker *linker, struct error *error);

void simt_code_free(struct simt_code *code);

/** Finds shared accesses that the assembler joins: sets simt_instruction.joined; after
 *  simt_order_blocks(). @return STATUS_OK or STATUS_OUT_OF_MEMORY */
MUST_CHECK enum status simt_join_accesses(struct simt_code *code);

/**
 * @brief Numbers the instructions that may reach memory, from @p first on.
 * @return the next number
 */
uint32_t simt_number_sites(struct simt_code *code, uint32_t first);

/** Orders the basic blocks: sets rank and leader. @return STATUS_OK or STATUS_OUT_OF_MEMORY */
MUST_CHECK enum status simt_order_blocks(struct simt_code *code);

/** shfl, vote, match, redux, activemask, elect, bar.warp.sync. */
simt_decode_family simt_decode_warp;
/** mma.sync and wmma.mma. */
simt_decode_family simt_decode_mma;
/** mma.sync.m8n8k4 of f16, as Volta has it. */
simt_decode_family simt_decode_volta_mma;
/** wmma.load and wmma.store. */
simt_decode_family simt_decode_wmma_memory;
/** ldmatrix, stmatrix, movmatrix. */
simt_decode_family simt_decode_matrix;
/** cp.async with its groups, and its arrival at an mbarrier. */
simt_decode_family simt_decode_async_copy;
/** mbarrier.*. */
simt_decode_family simt_decode_mbarrier;
/** cp.async.bulk and its groups. */
simt_decode_family simt_decode_bulk_copy;
/** wgmma.*. */
simt_decode_family simt_decode_wgmma;
/** mapa, getctarank, setmaxnreg. */
simt_decode_family simt_decode_cluster;

/** st.async and red.async. */
simt_decode_family simt_decode_remote_store;

/** tensormap.replace and tensormap.cp_fenceproxy. */
simt_decode_family simt_decode_tensormap;

/** barrier.cluster.arrive. */
simt_handler simt_run_cluster_arrive;
/** tex, tld4, txq and suq. */
simt_decode_family simt_decode_texture;
/** suld and sust. */
simt_decode_family simt_decode_surface;
/** vabsdiff4, and conversions to and from the 8-bit floats. */
simt_decode_family simt_decode_packed;

#endif
