/**
 * @file streaming_cache.h
 * @brief Where a cache of sinks and recent tokens has its rows (Xiao et al. 2023): for models that
 *        run operator by operator.
 *
 * A token sees the first `sinks` tokens of the text and the last `recent` ones, its own included.
 * Sinks have the cache's first rows, the others are a ring behind them. Keys are kept before rotary
 * embedding; their places among the tokens that are seen, by which they are rotated, are those of
 * up to three runs of rows.
 */
#ifndef WARPBOOK_COMMON_MODELS_STREAMING_CACHE_H_
#define WARPBOOK_COMMON_MODELS_STREAMING_CACHE_H_

#include <stddef.h>

/** Rows that follow each other and have places that do. */
struct streaming_run {
    size_t row, rows, place; /**< the first row, how many, and the first one's place */
};

struct streaming_cache {
    size_t seen; /**< tokens that the new one sees; its place is seen - 1 */
    size_t row;  /**< that it gets */
    struct streaming_run runs[3];
    size_t count; /**< of runs */
};

/** @return the cache at the token at @p position of a text. @param recent at least 1 */
struct streaming_cache streaming_cache_at(size_t sinks, size_t recent, size_t position);

#endif
