/**
 * @file pack.h
 * @brief Copies of operands in the order in which tiles read them.
 */
#ifndef WARPBOOK_COMMON_CPU_PACK_H_
#define WARPBOOK_COMMON_CPU_PACK_H_

#include <stddef.h>

/** A matrix in memory: element (r, c) is at[r * row + c * column]. */
struct strided {
    const float *at;
    size_t row, column;
};

/**
 * @brief to (depth, width) = from (depth, count), with zeros in the columns beyond @p count.
 * @param from  element (k, i) is column i of row k; one of its strides should be 1
 * @param count at most @p width
 */
void cpu_pack_panel(float *to, struct strided from, size_t depth, size_t count, size_t width);

#endif
