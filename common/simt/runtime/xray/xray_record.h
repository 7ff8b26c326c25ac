/**
 * @file xray_record.h
 * @brief What an x-ray page shows: launches, each with its source lines, kept until the process
 * ends.
 *
 * A kernel is recorded at its first launch of each shape (grid, block and dynamic shared memory).
 * Everything is copied, so modules may be unloaded afterwards.
 */
#ifndef WARPBOOK_COMMON_SIMT_RUNTIME_XRAY_XRAY_RECORD_H_
#define WARPBOOK_COMMON_SIMT_RUNTIME_XRAY_XRAY_RECORD_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/simt/core/launch/launch.h"
#include "common/simt/memory/counters.h"
#include "common/simt/memory/xray.h"
#include "common/simt/runtime/gpu/gpu.h"
#include "common/simt/runtime/gpu/model.h"

enum {
    XRAY_LAUNCHES = 64, /**< recorded at most; later ones are only counted */
    XRAY_REQUESTS = 4   /**< drawn of one line at most: those that are furthest from the least */
};

/** Why a warp does not go on, in the words of NVIDIA's profilers where they have one. */
enum xray_stall {
    XRAY_STALL_ISSUE,  /**< selected, not selected: it issues, or others do */
    XRAY_STALL_MATH,   /**< math pipe throttle: fp32, fp64, special functions, tensor cores */
    XRAY_STALL_L1,     /**< LG and MIO throttle: L1 and shared memory are busy */
    XRAY_STALL_L2,     /**< long scoreboard: L2, or atomics on one of its lines, are busy */
    XRAY_STALL_MEMORY, /**< long scoreboard: device memory is busy */
    XRAY_STALL_LOAD,   /**< long scoreboard: latency of loads of global or local memory */
    XRAY_STALL_SHARED, /**< short scoreboard: latency of shared memory and shuffles */
    XRAY_STALL_FIXED,  /**< wait: latency of arithmetic and branches */
    XRAY_STALL_BARRIER,
    XRAY_STALL_COUNT
};

/** A request that the page draws. */
struct xray_access {
    struct simt_xray_request request;
    uint64_t requests; /**< that its instruction made in all */
};

/** One source line of one launch. */
struct xray_line {
    size_t file; /**< in xray.files; XRAY_NO_FILE: instructions without a line */
    uint32_t line;
    uint64_t instructions, lanes;      /**< warp instructions; active lanes, summed */
    struct simt_site sum;              /**< of its memory instructions; `source` is not used */
    double demand[SIMT_STATION_COUNT]; /**< what it asks of each unit, in that unit's own measure */
    double wait[SIMT_WAIT_COUNT], loads; /**< see simt_xray_instruction */
    double stall[XRAY_STALL_COUNT];      /**< share of the warps' time */
    struct xray_access accesses[XRAY_REQUESTS];
    size_t access_count;
};

#define XRAY_NO_FILE SIZE_MAX

/** What the runtime knows of a launch beside its counts. */
struct xray_facts {
    const char *kernel; /**< as the source spells it; copied */
    uint32_t grid[3], block[3];
    size_t static_shared, dynamic_shared, local_bytes; /**< of a block; local: of a thread */
    uint32_t registers;                                /**< of a thread */
    size_t fits; /**< blocks that a multiprocessor has room for */
    size_t by_blocks, by_threads, by_shared, by_registers; /**< the same if only that counted */
    struct simt_explanation time;
    struct simt_placement placement; /**< with periods; xray_add() takes it */
};

struct xray_launch {
    char *kernel;
    struct xray_facts facts; /**< its `kernel` is the one above */
    uint64_t launches;       /**< of this shape, the recorded one included */
    struct simt_counters counters;
    struct xray_line *lines; /**< (line_count) */
    size_t line_count;
    double stall[XRAY_STALL_COUNT]; /**< shares of the warps' time; the rest of 1 is
                                       facts.time.block */
    struct xray_launch *next;       /**< in the order of first launches */
};

/** Begins as zeros. */
struct xray {
    char **files; /**< (file_count): names of sources, as the compiler had them */
    size_t file_count;
    struct xray_launch *launches;
    size_t launch_count;
    uint64_t dropped; /**< launches of shapes beyond XRAY_LAUNCHES */
};

/** @return true when a launch is to be recorded; otherwise it has been counted. */
bool xray_wants(struct xray *xray, const struct xray_facts *facts);

/** Records a launch that is wanted; without memory for it, it is left out. */
void xray_add(struct xray *xray, const struct xray_facts *facts,
              const struct simt_counters *counters, const struct simt_sites *sites,
              const struct simt_xray *raw);

/** Frees all and makes it zeros. */
void xray_free(struct xray *xray);

#endif
