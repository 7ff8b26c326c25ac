#include <math.h>

#include "common/simt/runtime/gpu/model.h"
#include "common/simt/runtime/report/report.h"
#include "common/simt/runtime/xray/xray_page.h"

/** A named number of the data. */
struct field {
    const char *key;
    double value;
};

/* Counts below 2^53 are printed to the last digit. */
static void print_fields(const struct field *fields, size_t count, FILE *stream) {
    fputc('{', stream);
    for (size_t n = 0; n < count; n++) {
        bool whole = fields[n].value == floor(fields[n].value) && fabs(fields[n].value) < 0x1p53;
        fprintf(stream, "%s\"%s\":", n > 0 ? "," : "", fields[n].key);
        fprintf(stream, whole ? "%.0f" : "%.6g", fields[n].value);
    }
    fputc('}', stream);
}

#define PRINT_FIELDS(fields, stream) print_fields(fields, sizeof(fields) / sizeof *(fields), stream)

static void print_numbers(const double *numbers, size_t count, FILE *stream) {
    fputc('[', stream);
    for (size_t n = 0; n < count; n++) {
        fprintf(stream, "%s%.5g", n > 0 ? "," : "", numbers[n]);
    }
    fputc(']', stream);
}

static void print_device(const struct simt_gpu *gpu, FILE *stream) {
    struct simt_limits limits;
    simt_model_limits(&limits, gpu);
    const struct field fields[] = {
        {"multiprocessors", gpu->multiprocessors},
        {"clock_ghz", gpu->clock_khz / 1e6},
        {"warps", gpu->threads_per_multiprocessor / SIMT_LANES},
        {"flops_per_s", 2e3 * gpu->float_lanes * gpu->multiprocessors * gpu->clock_khz},
        {"tensor_flops_per_s", limits.tensor_flops},
        {"memory_bytes_per_s", limits.memory},
        {"l2_bytes_per_s", limits.l2},
    };
    fputs("\"device\":{\"key\":", stream);
    report_print_quoted(gpu->key, stream);
    fputs(",\"name\":", stream);
    report_print_quoted(gpu->name, stream);
    fputs(",\"figures\":", stream);
    PRINT_FIELDS(fields, stream);
    fputc('}', stream);
}

static void print_stalls(FILE *stream) {
    static const char *const NAMES[XRAY_STALL_COUNT][2] = {
        [XRAY_STALL_ISSUE] = {"issue", "issuing, or ready while others issue (selected, not "
                                       "selected)"},
        [XRAY_STALL_MATH] = {"math", "arithmetic units busy (math pipe throttle)"},
        [XRAY_STALL_L1] = {"L1 and shared", "L1 and shared memory busy (LG and MIO throttle)"},
        [XRAY_STALL_L2] = {"L2", "L2 busy (long scoreboard)"},
        [XRAY_STALL_MEMORY] = {"device memory", "device memory busy (long scoreboard)"},
        [XRAY_STALL_LOAD] = {"load latency", "latency of loads from global or local memory (long "
                                             "scoreboard)"},
        [XRAY_STALL_SHARED] = {"shared latency", "latency of shared memory and shuffles (short "
                                                 "scoreboard)"},
        [XRAY_STALL_FIXED] = {"arithmetic latency", "latency of arithmetic and branches (wait)"},
        [XRAY_STALL_BARRIER] = {"barrier", "latency of barriers"},
    };
    fputs("\"stalls\":[", stream);
    for (size_t s = 0; s < XRAY_STALL_COUNT; s++) {
        fputs(s > 0 ? ",[" : "[", stream);
        report_print_quoted(NAMES[s][0], stream);
        fputc(',', stream);
        report_print_quoted(NAMES[s][1], stream);
        fputc(']', stream);
    }
    fputc(']', stream);
}

/* Of global memory from where its allocation begins, so that two runs can be compared. */
static void print_access(const struct xray_access *access, FILE *stream) {
    static const char *const KINDS[] = {
        [SIMT_READ] = "load", [SIMT_WRITE] = "store", [SIMT_ATOMIC] = "atomic"};
    const struct simt_xray_request *r = &access->request;
    const char *space = r->space == PTX_GLOBAL   ? "global"
                        : r->space == PTX_SHARED ? "shared"
                                                 : "local";
    const struct field fields[] = {
        {"block", (double)r->block},
        {"warp", r->warp},
        {"mask", r->mask},
        {"bytes", r->bytes},
        {"first", (double)(r->first - r->allocation)},
        {"cost", r->cost},
        {"least", r->least},
        {"requests", (double)access->requests},
    };
    fprintf(stream, "{\"space\":\"%s\",\"kind\":\"%s\",\"of\":", space, KINDS[r->kind]);
    PRINT_FIELDS(fields, stream);
    fputs(",\"relative\":[", stream);
    for (size_t n = 0; n < SIMT_LANES; n++) {
        fprintf(stream, "%s%d", n > 0 ? "," : "", r->relative[n]);
    }
    fputs("]}", stream);
}

static void print_line(const struct xray_line *line, FILE *stream) {
    const struct field fields[] = {
        {"file", line->file == XRAY_NO_FILE ? -1 : (double)line->file},
        {"line", line->line},
        {"instructions", (double)line->instructions},
        {"lanes", (double)line->lanes},
        {"machine", line->demand[SIMT_STATION_ISSUE]},
        {"requests", (double)line->sum.requests},
        {"sectors", (double)line->sum.sectors},
        {"least_sectors", (double)line->sum.least_sectors},
        {"l1_hit_sectors", (double)line->sum.l1_hit_sectors},
        {"wavefronts", (double)line->sum.wavefronts},
        {"least_wavefronts", (double)line->sum.least_wavefronts},
    };
    fputs("{\"of\":", stream);
    PRINT_FIELDS(fields, stream);
    fputs(",\"stall\":", stream);
    print_numbers(line->stall, XRAY_STALL_COUNT, stream);
    fputs(",\"accesses\":[", stream);
    for (size_t n = 0; n < line->access_count; n++) {
        fputs(n > 0 ? "," : "", stream);
        print_access(&line->accesses[n], stream);
    }
    fputs("]}", stream);
}

static double finite_limit(size_t blocks) {
    return blocks == SIZE_MAX ? -1 : (double)blocks;
}

static void print_shape(const struct xray_facts *f, FILE *stream) {
    const struct field fields[] = {
        {"static_shared", (double)f->static_shared},
        {"dynamic_shared", (double)f->dynamic_shared},
        {"local_bytes", (double)f->local_bytes},
        {"registers", f->registers},
        {"fits", (double)f->fits},
        {"by_blocks", finite_limit(f->by_blocks)},
        {"by_threads", finite_limit(f->by_threads)},
        {"by_shared", finite_limit(f->by_shared)},
        {"by_registers", finite_limit(f->by_registers)},
        {"blocks_of_busiest", (double)f->time.blocks},
        {"resident", f->time.resident},
        {"ns", f->time.nanoseconds},
        {"overhead_ns", f->time.overhead},
        {"block_share", f->time.block},
    };
    fprintf(stream, "\"grid\":[%u,%u,%u],\"block\":[%u,%u,%u],\"of\":", f->grid[0], f->grid[1],
            f->grid[2], f->block[0], f->block[1], f->block[2]);
    PRINT_FIELDS(fields, stream);
    fputs(",\"busy\":", stream);
    print_numbers(f->time.busy, SIMT_STATION_COUNT, stream);
}

/* Multiprocessors with the same history: ends of its periods, and the blocks that are there. */
static void print_lane(const struct simt_lane *lane, double cycle, FILE *stream) {
    fprintf(stream, "{\"processors\":%u,\"blocks\":%llu,\"ends_ns\":[", lane->processors,
            (unsigned long long)lane->blocks);
    for (size_t n = 0; n < lane->period_count; n++) {
        fprintf(stream, "%s%.6g", n > 0 ? "," : "", lane->periods[n].end * cycle);
    }
    fputs("],\"at_a_time\":[", stream);
    for (size_t n = 0; n < lane->period_count; n++) {
        fprintf(stream, "%s%u", n > 0 ? "," : "", lane->periods[n].blocks);
    }
    fputs("]}", stream);
}

static void print_lanes(const struct simt_placement *placement, const struct simt_gpu *gpu,
                        FILE *stream) {
    fputs(",\"lanes\":[", stream);
    for (size_t n = 0; n < placement->count; n++) {
        fputs(n > 0 ? "," : "", stream);
        print_lane(&placement->lanes[n], 1e6 / gpu->clock_khz, stream);
    }
    fputc(']', stream);
}

static void print_launch(const struct xray_launch *launch, const struct simt_gpu *gpu,
                         FILE *stream) {
    fputs("{\"kernel\":", stream);
    report_print_quoted(launch->kernel, stream);
    fprintf(stream, ",\"launches\":%llu,", (unsigned long long)launch->launches);
    print_shape(&launch->facts, stream);
    print_lanes(&launch->facts.placement, gpu, stream);
    fputs(",\"counters\":", stream);
    report_print_counters(&launch->counters, stream);
    fputs(",\"stall\":", stream);
    print_numbers(launch->stall, XRAY_STALL_COUNT, stream);
    fputs(",\"lines\":[", stream);
    for (size_t n = 0; n < launch->line_count; n++) {
        fputs(n > 0 ? ",\n" : "\n", stream);
        print_line(&launch->lines[n], stream);
    }
    fputs("]}", stream);
}

void xray_print_json(const struct xray *xray, const struct simt_gpu *gpu, FILE *stream) {
    fputs("{\"xray\":1,", stream);
    print_device(gpu, stream);
    fputc(',', stream);
    print_stalls(stream);
    fprintf(stream, ",\"most_launches\":%d,\"dropped\":%llu,\n\"files\":", XRAY_LAUNCHES,
            (unsigned long long)xray->dropped);
    xray_print_sources(xray, stream);
    fputs(",\n\"launches\":[", stream);
    for (const struct xray_launch *launch = xray->launches; launch != NULL; launch = launch->next) {
        print_launch(launch, gpu, stream);
        fputs(launch->next != NULL ? ",\n" : "", stream);
    }
    fputs("]}\n", stream);
}
