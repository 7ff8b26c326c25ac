/**
 * @file xray_stalls.h
 * @brief Divides the modelled time of a launch among its source lines.
 *
 * The model knows how long a warp of the launch stays at each unit, and how long it waits for its
 * own results. A unit's share goes to lines by what they ask of it; waiting goes to the line that
 * waits, not to the line of the load, as in a sampling profiler.
 */
#ifndef WARPBOOK_COMMON_SIMT_RUNTIME_XRAY_XRAY_STALLS_H_
#define WARPBOOK_COMMON_SIMT_RUNTIME_XRAY_XRAY_STALLS_H_

#include "common/simt/runtime/xray/xray_record.h"

/** Adds what an instruction asks of each unit, and what was waited for at it, to its line.
 *  @param site its counts of memory; NULL: none */
void xray_add_demand(struct xray_line *line, const struct simt_xray_instruction *record,
                     const struct simt_site *site);

/** Sets the shares of a launch and of its lines, whose demands are complete. */
void xray_set_stalls(struct xray_launch *launch);

#endif
