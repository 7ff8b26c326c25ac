/**
 * @file sample.h
 * @brief Which blocks of a launch are checked for races and copies where not all are
 *        (SIMT_CHECK_SAMPLED): a seed draws them, so that a program cannot tell.
 *
 * One of each 32 in a row; of fewer than eight at most one, in as large a share of the launches as
 * blocks are of eight. One launch of 64 is checked as a whole, for races between blocks, too.
 *
 * What is found in some blocks is a suspicion. Memory is brought back, and the launch is run again
 * with all blocks checked, as without sampling; only that decides.
 */
#ifndef WARPBOOK_COMMON_SIMT_CORE_LAUNCH_SAMPLE_H_
#define WARPBOOK_COMMON_SIMT_CORE_LAUNCH_SAMPLE_H_

#include <stdbool.h>
#include <stdint.h>

/** Zero-initialised: no block is checked beside what the launch says. */
struct simt_sample {
    bool some; /**< blocks are checked */
    uint64_t seed;
    uint64_t gangs; /**< clusters of the launch, or blocks where there are none */
};

/** @return true when launch number @p launch is checked as a whole. */
bool simt_sample_is_whole(uint64_t seed, uint64_t launch);

/** @return true when the blocks of a gang are checked. */
bool simt_sample_has(const struct simt_sample *sample, uint64_t gang);

#endif
