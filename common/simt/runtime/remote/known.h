/**
 * @file known.h
 * @brief A set of ranges of numbers: device memory that a program has, or its streams.
 */
#ifndef WARPBOOK_COMMON_SIMT_RUNTIME_REMOTE_KNOWN_H_
#define WARPBOOK_COMMON_SIMT_RUNTIME_REMOTE_KNOWN_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct known_range {
    uint64_t begin, bytes;
};

/** Ranges in order, none of which touches another one's numbers. */
struct known {
    struct known_range *ranges;
    size_t count, room;
};

/** Adds a range in place of all that it overlaps; out of memory: forgets these and adds nothing. */
void known_add(struct known *known, uint64_t begin, uint64_t bytes);

/** Removes the range that begins there, if there is one. @return whether there was */
bool known_remove(struct known *known, uint64_t begin);

/** @return whether a range begins there */
bool known_has(const struct known *known, uint64_t begin);

/** @return whether all @p bytes numbers from @p begin on lie in one range */
bool known_holds(const struct known *known, uint64_t begin, uint64_t bytes);

void known_clear(struct known *known);

#endif
