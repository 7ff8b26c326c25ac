/**
 * @file collective.h
 * @brief What libnccl.so.2 asks the emulated devices for. The numbers of kinds, types and
 *        operations are this interface's; those of types and of the first operations are NCCL's.
 *
 * The devices know the communicators, so ranks may be threads or processes that share devices.
 */
#ifndef WARPBOOK_COMMON_SIMT_NCCL_COLLECTIVE_H_
#define WARPBOOK_COMMON_SIMT_NCCL_COLLECTIVE_H_

#include <stdint.h>

enum { COLLECTIVE_MOST_RANKS = 64, COLLECTIVE_MOST_PARTS = 512 };

enum collective_kind {
    COLLECTIVE_ALL_REDUCE,
    COLLECTIVE_REDUCE,
    COLLECTIVE_BROADCAST,
    COLLECTIVE_ALL_GATHER,
    COLLECTIVE_REDUCE_SCATTER,
    COLLECTIVE_EXCHANGE /**< sends and receives of a group */
};

enum collective_type {
    COLLECTIVE_INT8,
    COLLECTIVE_UINT8,
    COLLECTIVE_INT32,
    COLLECTIVE_UINT32,
    COLLECTIVE_INT64,
    COLLECTIVE_UINT64,
    COLLECTIVE_FLOAT16,
    COLLECTIVE_FLOAT32,
    COLLECTIVE_FLOAT64,
    COLLECTIVE_BFLOAT16,
    COLLECTIVE_TYPES
};

enum collective_operation {
    COLLECTIVE_SUM,
    COLLECTIVE_PROD,
    COLLECTIVE_MAX,
    COLLECTIVE_MIN,
    COLLECTIVE_AVG,
    COLLECTIVE_PRE_MUL_SUM,
    COLLECTIVE_OPERATIONS
};

/** One send or receive. */
struct collective_part {
    uint64_t address, count;
    uint32_t type, peer, sends;
};

/** What one rank gives to an operation. */
struct collective {
    uint64_t communicator; /**< its number */
    uint32_t rank, kind, type, operation, root;
    uint32_t scalar_on_device; /**< of COLLECTIVE_PRE_MUL_SUM: `scalar` is its address */
    uint64_t scalar;           /**< else its bits */
    uint64_t send, receive;    /**< addresses; receive 0: a reduce, and this is not the root */
    uint64_t count;            /**< elements, as the function has them */
};

struct collective_exchange {
    uint64_t communicator;
    uint32_t rank, part_count;
    struct collective_part parts[COLLECTIVE_MOST_PARTS];
};

enum collective_state {
    COLLECTIVE_GOOD,
    COLLECTIVE_WAITS,   /**< not all ranks have come */
    COLLECTIVE_INVALID, /**< what all ranks say does not fit together */
    COLLECTIVE_REMOTE,  /**< a rank has gone, or did not come in time */
    COLLECTIVE_OUT_OF_MEMORY
};

/** A rank comes to a communicator; asked again until all have. */
struct collective_join {
    uint64_t key[2]; /**< of the unique id */
    uint32_t ranks, rank;
    int32_t device;
    uint32_t state;        /**< receives a collective_state */
    uint64_t communicator; /**< receives its number */
    uint32_t has_come;     /**< of this rank: asked before */
    char text[400];        /**< receives what is wrong */
};

/** A rank says how a communicator is to be split; asked again until all have. */
struct collective_split {
    uint64_t communicator;
    uint32_t rank;
    int32_t color, key;
    uint32_t has_come, state;
    uint64_t new_key[2];          /**< receives what the new one is joined with */
    uint32_t new_ranks, new_rank; /**< receives them */
    char text[400];
};

/** How a communicator is, seen from a rank. */
struct collective_status {
    uint64_t communicator;
    uint32_t rank;
    uint32_t ends; /**< 1: the rank leaves; 2: it gives up, and its operations fail */
    uint32_t state;
    char text[400];
};

const char *collective_type_name(uint32_t type);

/** @return bytes of an element; 0: no such type */
uint64_t collective_type_bytes(uint32_t type);

#endif
