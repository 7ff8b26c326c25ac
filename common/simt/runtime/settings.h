/**
 * @file settings.h
 * @brief The emulator's settings, from environment variables.
 *
 *     SIMT_CHECK=WORD,...            full; off, bounds, sampled, or a word for each check (-word:
 *                                    without)
 *     SIMT_THREADS=N                 as many as the machine has
 *     SIMT_INSTRUCTION_LIMIT=N       warp instructions a block may take; 0: no limit
 *     SIMT_GPU=NAME                  h200
 *     SIMT_WAIT_SECONDS=N            10: how long work may wait for that of other devices
 *     SIMT_DEVICES=N                 1, to 8: emulated GPUs
 *     SIMT_REPORT=text|json|sarif    none
 *     SIMT_REPORT_FILE=FILE          none: the report goes to stderr
 *     SIMT_XRAY=FILE                 none: the HTML page to write at the end
 *     SIMT_SEED=N                    0; draws the warps whose chains of waiting are followed, and
 *                                    the blocks that are checked where that is `sampled`
 *     SIMT_ERROR_EXITCODE=N          0: the program's own status, also where simt found something
 */
#ifndef WARPBOOK_COMMON_SIMT_RUNTIME_SETTINGS_H_
#define WARPBOOK_COMMON_SIMT_RUNTIME_SETTINGS_H_

#include <limits.h>
#include <stdint.h>

#include "common/base/status.h"
#include "common/simt/memory/run.h"
#include "common/simt/runtime/gpu/gpu.h"

enum simt_report_format {
    SIMT_REPORT_NONE,
    SIMT_REPORT_TEXT,
    SIMT_REPORT_JSON,
    SIMT_REPORT_SARIF /**< findings, not counts */
};

struct simt_settings {
    enum simt_check check;
    int threads;
    uint64_t instruction_limit;
    const struct simt_gpu *gpu;
    enum simt_report_format report;
    uint64_t seed;
    double wait_seconds; /**< for kernels and collectives of several devices that wait for others */
    int devices;         /**< 1 to SIMT_MOST_DEVICES */
    char xray[PATH_MAX]; /**< absolute; empty: no page */
    char report_file[PATH_MAX]; /**< absolute; empty: the report goes to stderr */
};

/** @return STATUS_OK, or STATUS_INVALID_ARGUMENT with a line that names the variable. */
MUST_CHECK enum status simt_settings_read(struct simt_settings *settings, struct error *error);

/** Reads SIMT_ERROR_EXITCODE, which concerns the program's process and not the device's.
 * @param code receives the exit status of a program in which simt found something; 0: its own */
MUST_CHECK enum status simt_error_exitcode(int *code, struct error *error);

#endif
