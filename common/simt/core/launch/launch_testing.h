/**
 * @file launch_testing.h
 * @brief For tests: a module from PTX text, its device memory, and launches with full checks.
 */
#ifndef WARPBOOK_COMMON_SIMT_CORE_LAUNCH_LAUNCH_TESTING_H_
#define WARPBOOK_COMMON_SIMT_CORE_LAUNCH_LAUNCH_TESTING_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/simt/core/launch/launch.h"
#include "common/testing/fixture.h"

/** A module, its memory, and the counters and fault of the last launch. */
struct launch_testing {
    struct simt_memory *memory;
    struct simt_global_shadow *shadow;
    const struct ptx_module *ptx; /**< the module's, as parsed */
    struct simt_module *module;
    struct simt_counters counters;
    struct simt_fault fault;
};

/** A test with a module of the PTX file @p path, which its body sees as `t`. */
#define LAUNCH_TEST(suite, name, path)                                                \
    FIXTURE_TEST(suite, name, struct launch_testing, t, launch_testing_open(t, path), \
                 launch_testing_close(t))

/** Sizes and parameters of a launch; extents left at 0 count as 1. */
struct testing_launch {
    const char *kernel;
    uint32_t grid[3], threads[3];
    uint32_t cluster[3];                  /**< 0: what the kernel says */
    size_t shared;                        /**< bytes of dynamic shared memory */
    bool cooperative;                     /**< all blocks are there at the same time */
    bool bounds_only;                     /**< SIMT_CHECK_BOUNDS in place of full checks */
    bool sampled;                         /**< SIMT_CHECK_SAMPLED, likewise */
    const void *parameters;               /**< laid out as the kernel declares them */
    const struct simt_textures *textures; /**< NULL: none */
    int host_threads;                     /**< 0 counts as 1 */
    uint32_t processors;                  /**< of the GPU; 0 counts as 1 */
    uint64_t limit;  /**< warp instructions of a block; 0 counts as four millions */
    uint64_t seed;   /**< draws the warps that are followed, and the blocks that are checked */
    uint64_t number; /**< of the launch, for what the seed draws */
    struct simt_block_costs *costs; /**< receives what blocks cost; NULL: not wanted */
    const struct simt_alone *alone; /**< to follow blocks that wait for blocks; NULL: none are */
    uint64_t *waited;               /**< receives what that found; NULL: not wanted */
    struct simt_sites *sites;       /**< receive counts by site; NULL: none */
    struct simt_xray *xray;         /**< receives the record; NULL: none */
};

/** A launch for the functions below: `LAUNCH(.kernel = "saxpy", .threads = {64})`. */
#define LAUNCH(...) (&(const struct testing_launch){__VA_ARGS__})

/** Loads the PTX file @p path; launch_testing_close() on failure too. @return the first error. */
MUST_CHECK enum status launch_testing_load(struct launch_testing *t, const char *path,
                                           struct error *error);

/** @return false, and the test has failed, when the module cannot be loaded. */
bool launch_testing_open(struct launch_testing *t, const char *path);

/** The same for a module of the PTX @p text; launch_testing_close() on failure too. */
bool launch_testing_open_text(struct launch_testing *t, const char *text);

void launch_testing_close(struct launch_testing *t);

/** @return address of @p bytes bytes of new device memory with a copy of @p host; NULL: never
 *  written. */
uint64_t launch_testing_upload(struct launch_testing *t, const void *host, size_t bytes);

/** @return host pointer to the memory at @p address. */
const void *launch_testing_result(const struct launch_testing *t, uint64_t address);

/** Runs a kernel. @return true when no fault was found; a launch that is refused fails the test */
bool launch_testing_run(struct launch_testing *t, const struct testing_launch *launch);

/** Runs a kernel; a fault fails the test, with its whole message. @return true when none was found
 */
bool launch_testing_run_clean(struct launch_testing *t, const struct testing_launch *launch);

/** The same two for one block of @p threads threads. */
bool launch_testing_block(struct launch_testing *t, const char *kernel, uint32_t threads,
                          const void *parameters);
bool launch_testing_block_clean(struct launch_testing *t, const char *kernel, uint32_t threads,
                                const void *parameters);

/**
 * @brief Runs a kernel with stdout in a file; a fault fails the test.
 * @param text receives what was printed, as a string of at most @p size - 1 characters
 */
void launch_testing_run_printing(struct launch_testing *t, const struct testing_launch *launch,
                                 char *text, size_t size);

/** @return the fault as users see it; memory that the caller frees. */
char *launch_testing_message(const struct simt_fault *fault);

#endif
