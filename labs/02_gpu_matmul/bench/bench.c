/**
 * @file bench.c
 * @brief Lab 02's bench: the kernels alone, then Llama2's decode with every matmul over the bus.
 *
 * Built once for the learner's ladder and once for the solution's. Every step
 * is checked against the double oracle before it is timed. Each measured row is
 * appended to results/bench.jsonl.
 */
#include <stdio.h>
#include <stdlib.h>

#include "common/base/file.h"
#include "common/base/flags.h"
#include "common/base/terminal.h"
#include "common/bench/bench.h"
#include "common/bench/device/device_bench.h"
#include "common/bench/device/device_peaks.h"
#include "common/bench/models/decode_bench.h"
#include "labs/01_cpu_matmul/given/engine.h"
#include "labs/02_gpu_matmul/bench/parts.h"
#include "labs/02_gpu_matmul/given/engine.h"

/* Tokens that are enough on a GPU, and on simt, whose modelled time does not vary. */
enum { STEPS = 32, STEPS_MODELLED = 4 };

struct options {
    const char *checkpoint, *shape_text;
    enum llama2_shape shape;
    int steps, threads;
    bool quick;
};

static enum status check_options(struct options *o, const struct arguments *arguments,
                                 struct error *error) {
    if (arguments->count > 0) {
        return error_set(error, STATUS_INVALID_ARGUMENT, "unexpected argument '%s'; --help helps",
                         arguments->values[0]);
    }
    if (o->threads < 1 || o->threads > 1024) {
        return error_set(error, STATUS_INVALID_ARGUMENT, "--threads %d: from 1 to 1024",
                         o->threads);
    }
    if (o->steps < 0) {
        return error_set(error, STATUS_INVALID_ARGUMENT, "--steps %d: at least 1, or 0", o->steps);
    }
    return decode_shape_parse(o->shape_text, &o->shape, error);
}

/* Reads the command line; *help: it was printed, nothing else is wanted. */
static enum status read_options(int argc, char **argv, struct options *o, bool *help,
                                struct error *error) {
    const struct flag table[] = {
        {"shape", 's', FLAG_STRING, &o->shape_text, "NAME",
         "the model: 15m, 110m or 1.1b, random weights"},
        {"checkpoint", 'c', FLAG_STRING, &o->checkpoint, "FILE",
         "the model: this llama2.c checkpoint; no ladder"},
        {"steps", 'n', FLAG_INT, &o->steps, "N", "tokens to decode; 0: 32, on simt 4"},
        {"threads", 't', FLAG_INT, &o->threads, "N", "most CPU threads of lab 01's engine"},
        {"quick", 'q', FLAG_SWITCH, &o->quick, NULL, "fewer sizes, shorter runs"},
    };
    const struct flags flags = {
        .program = "bench",
        .positional = "",
        .summary = "compares the steps of lab 02 with each other, and in Llama2 with lab 01",
        .table = table,
        .count = sizeof table / sizeof *table,
    };
    struct arguments arguments = {.values = calloc((size_t)argc + 1, sizeof(char *))};
    enum status status = arguments.values != NULL
                             ? flags_parse(&flags, argc, argv, &arguments, error)
                             : STATUS_OUT_OF_MEMORY;
    *help = status == STATUS_OK && arguments.help;
    if (*help) {
        flags_help(&flags, stdout);
    } else if (status == STATUS_OK) {
        status = check_options(o, &arguments, error);
    }
    free(arguments.values);
    return status;
}

static enum status open_gpu(struct bench_setup *setup, struct error *error) {
    char text[512];
    enum status status = device_open(error);
    if (status == STATUS_OK) {
        status = device_properties(&setup->properties, error);
    }
    if (status == STATUS_OK) {
        status = device_peaks(&setup->roofs, error);
    }
    if (status == STATUS_OK) {
        printf("%s: %s\n", WARPBOOK_SUBJECT,
               device_bench_headline(&setup->properties, text, sizeof text));
        printf("roofs: %.0f GFLOP/s fp32, %.0f GB/s from memory, %s\n",
               1e-9 * setup->roofs.flops_per_s, 1e-9 * setup->roofs.bytes_per_s,
               setup->roofs.modelled ? "from a table" : "measured");
    }
    return status;
}

static enum status run_stages(const struct options *o, const struct bench_setup *setup,
                              const struct decode_model *model, const struct engine *cpu,
                              const struct engine *gpu, struct error *error) {
    char name[64];
    int steps = setup->properties.modelled ? STEPS_MODELLED : STEPS;
    snprintf(name, sizeof name, "01, %d CPU thread%s", o->threads, o->threads == 1 ? "" : "s");
    const struct decode_bench bench = {
        .lab = "02_gpu_matmul",
        .subject = WARPBOOK_SUBJECT,
        .properties = &setup->properties,
        .steps = (size_t)(o->steps > 0 ? o->steps : steps),
    };
    struct decode_stage stages[] = {
        {.name = name, .engine = cpu, .threads = o->threads},
        {.name = "02, matmul on the GPU", .engine = gpu, .threads = 1, .on_device = true},
    };
    return decode_bench(&bench, model, stages, sizeof stages / sizeof *stages, error);
}

static enum status run_decode(const struct options *o, const struct bench_setup *setup,
                              const struct decode_model *model, struct error *error) {
    struct engine cpu = {0}, gpu = {0};
    enum status status = engine_cpu_matmul_create(&cpu, o->threads);
    if (status == STATUS_OK) {
        status = engine_gpu_matmul_create(&gpu, error);
    }
    if (status == STATUS_OK) {
        status = run_stages(o, setup, model, &cpu, &gpu, error);
    }
    engine_destroy(&gpu);
    engine_destroy(&cpu);
    return status;
}

static enum status run(const struct options *o, struct error *error) {
    char path[1024];
    struct bench_setup setup = {.quick = o->quick};
    struct decode_model model;
    enum status status = decode_model_open(&model, o->checkpoint, o->shape, error);
    if (status == STATUS_OK) {
        status = open_gpu(&setup, error);
    }
    if (status == STATUS_OK && o->checkpoint == NULL) {
        status = bench_ladder(&setup, error);
    }
    if (status == STATUS_OK) {
        status = run_decode(o, &setup, &model, error);
    }
    if (status == STATUS_OK) {
        printf("\nrecorded in %s\n", bench_results_path("bench.jsonl", path, sizeof path));
    }
    decode_model_close(&model);
    return status;
}

int main(int argc, char **argv) {
    struct options options = {.shape_text = "15m", .threads = bench_cpu_count()};
    struct error error = {0};
    bool help = false;
    file_enter_working_directory();
    enum status status = read_options(argc, argv, &options, &help, &error);
    if (status == STATUS_OK && !help) {
        status = run(&options, &error);
    }
    return status == STATUS_OK ? 0 : report_failure("bench", &error, status);
}
