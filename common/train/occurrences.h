/**
 * @file occurrences.h
 * @brief Builds struct train_occurrences from ids: which rows have which id.
 */
#ifndef WARPBOOK_COMMON_TRAIN_OCCURRENCES_H_
#define WARPBOOK_COMMON_TRAIN_OCCURRENCES_H_

#include <stddef.h>
#include <stdint.h>

#include "common/base/status.h"
#include "common/train/train_engine.h"

/** @return elements of a block that holds the arrays of any @p count ids; SIZE_MAX on overflow. */
size_t train_occurrences_most(size_t count);

/** @return elements of its block that these arrays take: its first ones, without gaps. */
size_t train_occurrences_used(const struct train_occurrences *occurrences);

/**
 * @brief Sorts the rows by their ids. Allocates nothing; in count + V steps.
 * @param occurrences receives the sizes, and pointers into @p block
 * @param block       host, train_occurrences_most(count)
 * @param counts      host, (V), scratch
 * @param ids         host, (count), each in [0, V)
 * @return STATUS_OK; STATUS_INVALID_ARGUMENT with a line that names the first id out of range;
 *         STATUS_TOO_LONG for more rows than an int32_t counts
 */
MUST_CHECK enum status train_occurrences_build(struct train_occurrences *occurrences,
                                               int32_t *block, int32_t *counts, const int32_t *ids,
                                               size_t count, size_t V, struct error *error);

/**
 * @return the same with pointers into a copy of the block.
 * @param block where its first train_occurrences_used() elements were copied to, resident memory
 */
struct train_occurrences train_occurrences_at(const struct train_occurrences *occurrences,
                                              const void *block);

#endif
