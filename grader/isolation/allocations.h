/**
 * @file allocations.h
 * @brief Counts what a worker's process allocates on a GPU, by whichever function of the runtime.
 *
 * The linker sends all calls of the functions below here (--wrap, see BUILD), those of
 * common/device and those of the submission alike; they are all with which the list of allowed
 * names (grader/symbols) lets a submission allocate, but for nodes of graphs: of these the runtime
 * itself says how much memory they have had.
 */
#ifndef WARPBOOK_GRADER_ISOLATION_ALLOCATIONS_H_
#define WARPBOOK_GRADER_ISOLATION_ALLOCATIONS_H_

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct allocations {
    uint64_t allocations, releases; /**< that succeeded */
};

/** @return what there were so far; a graph whose nodes took more memory than before is one more. */
struct allocations allocations_so_far(void);

#ifdef __cplusplus
}
#endif

#endif
