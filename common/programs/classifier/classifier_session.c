#include "common/programs/classifier/classifier_session.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/file.h"
#include "common/bench/bench.h"
#include "common/checkpoints/bert/bert_example.h"
#include "common/programs/dtype_flag.h"
#include "common/programs/program.h"
#include "common/programs/shipped.h"

enum { MOST_BATCH = 4096, USUAL_LENGTH = 512, LEAST_LENGTH = 3, SEED = 1 };

struct classifier_options classifier_options_defaults(void) {
    return (struct classifier_options){.shape = "tiny",
                                       .device = "auto",
                                       .dtype = "fp32",
                                       .batch = 8,
                                       .threads = bench_cpu_count()};
}

static void add_shared_flags(struct classifier_options *o, struct flag *table) {
    const struct flag flags[CLASSIFIER_FLAGS] = {
        {"checkpoint", 'c', FLAG_STRING, &o->checkpoint, "DIR",
         "folder with config.json, model.safetensors, vocab.txt; or a .safetensors; default: "
         "datasets/reviews_bert"},
        {"vocab", 0, FLAG_STRING, &o->vocab, "FILE", "vocabulary; default: the checkpoint's"},
        {"random", 0, FLAG_SWITCH, &o->random, NULL,
         "random weights instead of a checkpoint; the answers mean nothing"},
        {"shape", 0, FLAG_STRING, &o->shape, "NAME", "with --random: tiny or base"},
        {"max-length", 'l', FLAG_INT, &o->max_length, "N",
         "most tokens of a text; 0: the checkpoint's number of positions, at most 512"},
        {"batch-size", 'b', FLAG_INT, &o->batch, "N", "texts in a batch"},
        {"device", 'd', FLAG_STRING, &o->device, "WHERE",
         "cpu; gpu: a GPU or simt; auto: a GPU if there is one, else the CPU"},
        {"stage", 0, FLAG_STRING, &o->stage, "NAME", "stage of the course, by name or number"},
        {"dtype", 0, FLAG_STRING, &o->dtype, "TYPE",
         "fp32, fp16 or bf16: type of the matmul inputs; only some stages have 16-bit types"},
        {"threads", 't', FLAG_INT, &o->threads, "N", "most CPU threads"},
    };
    memcpy(table, flags, sizeof flags);
}

static const char without_weights[] =
    "give --checkpoint DIR, a BERT fine-tuned for classification as Hugging Face stores it "
    "(config.json, model.safetensors, vocab.txt); 'bazel run //datasets:random_bert -- "
    "--output-dir DIR' makes one to try; --random needs none";

static enum status check_source(struct classifier_options *o, struct error *error) {
    if (!o->random && strcmp(o->shape, classifier_options_defaults().shape) != 0) {
        return error_set(error, STATUS_INVALID_ARGUMENT, "--shape has no effect without --random");
    }
    if (o->checkpoint != NULL && o->random) {
        return error_set(error, STATUS_INVALID_ARGUMENT, "give --checkpoint or --random, not both");
    }
    if (o->checkpoint == NULL && !o->random) {
        TRY(shipped_find(SHIPPED_CLASSIFIER, "--checkpoint", without_weights, o->shipped, error));
        o->checkpoint = o->shipped;
    }
    return STATUS_OK;
}

static enum status check_options(struct classifier_options *o, struct error *error) {
    struct bert_config shape;
    enum nn_dtype dtype;
    if (o->max_length != 0 && o->max_length < LEAST_LENGTH) {
        return error_set(error, STATUS_INVALID_ARGUMENT,
                         "--max-length %d: must be at least %d, including [CLS] and [SEP], or 0",
                         o->max_length, LEAST_LENGTH);
    }
    if (o->batch < 1 || o->batch > MOST_BATCH) {
        return error_set(error, STATUS_INVALID_ARGUMENT, "--batch-size %d: must be from 1 to %d",
                         o->batch, MOST_BATCH);
    }
    if (o->threads < 1 || o->threads > 1024) {
        return error_set(error, STATUS_INVALID_ARGUMENT, "--threads %d: must be from 1 to 1024",
                         o->threads);
    }
    if (strcmp(o->device, "auto") != 0 && strcmp(o->device, "gpu") != 0 &&
        strcmp(o->device, "cpu") != 0) {
        return error_set(error, STATUS_INVALID_ARGUMENT,
                         "--device is 'auto', 'gpu' or 'cpu', not '%s'", o->device);
    }
    TRY(bert_shape_parse(o->shape, &shape, error));
    TRY(dtype_flag_parse(o->dtype, &dtype, error));
    return check_source(o, error);
}

static enum status parse(const struct classifier_command *c, const struct flags *flags, int argc,
                         char **argv, struct arguments *arguments, struct error *error) {
    TRY(flags_read(flags, argc, argv, arguments, error));
    if (arguments->help) {
        return STATUS_OK;
    }
    if (!c->texts && arguments->count > 0) {
        return error_set(error, STATUS_INVALID_ARGUMENT, "unexpected argument '%s'; --help helps",
                         arguments->values[0]);
    }
    return check_options(c->options, error);
}

static enum status parse_command(const struct classifier_command *c, int argc, char **argv,
                                 struct arguments *arguments, struct error *error) {
    struct flag table[CLASSIFIER_MOST_FLAGS];
    add_shared_flags(c->options, table);
    for (size_t i = 0; i < c->own_count; i++) {
        table[CLASSIFIER_FLAGS + i] = c->own[i];
    }
    const struct flags flags = {
        .program = c->program,
        .positional = c->positional,
        .summary = c->summary,
        .table = table,
        .count = CLASSIFIER_FLAGS + c->own_count,
        .epilogue = c->epilogue,
    };
    return parse(c, &flags, argc, argv, arguments, error);
}

static enum status run_command(const struct classifier_command *c, int argc, char **argv,
                               const struct classifier_stages *stages, classifier_work *work,
                               void *options, struct arguments *arguments, struct error *error) {
    TRY(parse_command(c, argc, argv, arguments, error));
    if (arguments->help) {
        return STATUS_OK;
    }
    TRY(work(options, arguments, stages, error));
    return program_output_end(error);
}

int classifier_command_main(const struct classifier_command *c, int argc, char **argv,
                            const struct classifier_stages *stages, classifier_work *work,
                            void *options) {
    struct arguments arguments = {0};
    struct error error = {0};
    file_enter_working_directory();
    enum status status = run_command(c, argc, argv, stages, work, options, &arguments, &error);
    free(arguments.values);
    return program_exit_status(c->program, &error, status);
}

/* ---- The engine ---- */

/* The last stage on the device or on the CPU; NULL: this build has none. */
static const struct classifier_stage *last_stage(const struct classifier_stages *stages,
                                                 bool on_device) {
    const struct classifier_stage *found = NULL;
    for (size_t i = 0; i < stages->count; i++) {
        if (stages->table[i].on_device == on_device) {
            found = &stages->table[i];
        }
    }
    return found;
}

static enum status find_stage(struct classifier_session *s, const char *name,
                              const struct classifier_stages *stages, struct error *error) {
    size_t found;
    TRY(stage_flag_find(stages->table, stages->count, sizeof *stages->table, name, &found, error));
    s->stage = &stages->table[found];
    return STATUS_OK;
}

/* Whether there is a GPU; simt does not count. */
static bool real_gpu(struct classifier_session *s, const struct classifier_stages *stages) {
    return last_stage(stages, true) != NULL && stages->open_device != NULL &&
           stages->open_device(&s->device, NULL) == STATUS_OK && !s->device.modelled;
}

/* --device beside --stage: one of them would have no effect. */
static enum status check_device(const struct classifier_stage *stage, const char *device,
                                struct error *error) {
    if (strcmp(device, "auto") == 0 || stage->on_device == (strcmp(device, "gpu") == 0)) {
        return STATUS_OK;
    }
    return error_set(error, STATUS_INVALID_ARGUMENT, "--device %s: stage %s runs on %s", device,
                     stage->name, stage->on_device ? "a GPU or simt" : "the CPU");
}

static enum status choose_stage(struct classifier_session *s, const struct classifier_options *o,
                                const struct classifier_stages *stages, struct error *error) {
    if (o->stage != NULL) {
        TRY(find_stage(s, o->stage, stages, error));
        return check_device(s->stage, o->device, error);
    }
    bool on_device =
        strcmp(o->device, "gpu") == 0 || (strcmp(o->device, "auto") == 0 && real_gpu(s, stages));
    s->stage = last_stage(stages, on_device);
    return s->stage != NULL ? STATUS_OK
                            : error_set(error, STATUS_UNSUPPORTED,
                                        "this build has no stage for --device %s; ./setup.sh "
                                        "shows what is not installed",
                                        on_device ? "gpu" : "cpu");
}

/* Lists the stages that compute in 16-bit types; "" when none does. */
static void list_16_bit(const struct classifier_stages *stages, char *names, size_t room) {
    names[0] = '\0';
    for (size_t i = 0; i < stages->count; i++) {
        if (stages->table[i].create16 != NULL) {
            stage_list_add(names, room, stages->table[i].name);
        }
    }
}

enum status classifier_engine_create(struct engine *engine, const struct classifier_stage *stage,
                                     enum nn_dtype dtype, int threads,
                                     const struct classifier_stages *stages, struct error *error) {
    char names[256];
    if (dtype == NN_F32) {
        return stage->create(engine, threads, error);
    }
    if (stage->create16 != NULL) {
        return stage->create16(engine, dtype, error);
    }
    list_16_bit(stages, names, sizeof names);
    return error_set(error, STATUS_UNSUPPORTED,
                     "--dtype %s: it computes in fp32 only; stages with %s: %s",
                     nn_dtype_name(dtype), nn_dtype_name(dtype),
                     names[0] != '\0' ? names : "none in this build");
}

static enum status start_engine(struct classifier_session *s, const struct classifier_options *o,
                                const struct classifier_stages *stages, struct error *error) {
    TRY(choose_stage(s, o, stages, error));
    TRY(dtype_flag_parse(o->dtype, &s->dtype, error));
    s->now = bench_now;
    if (s->stage->on_device) {
        TRY(stages->open_device(&s->device, error));
        s->now = stages->device_now;
    }
    struct error cause = {0};
    enum status status =
        classifier_engine_create(&s->engine, s->stage, s->dtype, o->threads, stages, &cause);
    return status == STATUS_OK ? STATUS_OK
                               : error_set(error, status, "cannot start the engine %s: %s",
                                           s->stage->name, error_text(&cause, status));
}

/* ---- The model ---- */

static enum status check_length(struct classifier_session *s, const struct classifier_options *o,
                                struct error *error) {
    size_t positions = s->model.config.T;
    size_t usual = positions < USUAL_LENGTH ? positions : USUAL_LENGTH;
    s->max_length = o->max_length > 0 ? (size_t)o->max_length : usual;
    s->batch = (size_t)o->batch;
    if (s->max_length > positions || positions < LEAST_LENGTH) {
        return error_set(error, STATUS_TOO_LONG, "--max-length %zu: the model has %zu positions",
                         s->max_length, positions);
    }
    return STATUS_OK;
}

static enum status open_model(struct classifier_session *s, const struct classifier_options *o,
                              size_t labels, const char *wanted_by, struct error *error) {
    const struct classifier_source source = {
        .checkpoint = o->checkpoint,
        .vocab = o->vocab,
        .shape = o->shape,
        .labels = labels,
        .seed = SEED,
    };
    TRY(classifier_model_open(&s->model, &source, error));
    if (wanted_by != NULL && s->model.config.labels != labels) {
        return error_set(error, STATUS_MISMATCH,
                         "%s: the model has %zu labels, but %s has %zu; give a model for that data",
                         o->checkpoint, s->model.config.labels, wanted_by, labels);
    }
    return check_length(s, o, error);
}

static enum status open_session(struct classifier_session *s, const struct classifier_options *o,
                                const struct classifier_stages *stages, size_t labels,
                                const char *wanted_by, struct error *error) {
    TRY(open_model(s, o, labels, wanted_by, error));
    return start_engine(s, o, stages, error);
}

enum status classifier_session_open(struct classifier_session *session,
                                    const struct classifier_options *options,
                                    const struct classifier_stages *stages, size_t labels,
                                    const char *wanted_by, struct error *error) {
    *session = (struct classifier_session){0};
    enum status status = open_session(session, options, stages, labels, wanted_by, error);
    if (status != STATUS_OK) {
        classifier_session_close(session);
    }
    return status;
}

void classifier_session_close(struct classifier_session *session) {
    engine_destroy(&session->engine);
    classifier_model_close(&session->model);
    *session = (struct classifier_session){0};
}

const char *classifier_session_where(const struct classifier_session *s, char *text, size_t size) {
    static const struct program_device cpu = {.name = "the CPU"};
    return program_where(s->stage->name, s->dtype, s->stage->on_device ? &s->device : &cpu, text,
                         size);
}
