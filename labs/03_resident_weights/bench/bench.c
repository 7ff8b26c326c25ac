/**
 * @file bench.c
 * @brief Lab 03's bench: Llama2's decode on labs 01, 02 and 03, and the bytes each token copies.
 *
 * Built once for the learner's memory and once for the solution's. All stages'
 * logits are compared. Each measured row is appended to results/bench.jsonl.
 */
#include <stdio.h>
#include <unistd.h>

#include "common/base/flags.h"
#include "common/bench/bench.h"
#include "common/bench/bench_program.h"
#include "common/bench/device/device_bench.h"
#include "common/bench/models/decode_bench.h"
#include "labs/01_cpu_matmul/given/engine.h"
#include "labs/02_gpu_matmul/given/engine.h"
#include "labs/03_resident_weights/given/engine.h"

/* Tokens that are enough on a GPU, and on simt, whose modelled time does not vary. */
enum { STEPS = 32, STEPS_QUICK = 8, STEPS_MODELLED = 4, STEPS_MODELLED_QUICK = 2 };

struct options {
    struct decode_options decode;
    bool quick;
    struct device_properties properties;
};

/* One model and the engines of the stages. */
struct comparison_run {
    struct decode_model model;
    struct engine cpu, copying, resident;
};

static enum status check_options(void *argument, struct error *error) {
    struct options *o = argument;
    return decode_options_check(&o->decode, error);
}

static size_t steps_of(const struct options *o) {
    if (o->decode.steps > 0) {
        return (size_t)o->decode.steps;
    }
    if (o->properties.modelled) {
        return o->quick ? STEPS_MODELLED_QUICK : STEPS_MODELLED;
    }
    return o->quick ? STEPS_QUICK : STEPS;
}

static enum status compare(const struct options *o, enum llama2_shape shape,
                           struct comparison_run *r, struct error *error) {
    char name[64];
    const struct decode_bench bench = {
        .lab = "03_resident_weights",
        .subject = WARPBOOK_SUBJECT,
        .properties = &o->properties,
        .steps = steps_of(o),
    };
    struct decode_stage stages[] = {
        {.name = name, .engine = &r->cpu, .threads = o->decode.threads},
        {.name = "02, matmul on the GPU", .engine = &r->copying, .threads = 1, .on_device = true},
        {.name = "03, all on the GPU", .engine = &r->resident, .threads = 1, .on_device = true},
    };
    snprintf(name, sizeof name, "01, %d CPU thread%s", o->decode.threads,
             o->decode.threads == 1 ? "" : "s");
    TRY(decode_model_open(&r->model, o->decode.checkpoint, shape, error));
    TRY(engine_cpu_matmul_create(&r->cpu, o->decode.threads));
    TRY(engine_gpu_matmul_create(&r->copying, error));
    TRY(engine_resident_create(&r->resident, error));
    return decode_bench(&bench, &r->model, stages, sizeof stages / sizeof *stages, error);
}

static enum status run_model(const struct options *o, enum llama2_shape shape,
                             struct error *error) {
    struct comparison_run r = {0};
    enum status status = compare(o, shape, &r, error);
    engine_destroy(&r.resident);
    engine_destroy(&r.copying);
    engine_destroy(&r.cpu);
    decode_model_close(&r.model);
    return status;
}

/* Whether host and GPU both have room for two copies of the shape. */
static bool memory_allows(const struct options *o, enum llama2_shape shape) {
    double host = (double)sysconf(_SC_AVPHYS_PAGES) * (double)sysconf(_SC_PAGESIZE);
    double needed = 2.0 * decode_shape_bytes(shape);
    return host > needed && (double)o->properties.memory_bytes > needed;
}

static enum status run_models(const struct options *o, struct error *error) {
    if (o->decode.shape_text != NULL || o->decode.checkpoint != NULL || o->properties.modelled ||
        o->quick) {
        return run_model(o, o->decode.shape, error);
    }
    TRY(run_model(o, LLAMA2_SHAPE_15M, error));
    TRY(run_model(o, LLAMA2_SHAPE_110M, error));
    return memory_allows(o, LLAMA2_SHAPE_1B) ? run_model(o, LLAMA2_SHAPE_1B, error) : STATUS_OK;
}

static enum status run(void *argument, struct error *error) {
    struct options *o = argument;
    char text[1024];
    TRY(device_open(error));
    TRY(device_properties(&o->properties, error));
    printf("%s: %s\n", WARPBOOK_SUBJECT, device_bench_headline(&o->properties, text, sizeof text));
    TRY(run_models(o, error));
    bench_print_recorded();
    return STATUS_OK;
}

int main(int argc, char **argv) {
    struct options o = {.decode = {.shape = LLAMA2_SHAPE_15M, .threads = bench_cpu_count()}};
    const struct flag table[] = {
        {"shape", 's', FLAG_STRING, &o.decode.shape_text, "NAME",
         "only this model: 15m, 110m or 1.1b, random weights"},
        {"checkpoint", 'c', FLAG_STRING, &o.decode.checkpoint, "FILE",
         "only this model: a llama2.c checkpoint"},
        {"steps", 'n', FLAG_INT, &o.decode.steps, "N",
         "tokens to decode; 0: 32, quick 8, on simt 4, quick 2"},
        {"threads", 't', FLAG_INT, &o.decode.threads, "N", "most CPU threads of lab 01's engine"},
        {"quick", 'q', FLAG_SWITCH, &o.quick, NULL, "fewer models, shorter runs"},
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
    const struct bench_program program = {.flags = &flags, .check = check_options, .run = run};
    return bench_program_main(&program, argc, argv, &o);
}
