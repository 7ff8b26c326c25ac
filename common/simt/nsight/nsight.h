/**
 * @file nsight.h
 * @brief What NVIDIA's Nsight Compute measured of kernels, read from the text that `ncu` exports.
 *
 * An export is the raw page, which has a column for each metric and a row for each launch, followed
 * by the source page, which has the counts of each source line:
 *
 *     ncu --import report.ncu-rep --page raw --csv --print-units base
 *     ncu --import report.ncu-rep --page source --csv --print-source cuda,sass
 *
 * Written for version 2025.3. The text is not trusted: whatever it holds, reading it ends with a
 * struct or with one line.
 */
#ifndef WARPBOOK_COMMON_SIMT_NSIGHT_NSIGHT_H_
#define WARPBOOK_COMMON_SIMT_NSIGHT_NSIGHT_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "common/base/status.h"

#ifdef __cplusplus
extern "C" {
#endif

enum {
    NSIGHT_LAUNCHES = 64,     /**< kept at most; later ones are only counted */
    NSIGHT_FILES = 256,       /**< sources */
    NSIGHT_LINES = 100000,    /**< of all launches */
    NSIGHT_MOST_LINE = 100000 /**< number of a source line */
};

/** Metrics of a launch. X(name, metric of the raw page, what it counts) */
#define NSIGHT_METRICS(X)                                                                     \
    X(TIME, "gpu__time_duration.sum", SECONDS)                                                \
    X(INSTRUCTIONS, "smsp__inst_executed.sum", COUNT)                                         \
    X(LANES, "smsp__thread_inst_executed.sum", COUNT)                                         \
    X(FADD, "smsp__sass_thread_inst_executed_op_fadd_pred_on.sum", COUNT)                     \
    X(FMUL, "smsp__sass_thread_inst_executed_op_fmul_pred_on.sum", COUNT)                     \
    X(FFMA, "smsp__sass_thread_inst_executed_op_ffma_pred_on.sum", COUNT)                     \
    X(FFMA_A_CYCLE, "sm__sass_thread_inst_executed_op_ffma_pred_on.sum.peak_sustained", RATE) \
    X(CLOCK, "sm__cycles_elapsed.avg.per_second", HERTZ)                                      \
    X(DRAM_READ, "dram__bytes_read.sum", BYTES)                                               \
    X(DRAM_WRITTEN, "dram__bytes_write.sum", BYTES)                                           \
    X(DRAM_A_CYCLE, "dram__bytes.sum.peak_sustained", BYTES)                                  \
    X(DRAM_CLOCK, "dram__cycles_elapsed.avg.per_second", HERTZ)                               \
    X(L2_SECTORS, "lts__t_sectors.sum", COUNT)                                                \
    X(L2_A_CYCLE, "lts__t_bytes.sum.peak_sustained", BYTES)                                   \
    X(L2_CLOCK, "lts__cycles_elapsed.avg.per_second", HERTZ)                                  \
    X(LOAD_REQUESTS, "l1tex__t_requests_pipe_lsu_mem_global_op_ld.sum", COUNT)                \
    X(LOAD_SECTORS, "l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum", COUNT)                  \
    X(LOAD_HITS, "l1tex__t_sectors_pipe_lsu_mem_global_op_ld_lookup_hit.sum", COUNT)          \
    X(STORE_SECTORS, "l1tex__t_sectors_pipe_lsu_mem_global_op_st.sum", COUNT)                 \
    X(LOCAL_LOADS, "l1tex__t_sectors_pipe_lsu_mem_local_op_ld.sum", COUNT)                    \
    X(LOCAL_STORES, "l1tex__t_sectors_pipe_lsu_mem_local_op_st.sum", COUNT)                   \
    X(WAVEFRONTS, "l1tex__data_pipe_lsu_wavefronts_mem_shared.sum", COUNT)                    \
    X(CONFLICTS, "l1tex__data_bank_conflicts_pipe_lsu_mem_shared.sum", COUNT)                 \
    X(WARPS, "sm__warps_active.avg.per_cycle_active", COUNT)                                  \
    X(MULTIPROCESSORS, "launch__sm_count", COUNT)                                             \
    X(MOST_WARPS, "device__attribute_max_warps_per_multiprocessor", COUNT)                    \
    X(REGISTERS, "launch__registers_per_thread", COUNT)                                       \
    X(STATIC_SHARED, "launch__shared_mem_per_block_static", BYTES)                            \
    X(DYNAMIC_SHARED, "launch__shared_mem_per_block_dynamic", BYTES)                          \
    X(BY_BLOCKS, "launch__occupancy_limit_blocks", COUNT)                                     \
    X(BY_REGISTERS, "launch__occupancy_limit_registers", COUNT)                               \
    X(BY_SHARED, "launch__occupancy_limit_shared_mem", COUNT)                                 \
    X(BY_THREADS, "launch__occupancy_limit_warps", COUNT)

enum nsight_metric {
#define NSIGHT_ENUMERATOR(name, metric, kind) NSIGHT_##name,
    NSIGHT_METRICS(NSIGHT_ENUMERATOR)
#undef NSIGHT_ENUMERATOR
        NSIGHT_METRIC_COUNT
};

/** Why a warp that was sampled did not go on: the profiler's reasons, those of a kind together. */
enum nsight_stall {
    NSIGHT_STALL_ISSUE,
    NSIGHT_STALL_MATH,
    NSIGHT_STALL_L1,
    NSIGHT_STALL_FETCH,
    NSIGHT_STALL_OTHER,
    NSIGHT_STALL_LOAD,
    NSIGHT_STALL_SHARED,
    NSIGHT_STALL_FIXED,
    NSIGHT_STALL_BARRIER,
    NSIGHT_STALL_COUNT
};

/** One source line of one launch. */
struct nsight_line {
    size_t file; /**< in nsight_report.files */
    uint32_t line;
    double instructions, lanes;          /**< warp instructions; threads that ran them, summed */
    double sectors, least_sectors;       /**< of global memory */
    double wavefronts, least_wavefronts; /**< of shared memory */
    double samples[NSIGHT_STALL_COUNT];
    char *text; /**< the line as the export has it; NULL: the profiler did not find the source */
};

struct nsight_launch {
    char *kernel;
    uint32_t grid[3], block[3];
    double metrics[NSIGHT_METRIC_COUNT]; /**< bytes, seconds, hertz or a count; NAN: not there */
    bool tensor;                         /**< it ran instructions of tensor cores */
    struct nsight_line *lines;           /**< (line_count) */
    size_t line_count, line_capacity;
};

/** Begins as zeros. */
struct nsight_report {
    char *gpu;    /**< "NVIDIA H100 80GB HBM3" */
    char **files; /**< (file_count): names of sources, without the folder that Bazel compiled in */
    size_t file_count, file_capacity;
    struct nsight_launch *launches; /**< (launch_count) */
    size_t launch_count, launch_capacity;
    size_t line_count; /**< of all launches */
    uint64_t dropped;  /**< launches beyond NSIGHT_LAUNCHES */
};

/**
 * @brief Reads an export: raw page, then source page; a second export may follow.
 *
 * The source page may be missing or may lack a launch: then that launch has no lines.
 *
 * @param text  changed in the process
 * @param name  of the file, for messages
 * @return STATUS_OK; STATUS_BAD_FORMAT, with the line's number and what is unexpected there;
 *         STATUS_TOO_LONG; STATUS_OUT_OF_MEMORY. The caller frees the report in any case.
 */
MUST_CHECK enum status nsight_read(struct nsight_report *report, char *text, size_t size,
                                   const char *name, struct error *error);

/** Frees all and makes it zeros. */
void nsight_free(struct nsight_report *report);

/** Prints the data of a report's page: one JSON object, which holds no '<'. The report has a
 * launch. */
void nsight_print_json(const struct nsight_report *report, FILE *stream);

/** Writes the x-ray page of a report. @return what page_write() does */
MUST_CHECK enum status nsight_write(const struct nsight_report *report, const char *path,
                                    struct error *error);

/**
 * @brief Exports a .ncu-rep by `ncu`, or reads a text; then writes the page.
 * @return STATUS_OK; what nsight_read(), file_read() and page_write() do; STATUS_NOT_FOUND: no ncu
 */
MUST_CHECK enum status nsight_convert(const char *from, const char *to, struct error *error);

/**
 * @brief Runs a program under `ncu` and writes the page: each kernel's first launch of each grid,
 *        block and amount of shared memory.
 * @param arguments of the program, its name first, NULL behind the last; it finds
 *                  $WARPBOOK_PROFILED set
 * @return STATUS_OK; STATUS_NOT_FOUND: no ncu; STATUS_UNSUPPORTED: the driver does not let this
 * user read counters; STATUS_DEVICE: ncu or the program failed, or no kernel ran; what
 *         nsight_convert() does
 */
MUST_CHECK enum status nsight_profile(char *const *arguments, const char *to, struct error *error);

/** @return STATUS_OK; STATUS_NOT_FOUND, with a line that says where ncu comes from. */
MUST_CHECK enum status nsight_find(char *path, size_t size, struct error *error);

#ifdef __cplusplus
}
#endif

#endif
