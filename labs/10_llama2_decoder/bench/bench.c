/**
 * @file bench.c
 * @brief Lab 10's bench: a Llama2 on the stages of the course, a prompt at once and tokens one by
 *        one, after a short context and after a long one.
 *
 * Without a checkpoint the weights are random. Stages must agree on the logits. Bytes of a token
 * are those of the weights and of the keys and values before it; shares are relative to a read-only
 * probe in the same run. The cost of the long context on the last stage is printed beside that
 * probe and beside the same reads, a launch a layer. Each row is appended to results/bench.jsonl.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/terminal.h"
#include "common/bench/device/device_peaks.h"
#include "common/bench/models/decode_model.h"
#include "common/programs/dtype_flag.h"
#include "common/programs/program.h"
#include "labs/10_llama2_decoder/bench/bench_internal.h"
#include "labs/10_llama2_decoder/given/stages.h"

enum { PROMPT = 2048, PROMPT_QUICK = 64, PROMPT_MODELLED = 16 };
enum { STEPS = 64, STEPS_QUICK = 16, STEPS_MODELLED = 2 };
enum { SHORT_CONTEXT = 16, LONG_MODELLED = 64 };

/* Largest C of models on which the CPU's stage and the copying one also run. */
enum { SMALL = 288 };

/* Largest C of models that are fp32 unless the command line says otherwise. */
enum { FP32 = 768 };

/* ---- The command line ---- */

static enum status check_numbers(const struct options *o, struct error *error) {
    const struct {
        const char *name;
        int value;
    } numbers[] = {{"context", o->context}, {"steps", o->steps}, {"prompt", o->prompt}};
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        if (numbers[i].value < 0) {
            return error_set(error, STATUS_INVALID_ARGUMENT,
                             "--%s %d: at least 1, or 0, which leaves it to the bench",
                             numbers[i].name, numbers[i].value);
        }
    }
    return bench_program_check_threads(o->threads, error);
}

/* Reports a file that cannot be read before anything is printed. */
static enum status check_checkpoint(const char *path, struct error *error) {
    struct llama2_checkpoint checkpoint = {0};
    TRY(llama2_checkpoint_open(&checkpoint, path, error));
    llama2_checkpoint_close(&checkpoint);
    return STATUS_OK;
}

static enum status check_options(struct ladder_setup *driver, struct error *error) {
    struct bench *b = driver->options;
    const struct options *o = &b->options;
    const struct decoder_stages *stages = b->stages;
    enum llama2_shape shape;
    enum nn_dtype dtype;
    TRY(check_numbers(o, error));
    if (o->shape != NULL && o->checkpoint != NULL) {
        return error_set(error, STATUS_INVALID_ARGUMENT, "--shape or --checkpoint, not both");
    }
    if (o->shape != NULL) {
        TRY(llama2_shape_parse(o->shape, &shape, error));
    }
    if (o->dtype != NULL) {
        TRY(dtype_flag_parse(o->dtype, &dtype, error));
    }
    if (o->stage != NULL) {
        size_t found;
        TRY(stage_flag_find(stages->table, stages->count, sizeof *stages->table, o->stage, &found,
                            error));
    }
    b->driver = driver;
    return o->checkpoint != NULL ? check_checkpoint(o->checkpoint, error) : STATUS_OK;
}

/* ---- The model ---- */

static enum status choose_dtype(struct bench *b, const struct llama2_config *c,
                                struct error *error) {
    b->dtype = c->C > FP32 ? NN_BF16 : NN_F32;
    return b->options.dtype != NULL ? dtype_flag_parse(b->options.dtype, &b->dtype, error)
                                    : STATUS_OK;
}

/* Weights are stored in the dtype of the computation, so nothing is converted. */
static enum status make_random(struct bench *b, enum llama2_shape shape, struct error *error) {
    const struct llama2_config config = llama2_shape_config(shape);
    TRY(choose_dtype(b, &config, error));
    return stored_model_random(&b->model, &config, llama2_shape_name(shape), b->dtype,
                               shape <= LLAMA2_SHAPE_110M, error);
}

static enum status open_checkpoint(struct bench *b, const char *path, struct error *error) {
    TRY(stored_model_open(&b->model, path, error));
    return choose_dtype(b, b->model.config, error);
}

/* ---- The plan ---- */

static size_t chosen(int asked, size_t otherwise, size_t most) {
    size_t value = asked > 0 ? (size_t)asked : otherwise;
    return asked > 0 || value < most ? value : most;
}

/* Tokens are at context .. context + steps, which leaves room for an engine that works ahead. */
static enum status make_plan(struct bench *b, struct error *error) {
    const struct options *o = &b->options;
    struct bench_plan *p = &b->plan;
    bool modelled = b->driver->gpu.modelled, quick = b->driver->quick;
    size_t T = b->model.config->T;
    p->steps = chosen(o->steps, modelled ? STEPS_MODELLED : quick ? STEPS_QUICK : STEPS, T / 4);
    p->prompt = chosen(o->prompt, modelled ? PROMPT_MODELLED : quick ? PROMPT_QUICK : PROMPT, T);
    p->steps = p->steps > 0 ? p->steps : 1;
    size_t room = p->steps + 1 < T ? T - p->steps - 1 : 0;
    size_t farthest = modelled && room > LONG_MODELLED ? LONG_MODELLED : room;
    p->context[LONG] = chosen(o->context, farthest, SIZE_MAX);
    p->context[SHORT] = SHORT_CONTEXT;
    if (p->prompt > T || p->context[LONG] > room || room == 0) {
        return error_set(error, STATUS_TOO_LONG,
                         "a prompt of %zu tokens, or %zu after a context of %zu: the model has "
                         "%zu positions",
                         p->prompt, p->steps + 1, p->context[LONG], T);
    }
    p->contexts = p->context[SHORT] < p->context[LONG] ? 2 : 1;
    p->context[SHORT] = p->contexts == 2 ? p->context[SHORT] : p->context[LONG];
    return STATUS_OK;
}

/* ---- Stages ---- */

/* In 16 bits only stages with a decoder of their own run: 09 and later. */
static bool is_wanted(const struct bench *b, const struct decoder_stage *stage) {
    const char *asked = b->options.stage;
    if (asked != NULL) {
        return decoder_stage_find(b->stages, asked) == stage;
    }
    bool slow = !stage->on_device || strcmp(stage->name, "02_gpu_matmul") == 0;
    bool decoder = strcmp(stage->name, "09") > 0;
    return (decoder || b->dtype == NN_F32) && (!slow || b->model.config->C <= SMALL);
}

static enum status run_stage(struct bench *b, const struct decoder_stage *stage,
                             struct bench_result *result, struct error *error) {
    TRY(bench_measure(b, stage, result, error));
    TRY(bench_count_launches(b, stage, result, error));
    bench_print_result(b, result);
    return bench_record(b, result, error);
}

static enum status run_each(struct bench *b, struct progress *progress,
                            struct bench_result *results, size_t *count, struct error *error) {
    for (size_t i = 0; i < b->stages->count; i++) {
        if (is_wanted(b, &b->stages->table[i])) {
            progress_update(progress, i);
            TRY(run_stage(b, &b->stages->table[i], &results[(*count)++], error));
        }
    }
    return STATUS_OK;
}

static enum status run_stages(struct bench *b, struct bench_result *results, struct error *error) {
    size_t count = 0;
    struct progress progress = progress_create(b->model.name, b->stages->count);
    b->first = NULL;
    bench_print_head(b);
    enum status status = run_each(b, &progress, results, &count, error);
    progress_finish(&progress);
    TRY(status);
    bench_print_foot(b, results, count);
    bool cost = b->plan.contexts > 1 && count > 0 && results[count - 1].stage->on_device;
    return cost ? bench_context(b, &results[count - 1], error) : STATUS_OK;
}

static enum status run_tables(struct bench *b, struct error *error) {
    const struct llama2_config *c = b->model.config;
    TRY(make_plan(b, error));
    struct bench_result *results = calloc(b->stages->count, sizeof *results);
    b->tokens = calloc(c->T, sizeof *b->tokens);
    b->scratch = calloc(c->V, sizeof *b->scratch);
    b->reference[0] = calloc(c->V, sizeof **b->reference);
    b->reference[1] = calloc(c->V, sizeof **b->reference);
    enum status status = STATUS_OUT_OF_MEMORY;
    if (results != NULL && b->tokens != NULL && b->scratch != NULL && b->reference[0] != NULL &&
        b->reference[1] != NULL) {
        for (size_t i = 0; i < c->T; i++) {
            b->tokens[i] = decode_text_token(i, c->V);
        }
        status = run_stages(b, results, error);
    } else {
        error_set(error, status, "out of memory");
    }
    free(results);
    free(b->tokens);
    free(b->scratch);
    free(b->reference[0]);
    free(b->reference[1]);
    return status;
}

/* Opens a model, from a file or random, and prints its tables. */
static enum status open_and_run(struct bench *b, const char *path, enum llama2_shape shape,
                                struct error *error) {
    TRY(path != NULL ? open_checkpoint(b, path, error) : make_random(b, shape, error));
    return run_tables(b, error);
}

static enum status run_model(struct bench *b, const char *path, enum llama2_shape shape,
                             struct error *error) {
    enum status status = open_and_run(b, path, shape, error);
    stored_model_close(&b->model);
    return status;
}

static enum status run_models(const struct ladder_setup *driver, struct error *error) {
    struct bench *b = driver->options;
    const struct options *o = &b->options;
    enum llama2_shape first = LLAMA2_SHAPE_260K, last = LLAMA2_SHAPE_7B;
    if (o->checkpoint != NULL) {
        return run_model(b, o->checkpoint, first, error);
    }
    if (o->shape != NULL) {
        TRY(llama2_shape_parse(o->shape, &first, error));
        last = first;
    } else if (driver->gpu.modelled) {
        last = first;
    } else if (driver->quick) {
        last = LLAMA2_SHAPE_15M;
    }
    for (int shape = (int)first; shape <= (int)last; shape++) {
        TRY(run_model(b, NULL, (enum llama2_shape)shape, error));
    }
    return STATUS_OK;
}

static enum status prepare(struct ladder_setup *driver, struct error *error) {
    return device_read_bandwidth(&((struct bench *)driver->options)->read_bytes_per_s, NULL, error);
}

static const struct ladder_bench description = {
    .lab = "10_llama2_decoder",
    .subject = WARPBOOK_SUBJECT,
    .summary = "times a Llama2 on the stages of the course: a prompt, and token by token",
    .epilogue =
        "Stages 01 and 02 run on small shapes, or when --stage names them. On simt times "
        "are modelled,\nand prompt, context and steps are a few tokens unless said. What the "
        "second context costs the last\nstage stands beside kernels that only read its keys "
        "and values.",
    .check_options = check_options,
    .prepare = prepare,
    LADDER_PARTS(run_models),
};

int main(int argc, char **argv) {
    struct bench bench = {.options = {.threads = bench_cpu_count()},
                          .stages = decoder_stages_of_the_course()};
    struct options *o = &bench.options;
    struct ladder_setup driver = {.options = &bench};
    const struct flag flags[] = {
        {"stage", 's', FLAG_STRING, &o->stage, "NAME", "only this stage, as 09_kv_cache, or 09"},
        {"shape", 0, FLAG_STRING, &o->shape, "NAME",
         "260k, 15m, 110m, 1.1b or 7b, random weights; without: all of them, on simt 260k"},
        {"checkpoint", 'c', FLAG_STRING, &o->checkpoint, "PATH",
         "a file of llama2.c, a GGUF file or a Hugging Face folder"},
        {"dtype", 0, FLAG_STRING, &o->dtype, "TYPE",
         "fp32, fp16 or bf16; without: fp32 up to 110m, bf16 above"},
        {"prompt", 'p', FLAG_INT, &o->prompt, "N",
         "tokens of the prefill; 0: 2048, or all that the model has"},
        {"context", 0, FLAG_INT, &o->context, "N",
         "tokens before the decoded ones in the second row; 0: as many as there is room for"},
        {"steps", 'n', FLAG_INT, &o->steps, "N", "tokens decoded and timed; 0: 64"},
        {"threads", 't', FLAG_INT, &o->threads, "N", "CPU threads of stage 01"},
        {"quick", 'q', FLAG_SWITCH, &driver.quick, NULL, "small shapes, shorter runs"},
    };
    return ladder_bench_main(&description, flags, sizeof flags / sizeof *flags, &driver, argc,
                             argv);
}
