/**
 * @file bench.c
 * @brief Lab 03's bench: Llama2's decode on labs 01, 02 and 03, and the bytes each token copies.
 *
 * Built once for the learner's memory and once for the solution's. All stages'
 * logits are compared. Each measured row is appended to results/bench.jsonl.
 */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "common/base/file.h"
#include "common/base/flags.h"
#include "common/base/terminal.h"
#include "common/bench/bench.h"
#include "common/bench/device/device_bench.h"
#include "common/bench/models/decode_bench.h"
#include "labs/01_cpu_matmul/given/engine.h"
#include "labs/02_gpu_matmul/given/engine.h"
#include "labs/03_resident_weights/given/engine.h"

/* Tokens that are enough on a GPU, and on simt, whose modelled time does not vary. */
enum { STEPS = 32, STEPS_QUICK = 8, STEPS_MODELLED = 4, STEPS_MODELLED_QUICK = 2 };

struct options {
    const char *checkpoint, *shape_text;
    enum llama2_shape shape;
    int steps, threads;
    bool quick;
    struct device_properties properties;
};

/* The stages on one model. */
struct stages {
    struct engine cpu, copying, resident;
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
    return o->shape_text != NULL ? decode_shape_parse(o->shape_text, &o->shape, error) : STATUS_OK;
}

/* Reads the command line; *help: it was printed, nothing else is wanted. */
static enum status read_options(int argc, char **argv, struct options *o, bool *help,
                                struct error *error) {
    const struct flag table[] = {
        {"shape", 's', FLAG_STRING, &o->shape_text, "NAME",
         "only this model: 15m, 110m or 1.1b, random weights"},
        {"checkpoint", 'c', FLAG_STRING, &o->checkpoint, "FILE",
         "only this model: a llama2.c checkpoint"},
        {"steps", 'n', FLAG_INT, &o->steps, "N",
         "tokens to decode; 0: 32, quick 8, on simt 4, quick 2"},
        {"threads", 't', FLAG_INT, &o->threads, "N", "most CPU threads of lab 01's engine"},
        {"quick", 'q', FLAG_SWITCH, &o->quick, NULL, "fewer models, shorter runs"},
    };
    const struct flags flags = {
        .program = "bench",
        .positional = "",
        .summary = "compares labs 01, 02 and 03 in Llama2, and counts what a token copies",
        .table = table,
        .count = sizeof table / sizeof *table,
        .epilogue =
            "Without --shape and --checkpoint: 15m; on a GPU, unless --quick is given, also\n"
            "110m, and 1.1b where memory allows.",
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

static enum status stages_create(struct stages *s, int threads, struct error *error) {
    *s = (struct stages){0};
    enum status status = engine_cpu_matmul_create(&s->cpu, threads);
    if (status == STATUS_OK) {
        status = engine_gpu_matmul_create(&s->copying, error);
    }
    return status == STATUS_OK ? engine_resident_create(&s->resident, error) : status;
}

static void stages_free(struct stages *s) {
    engine_destroy(&s->resident);
    engine_destroy(&s->copying);
    engine_destroy(&s->cpu);
}

static size_t steps_of(const struct options *o) {
    if (o->steps > 0) {
        return (size_t)o->steps;
    }
    if (o->properties.modelled) {
        return o->quick ? STEPS_MODELLED_QUICK : STEPS_MODELLED;
    }
    return o->quick ? STEPS_QUICK : STEPS;
}

static enum status compare(const struct options *o, const struct decode_model *model,
                           const struct stages *s, struct error *error) {
    char name[64];
    snprintf(name, sizeof name, "01, %d CPU thread%s", o->threads, o->threads == 1 ? "" : "s");
    const struct decode_bench bench = {
        .lab = "03_resident_weights",
        .subject = WARPBOOK_SUBJECT,
        .properties = &o->properties,
        .steps = steps_of(o),
    };
    struct decode_stage stages[] = {
        {.name = name, .engine = &s->cpu, .threads = o->threads},
        {.name = "02, matmul on the GPU", .engine = &s->copying, .threads = 1, .on_device = true},
        {.name = "03, all on the GPU", .engine = &s->resident, .threads = 1, .on_device = true},
    };
    return decode_bench(&bench, model, stages, sizeof stages / sizeof *stages, error);
}

static enum status run_model(const struct options *o, enum llama2_shape shape,
                             struct error *error) {
    struct decode_model model;
    struct stages stages = {0};
    enum status status = decode_model_open(&model, o->checkpoint, shape, error);
    if (status == STATUS_OK) {
        status = stages_create(&stages, o->threads, error);
    }
    if (status == STATUS_OK) {
        status = compare(o, &model, &stages, error);
    }
    stages_free(&stages);
    decode_model_close(&model);
    return status;
}

/* Whether host and GPU hold the shape twice over. */
static bool memory_allows(const struct options *o, enum llama2_shape shape) {
    double host = (double)sysconf(_SC_AVPHYS_PAGES) * (double)sysconf(_SC_PAGESIZE);
    double needed = 2.0 * decode_shape_bytes(shape);
    return host > needed && (double)o->properties.memory_bytes > needed;
}

static enum status run_models(const struct options *o, struct error *error) {
    if (o->shape_text != NULL || o->checkpoint != NULL || o->properties.modelled || o->quick) {
        return run_model(o, o->shape, error);
    }
    enum status status = run_model(o, LLAMA2_SHAPE_15M, error);
    if (status == STATUS_OK) {
        status = run_model(o, LLAMA2_SHAPE_110M, error);
    }
    if (status == STATUS_OK && memory_allows(o, LLAMA2_SHAPE_1B)) {
        status = run_model(o, LLAMA2_SHAPE_1B, error);
    }
    return status;
}

/* A file that cannot be read is said before anything is printed. */
static enum status check_checkpoint(const struct options *o, struct error *error) {
    struct decode_model model = {0};
    enum status status = o->checkpoint != NULL
                             ? decode_model_open(&model, o->checkpoint, o->shape, error)
                             : STATUS_OK;
    decode_model_close(&model);
    return status;
}

static enum status run(struct options *o, struct error *error) {
    char text[1024];
    enum status status = check_checkpoint(o, error);
    if (status == STATUS_OK) {
        status = device_open(error);
    }
    if (status == STATUS_OK) {
        status = device_properties(&o->properties, error);
    }
    if (status == STATUS_OK) {
        printf("%s: %s\n", WARPBOOK_SUBJECT,
               device_bench_headline(&o->properties, text, sizeof text));
        status = run_models(o, error);
    }
    if (status == STATUS_OK) {
        printf("\nrecorded in %s\n", bench_results_path("bench.jsonl", text, sizeof text));
    }
    return status;
}

int main(int argc, char **argv) {
    struct options options = {.shape = LLAMA2_SHAPE_15M, .threads = bench_cpu_count()};
    struct error error = {0};
    bool help = false;
    file_enter_working_directory();
    enum status status = read_options(argc, argv, &options, &help, &error);
    if (status == STATUS_OK && !help) {
        status = run(&options, &error);
    }
    return status == STATUS_OK ? 0 : report_failure("bench", &error, status);
}
