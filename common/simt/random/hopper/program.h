/**
 * @file program.h
 * @brief Random programs of Hopper's instructions: copies, products, barriers, clusters.
 *
 * One kernel (interpreter.cu) executes a table of operations, so that one compilation serves all
 * programs. A program is drawn from a seed and is right: whatever it reads has been waited for, and
 * all sums are of small integers, exact in every format. So a GPU's results are the only ones that
 * there are.
 *
 * Each block has BUFFERS buffers of BUFFER_BYTES of shared memory, and an mbarrier for each.
 */
#ifndef WARPBOOK_COMMON_SIMT_RANDOM_HOPPER_PROGRAM_H_
#define WARPBOOK_COMMON_SIMT_RANDOM_HOPPER_PROGRAM_H_

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum {
    RH_THREADS = 128,
    RH_BUFFERS = 6,
    RH_BUFFER_BYTES = 8192,
    RH_MAPS = 3,
    RH_MOST_OPERATIONS = 96,
    RH_ARGUMENTS = 14,
    RH_MOST_BLOCKS = 8,
    RH_INPUT_BYTES = 1 << 16,  /**< of each format */
    RH_OUTPUT_BYTES = 1 << 15, /**< of each block, and once more for all together */
    RH_OUT_COLUMNS = 128, /**< of the tensor that boxes are stored to: words, a plane a block */
    RH_OUT_ROWS = 64
};

/** What elements of the inputs are: small integers. */
enum rh_format { RH_F16, RH_BF16, RH_F32, RH_E4M3, RH_E5M2, RH_S8, RH_U8, RH_FORMATS };

/** Arguments of an operation, after its kind. `buffer` is the first one where there is one. */
enum rh_kind {
    RH_FILL,       /**< buffer, format, salt: threads write it */
    RH_LOAD,       /**< buffer, offset, source, bytes, copying warp */
    RH_LOAD_BOX,   /**< buffer, map, bytes, copying warp, place[5] */
    RH_MULTICAST,  /**< buffer, source, bytes, rank of the block that copies */
    RH_WAIT,       /**< buffer, parity: for its copies */
    RH_PRODUCT,    /**< variant, buffer of a, of b, a's bits above the start (low, high), step; b's;
                        steps, keeps sums */
    RH_HASH,       /**< buffer: all threads read it */
    RH_LDMATRIX,   /**< buffer, transposed */
    RH_STMATRIX,   /**< buffer, transposed, salt */
    RH_STORE,      /**< buffer, offset, destination, bytes: to the block's own output */
    RH_STORE_BOX,  /**< buffer, column, row */
    RH_REDUCE,     /**< buffer, offset, destination, bytes, operation: to all blocks' output */
    RH_PEER_COPY,  /**< buffer, its source, bytes, distance, operation (0: copies) */
    RH_PEER_STORE, /**< buffer, distance, salt: st.async */
    RH_PEER_READ,  /**< buffer, distance */
    RH_PEER_ATOMIC,  /**< buffer, distance, salt */
    RH_CLUSTER_SYNC, /**< */
    RH_ARRIVALS      /**< distance, parity: each thread arrives at a block's counter, and waits */
};

struct rh_operation {
    int32_t kind;
    int32_t arguments[RH_ARGUMENTS];
};

/** A tensor of an input, and its box. */
struct rh_map {
    int32_t format, rank, swizzle; /**< swizzle: CUtensorMapSwizzle */
    uint32_t sizes[5], box[5];     /**< elements */
    uint64_t strides[4];           /**< bytes */
};

struct rh_program {
    int32_t cluster, blocks; /**< blocks of a cluster; of the grid */
    int32_t count;
    struct rh_map maps[RH_MAPS];
    struct rh_operation operations[RH_MOST_OPERATIONS];
};

/** wgmma's forms: b is N columns; formats and where a comes from are in rh_variants. */
struct rh_variant {
    int32_t format_a, format_b;
    int32_t N;
    int32_t from_registers, transposed_a, transposed_b, negated;
};

enum { RH_VARIANTS = 34 };
extern const struct rh_variant rh_variants[RH_VARIANTS];

/** @return bytes of an element. */
uint32_t rh_bytes(enum rh_format format);

/** @return the bits of element @p i of an input of that format. */
uint32_t rh_element(enum rh_format format, uint32_t i);

/** What a program may be restricted to, to find what a device does not take. */
struct rh_limits {
    uint64_t family; /**< kinds of operations that are drawn together: 0 to RH_FAMILIES - 1 */
    uint64_t form;   /**< of wgmma, by its row in rh_variants */
};

enum { RH_FAMILIES = 8 };

/** Draws a program. @param limits numbers beyond their ranges: all */
void rh_generate(struct rh_program *program, uint64_t seed, const struct rh_limits *limits);

/**
 * @brief Runs a program on the current device.
 * @param checksum receives a sum of all that its threads computed and its blocks stored
 * @return NULL, or what failed
 */
const char *rh_run(const struct rh_program *program, uint64_t *checksum);

/** No program follows: frees what the device has. */
void rh_end(void);

#ifdef __cplusplus
}
#endif

#endif
