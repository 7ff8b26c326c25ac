#include "common/simt/runtime/report/report.h"

#include <stdlib.h>
#include <string.h>

#include "common/simt/page/page.h"
#include "common/simt/why.h"

/* Of the C++ runtime, whose part the library carries: a device in a process of its own has no
   program that brings it. */
extern char *__cxa_demangle(const char *name, char *buffer, size_t *length, int *status);

char *report_source_name(const char *mangled) {
    int status = -1;
    char *name = __cxa_demangle(mangled, NULL, NULL, &status);
    return name != NULL && status == 0 ? name : strdup(mangled);
}

static struct kernel_total *total_of(struct report *report, const char *kernel) {
    struct kernel_total **link = &report->kernels;
    while (*link != NULL) {
        if (strcmp((*link)->name, kernel) == 0) {
            return *link;
        }
        link = &(*link)->next;
    }
    struct kernel_total *total = calloc(1, sizeof *total);
    char *name = strdup(kernel);
    if (total == NULL || name == NULL) {
        free(total);
        free(name);
        return NULL;
    }
    total->name = name;
    *link = total;
    return total;
}

void report_launch(struct report *report, const char *kernel, double nanoseconds,
                   const struct simt_counters *counters, const struct simt_sites *sites) {
    struct kernel_total *total = total_of(report, kernel);
    if (total != NULL) {
        total->launches++;
        total->nanoseconds += nanoseconds;
        simt_counters_add(&total->counters, counters);
        report_lines_add(&total->lines, sites);
    }
}

struct simt_profile *report_longest(struct report *report, const char *kernel) {
    struct kernel_total *total = total_of(report, kernel);
    return total != NULL ? &total->longest : NULL;
}

/** One figure of the report: its name in JSON, its words in the text. */
struct figure {
    const char *key, *words;
    uint64_t value;
};

enum { MOST_FIGURES = 28 };

static uint64_t instructions_of(const struct simt_counters *counters) {
    uint64_t sum = 0;
    for (int i = 0; i < SIMT_CLASS_COUNT; i++) {
        sum += counters->instructions[i];
    }
    return sum;
}

/** Lists a kernel's figures. @return how many */
static size_t figures_of(const struct simt_counters *counters, struct figure *figures) {
    const struct figure list[] = {
        {"warp_instructions", "warp instructions", instructions_of(counters)},
        {"active_lanes", "active lanes, summed", counters->active_lanes},
        {"flops", "floating-point operations", counters->flops},
        {"global_load_requests", "global load requests", counters->global_load_requests},
        {"global_load_sectors", "global load sectors", counters->global_load_sectors},
        {"global_store_requests", "global store requests", counters->global_store_requests},
        {"global_store_sectors", "global store sectors", counters->global_store_sectors},
        {"global_bytes", "global bytes asked for", counters->global_bytes},
        {"local_requests", "local requests", counters->local_requests},
        {"local_sectors", "local sectors", counters->local_sectors},
        {"shared_load_requests", "shared load requests", counters->shared_load_requests},
        {"shared_load_wavefronts", "shared load wavefronts", counters->shared_load_wavefronts},
        {"shared_store_requests", "shared store requests", counters->shared_store_requests},
        {"shared_store_wavefronts", "shared store wavefronts", counters->shared_store_wavefronts},
        {"shared_bank_conflicts", "shared bank conflicts", counters->shared_bank_conflicts},
        {"atomic_requests", "atomic requests", counters->atomic_requests},
        {"atomic_lanes", "lanes of atomics", counters->atomic_lanes},
        {"atomic_serial", "of these behind another", counters->atomic_serial},
        {"barriers", "barrier arrivals of warps", counters->barriers},
        {"divergent_branches", "divergent branches", counters->divergent_branches},
        {"global_lines", "global lines of 128 bytes", counters->global_lines},
        {"l1_hit_sectors", "load sectors found in L1", counters->l1_hit_sectors},
        {"l2_sectors", "sectors that reach L2", counters->l2_sectors},
        {"dram_bytes", "bytes of device memory moved", counters->dram_bytes},
        {"bulk_requests", "bulk copies", counters->bulk_requests},
        {"bulk_bytes", "bytes of bulk copies", counters->bulk_bytes},
        {"multicast_bytes", "bytes that multicasts brought", counters->multicast_bytes},
        {"peer_requests", "requests to peers' shared memory", counters->peer_requests},
    };
    _Static_assert(sizeof list / sizeof *list <= MOST_FIGURES, "room for every figure");
    memcpy(figures, list, sizeof list);
    return sizeof list / sizeof *list;
}

/** How the classes of instructions are called. */
static const char *class_name(int class) {
    static const char *const NAMES[SIMT_CLASS_COUNT] = {
        [SIMT_CLASS_INTEGER] = "integer",   [SIMT_CLASS_FLOAT] = "float",
        [SIMT_CLASS_DOUBLE] = "double",     [SIMT_CLASS_SPECIAL] = "special",
        [SIMT_CLASS_CONVERT] = "convert",   [SIMT_CLASS_MOVE] = "move",
        [SIMT_CLASS_PREDICATE] = "compare", [SIMT_CLASS_CONTROL] = "control",
        [SIMT_CLASS_GLOBAL] = "global",     [SIMT_CLASS_SHARED] = "shared",
        [SIMT_CLASS_LOCAL] = "local",       [SIMT_CLASS_CONSTANT] = "constant",
        [SIMT_CLASS_ATOMIC] = "atomic",     [SIMT_CLASS_WARP] = "warp",
        [SIMT_CLASS_BARRIER] = "barrier",   [SIMT_CLASS_TENSOR] = "tensor",
        [SIMT_CLASS_OTHER] = "other"};
    return NAMES[class] != NULL ? NAMES[class] : "other";
}

/** How what tensor cores multiply is called. */
static const char *const TENSOR_NAMES[SIMT_TENSOR_FORMATS] = {
    [SIMT_TENSOR_F16] = "f16",   [SIMT_TENSOR_BF16] = "bf16", [SIMT_TENSOR_TF32] = "tf32",
    [SIMT_TENSOR_F64] = "f64",   [SIMT_TENSOR_FP8] = "fp8",   [SIMT_TENSOR_INT8] = "int8",
    [SIMT_TENSOR_INT4] = "int4",
};

/** Operations of tensor cores, and what warpgroups of different roles wait for each other. */
static void print_asynchronous_text(const struct simt_counters *counters, FILE *stream) {
    for (int i = 0; i < SIMT_TENSOR_FORMATS; i++) {
        if (counters->tensor_operations[i] > 0) {
            fprintf(stream, "    tensor operations, %-9s %18llu\n", TENSOR_NAMES[i],
                    (unsigned long long)counters->tensor_operations[i]);
        }
    }
    for (int i = 0; i < SIMT_ROLES; i++) {
        if (counters->role_cycles[i] > 0) {
            fprintf(stream, "    warpgroup %d waits            %17.1f%% of its time, modelled\n", i,
                    100 * (double)counters->role_waits[i] / (double)counters->role_cycles[i]);
        }
    }
}

static void print_ratio(FILE *stream, const char *words, uint64_t of, uint64_t per, double most) {
    if (per > 0) {
        fprintf(stream, "    %-28s %18.2f", words, (double)of / (double)per);
        fprintf(stream, most > 0 ? " of %.0f\n" : "\n", most);
    }
}

static void print_why(const struct simt_profile *longest, FILE *stream) {
    char line[WHY_BYTES];
    if (longest->nanoseconds > 0) {
        fprintf(stream, "    why: %s\n", why_line(longest, line, sizeof line));
        fprintf(stream, "         %s\n", why_advice(longest, line, sizeof line));
    }
}

static void print_kernel_text(const struct kernel_total *total, FILE *stream) {
    const struct simt_counters *counters = &total->counters;
    struct figure figures[MOST_FIGURES];
    size_t count = figures_of(counters, figures);
    fprintf(stream, "  %s: %llu launch%s, %.3f ms modelled\n", total->name,
            (unsigned long long)total->launches, total->launches == 1 ? "" : "es",
            total->nanoseconds / 1e6);
    print_why(&total->longest, stream);
    for (size_t i = 0; i < count; i++) {
        if (figures[i].value > 0) {
            fprintf(stream, "    %-28s %18llu\n", figures[i].words,
                    (unsigned long long)figures[i].value);
        }
    }
    for (int i = 0; i < SIMT_CLASS_COUNT; i++) {
        if (counters->instructions[i] > 0) {
            fprintf(stream, "      of class %-17s %18llu\n", class_name(i),
                    (unsigned long long)counters->instructions[i]);
        }
    }
    print_asynchronous_text(counters, stream);
    print_ratio(stream, "lanes active an instruction", counters->active_lanes,
                instructions_of(counters), SIMT_LANES);
    print_ratio(stream, "sectors a global load", counters->global_load_sectors,
                counters->global_load_requests, 0);
    print_ratio(stream, "sectors a global store", counters->global_store_sectors,
                counters->global_store_requests, 0);
    report_lines_print(total->lines, stream);
}

static void print_text(const struct report *report, const struct simt_settings *settings,
                       double clock, FILE *stream) {
    fprintf(stream, "simt: report for an emulated %s; times are modelled, not measured\n",
            settings->gpu->name);
    for (const struct kernel_total *k = report->kernels; k != NULL; k = k->next) {
        print_kernel_text(k, stream);
    }
    fprintf(stream,
            "  copies to the device: %llu (%llu bytes), to the host: %llu (%llu bytes), on the "
            "device: %llu (%llu bytes)\n  memory set: %llu times (%llu bytes)\n",
            (unsigned long long)report->copies_to_device,
            (unsigned long long)report->bytes_to_device, (unsigned long long)report->copies_to_host,
            (unsigned long long)report->bytes_to_host, (unsigned long long)report->copies_on_device,
            (unsigned long long)report->bytes_on_device, (unsigned long long)report->sets,
            (unsigned long long)report->bytes_set);
    fprintf(stream, "  device time, modelled: %.3f ms\n", clock / 1e6);
}

static void print_classes(const struct simt_counters *counters, FILE *stream) {
    fputs("\"instructions\":{", stream);
    for (int i = 0; i < SIMT_CLASS_COUNT; i++) {
        fprintf(stream, "%s\"%s\":%llu", i == 0 ? "" : ",", class_name(i),
                (unsigned long long)counters->instructions[i]);
    }
    fputc('}', stream);
}

/** The same as print_asynchronous_text(): of a warpgroup that was not followed the share is 0. */
static void print_asynchronous(const struct simt_counters *counters, FILE *stream) {
    fputs("\"tensor_operations\":{", stream);
    for (int i = 0; i < SIMT_TENSOR_FORMATS; i++) {
        fprintf(stream, "%s\"%s\":%llu", i == 0 ? "" : ",", TENSOR_NAMES[i],
                (unsigned long long)counters->tensor_operations[i]);
    }
    fputs("},\"waits_by_warpgroup\":[", stream);
    for (int i = 0; i < SIMT_ROLES; i++) {
        double all = (double)counters->role_cycles[i];
        fprintf(stream, "%s%.4f", i == 0 ? "" : ",",
                all > 0 ? (double)counters->role_waits[i] / all : 0.0);
    }
    fputs("],", stream);
}

static void print_figures(const struct simt_counters *counters, FILE *stream) {
    struct figure figures[MOST_FIGURES];
    size_t count = figures_of(counters, figures);
    for (size_t i = 0; i < count; i++) {
        fprintf(stream, "\"%s\":%llu,", figures[i].key, (unsigned long long)figures[i].value);
    }
    print_asynchronous(counters, stream);
    print_classes(counters, stream);
}

void report_print_counters(const struct simt_counters *counters, FILE *stream) {
    fputc('{', stream);
    print_figures(counters, stream);
    fputc('}', stream);
}

static void print_kernel_json(const struct kernel_total *total, FILE *stream) {
    fputs("{\"name\":", stream);
    page_print_quoted(total->name, stream);
    fprintf(stream, ",\"launches\":%llu,\"modelled_ms\":%.6f,", (unsigned long long)total->launches,
            total->nanoseconds / 1e6);
    print_figures(&total->counters, stream);
    fputs(",\"lines\":", stream);
    report_lines_print_json(total->lines, stream);
    fputc('}', stream);
}

static void print_json(const struct report *report, const struct simt_settings *settings,
                       double clock, FILE *stream) {
    fputs("{\"schema\":1,\"device\":\"simt:", stream);
    fprintf(stream, "%s\",\"modelled_ms\":%.6f,\"kernels\":[", settings->gpu->key, clock / 1e6);
    for (const struct kernel_total *k = report->kernels; k != NULL; k = k->next) {
        print_kernel_json(k, stream);
        fputs(k->next != NULL ? "," : "", stream);
    }
    const struct {
        const char *name;
        uint64_t count, bytes;
    } moves[] = {
        {"to_device", report->copies_to_device, report->bytes_to_device},
        {"to_host", report->copies_to_host, report->bytes_to_host},
        {"on_device", report->copies_on_device, report->bytes_on_device},
        {"set", report->sets, report->bytes_set},
    };
    fputc(']', stream);
    for (size_t i = 0; i < sizeof moves / sizeof *moves; i++) {
        fprintf(stream, ",\"%s\":{\"count\":%llu,\"bytes\":%llu}", moves[i].name,
                (unsigned long long)moves[i].count, (unsigned long long)moves[i].bytes);
    }
    fputs("}\n", stream);
}

void report_print(const struct report *report, const struct simt_settings *settings, double clock,
                  FILE *stream) {
    if (settings->report == SIMT_REPORT_TEXT) {
        print_text(report, settings, clock, stream);
    } else if (settings->report == SIMT_REPORT_JSON) {
        print_json(report, settings, clock, stream);
    } else if (settings->report == SIMT_REPORT_SARIF) {
        sarif_print(&report->findings, stream);
    }
}
