/**
 * @file sarif.h
 * @brief What simt has found, as SARIF 2.1.0: code hosts show it at the line.
 */
#ifndef WARPBOOK_COMMON_SIMT_RUNTIME_REPORT_SARIF_H_
#define WARPBOOK_COMMON_SIMT_RUNTIME_REPORT_SARIF_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "common/simt/memory/fault.h"

/** Findings in the order in which they were found. */
struct sarif {
    struct simt_fault *faults; /**< (count) */
    size_t count, capacity;
};

/** Keeps a fault, whose kernel has a readable name; without memory it is dropped. */
void sarif_add(struct sarif *sarif, const struct simt_fault *fault);

/** Prints the log, one JSON object on one line. */
void sarif_print(const struct sarif *sarif, FILE *stream);

void sarif_free(struct sarif *sarif);

#endif
