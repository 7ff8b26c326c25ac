/* Prepares a run. */
#include <cjson/cJSON.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/checked.h"
#include "common/base/file.h"
#include "common/bench/bench.h"
#include "common/train/cpu/train_cpu.h"
#include "common/train/program/train_program.h"
#include "common/train/program/train_run_internal.h"
#include "common/train/program/train_weights.h"

/* ---- The engines ---- */

/* Neither has another type. @param what what it computes in */
static enum status check_dtype(enum nn_dtype dtype, const char *what, struct error *error) {
    return dtype == NN_F32
               ? STATUS_OK
               : error_set(error, STATUS_INVALID_ARGUMENT, "--dtype %s: %s only; leave out --dtype",
                           nn_dtype_name(dtype), what);
}

static enum status explain(enum status status, struct error *error) {
    return status == STATUS_OK ? STATUS_OK : error_set(error, status, "%s", status_message(status));
}

enum status train_place_cpu(struct train_engine *engine, enum nn_dtype dtype,
                            struct train_where *where, struct error *error) {
    TRY(check_dtype(dtype, "the CPU computes in fp32", error));
    snprintf(where->name, sizeof where->name, "the CPU, in fp32");
    return explain(train_cpu_create(engine, bench_cpu_count()), error);
}

enum status train_place_reference(struct train_engine *engine, enum nn_dtype dtype,
                                  struct train_where *where, struct error *error) {
    TRY(check_dtype(dtype, "the reference computes in double", error));
    snprintf(where->name, sizeof where->name, "the CPU reference, in double");
    return explain(train_reference_create(engine), error);
}

static enum status refuse(const struct train_places *places, const char *name,
                          struct error *error) {
    char list[160] = "'auto'";
    for (size_t i = 0; i < places->count; i++) {
        size_t used = strlen(list);
        snprintf(list + used, sizeof list - used, "%s'%s'", i + 1 == places->count ? " or " : ", ",
                 places->table[i].name);
    }
    return error_set(error, STATUS_INVALID_ARGUMENT, "--device is %s, not '%s'", list, name);
}

enum status train_places_know(const struct train_places *places, const char *name,
                              struct error *error) {
    for (size_t i = 0; i < places->count; i++) {
        if (strcmp(name, places->table[i].name) == 0) {
            return STATUS_OK;
        }
    }
    return strcmp(name, "auto") == 0 ? STATUS_OK : refuse(places, name, error);
}

enum status train_places_create(const struct train_places *places, const char *name,
                                enum nn_dtype dtype, struct train_engine *engine,
                                struct train_where *where, struct error *error) {
    bool automatic = strcmp(name, "auto") == 0;
    for (size_t i = 0; i < places->count; i++) {
        const struct train_place *place = &places->table[i];
        if (!automatic && strcmp(name, place->name) != 0) {
            continue;
        }
        *engine = (struct train_engine){0};
        *where = (struct train_where){.modelled = false};
        enum status status = place->create(engine, dtype, where, error);
        bool next = automatic && status == STATUS_NO_DEVICE && i + 1 < places->count;
        if (!next) {
            return status;
        }
    }
    return refuse(places, name, error);
}

/* ---- The folder, vocabulary, texts ---- */

/* Before minutes of reading texts, so that a wrong --log costs none. */
static enum status open_log(struct train_run *r, struct error *error) {
    const struct train_options *o = r->options;
    struct train_report *report = &r->report;
    if (o->log == NULL) {
        TRY(folder_join(report->path, o->output, "log.jsonl", "curves", error));
    } else if (snprintf(report->path, sizeof report->path, "%s", o->log) >=
               (int)sizeof report->path) {
        return error_set(error, STATUS_TOO_LONG, "--log: the path is too long");
    }
    return file_open_append(report->path, &report->file, error);
}

/* Rank 0 has opened the folder; what it has found is true for all. */
static enum status share_store(struct train_run *r, struct error *error) {
    struct found {
        uint64_t step, has_checkpoint;
    } mine = {r->store.step, r->store.has_checkpoint}, all[RANKS_MOST];
    TRY(ranks_all_gather(r->ranks, &mine, sizeof mine, all, error));
    r->store.step = all[0].step;
    r->store.has_checkpoint = all[0].has_checkpoint != 0;
    return STATUS_OK;
}

static enum status open_own_store(struct train_run *r, struct error *error) {
    const struct train_options *o = r->options;
    TRY(train_store_open(&r->store, o->output, error));
    if (r->store.has_checkpoint && !o->resume) {
        return error_set(error, STATUS_INVALID_ARGUMENT,
                         "--output-dir %s: contains a run with a checkpoint at step %" PRIu64
                         ": continue it with --resume, or give another folder",
                         o->output, r->store.step);
    }
    return open_log(r, error);
}

static enum status open_store(struct train_run *r, struct error *error) {
    const struct train_options *o = r->options;
    if (!o->train) {
        return STATUS_OK;
    }
    if (train_run_speaks(r)) {
        TRY(open_own_store(r, error));
    } else {
        snprintf(r->store.folder, sizeof r->store.folder, "%s", o->output);
    }
    return share_store(r, error);
}

static enum status read_texts(struct train_run *r, struct error *error) {
    const struct train_options *o = r->options;
    TRY(train_config_choose(&r->config, o, error));
    TRY(train_vocabulary_open(&r->vocabulary, o->task, o->vocab != NULL ? o->vocab : o->load,
                              train_config_vocabulary(&r->config), error));
    r->config.bert.V = r->config.llama2.V = r->config.gpt_neox.V = r->vocabulary.size;
    TRY(train_labels_open(&r->labels, o, error));
    TRY(train_sets_read(&r->sets, o, &r->vocabulary, &r->labels, error));
    if (o->task == TRAIN_CLASSIFY) {
        const struct train_texts *texts = o->train ? &r->sets.texts : r->sets.evaluate.texts;
        r->config.bert.labels = texts->label_count;
    }
    return STATUS_OK;
}

static enum status open_batches(struct train_run *r, struct error *error) {
    const struct train_options *o = r->options;
    struct train_batches_options options = {
        .task = o->task,
        .batch_size = (size_t)o->batch_size,
        .max_length = (size_t)o->max_length,
        .seed = o->seed,
        .vocabulary = &r->vocabulary,
        .asked = o->asked,
    };
    if (o->train) {
        TRY(train_batches_create(&r->batches, &r->sets.train, &options, error));
    }
    options.texts_alone = true;
    if (o->evaluate) {
        TRY(train_batches_create(&r->evaluation, &r->sets.evaluate, &options, error));
    }
    r->memory = calloc(train_run_batches(r), sizeof *r->memory);
    if (r->memory == NULL) {
        return error_set(error, STATUS_OUT_OF_MEMORY, "out of memory for the batches");
    }
    for (uint64_t i = 0; i < train_run_batches(r); i++) {
        TRY(train_batch_memory_create(&r->memory[i], &options, error));
    }
    return STATUS_OK;
}

/* ---- The model ---- */

/* Sets the initial weights: random ones, then those of the checkpoint, if one is given. */
static enum status set_weights(struct train_run *r, struct error *error) {
    const char *load = r->options->load;
    struct train_missing missing;
    TRY(train_model_draw(r->model, r->options->seed, error));
    if (load == NULL) {
        return STATUS_OK;
    }
    TRY(train_weights_load(r->model, load, &missing, error));
    if (missing.count > 0 && !r->options->train) {
        return error_set(error, STATUS_BAD_FORMAT, "%s: tensor \"%s\" is missing", load,
                         missing.first);
    }
    if (missing.count > 0) {
        printf("%s has no head for this task: %zu tensors are initialised at random, from \"%s\" "
               "on\n",
               load, missing.count, missing.first);
    }
    return STATUS_OK;
}

static enum status make_model(struct train_run *r, const struct train_places *places,
                              struct error *error) {
    const struct train_options *o = r->options;
    const char *device = r->ranks != NULL ? "gpu" : o->device;
    if (r->ranks != NULL) {
        ranks_phase(r->ranks, "choosing a GPU");
        TRY(places->exchange->choose(places->exchange->context, r->ranks, error));
    }
    TRY(train_places_create(places, device, o->dtype, &r->engine, &r->where, error));
    if (r->ranks != NULL) {
        TRY(places->exchange->connect(&r->peers, places->exchange->context, &r->engine, error));
        r->peers.zero = o->zero == 1;
        r->config.peers = &r->peers;
    }
    if (o->profile) {
        train_profile_wrap(&r->profile, &r->engine, r->where.now);
    }
    r->config.most_sequences = (size_t)o->batch_size;
    if (!checked_multiply((size_t)o->batch_size, (size_t)o->max_length, &r->config.most_rows)) {
        return error_set(error, STATUS_OVERFLOW, "size of a batch overflows");
    }
    TRY(train_model_create(&r->model, &r->config, &r->engine, error));
    return STATUS_OK;
}

/* ---- The position in the run ---- */

static enum status plan(struct train_run *r, struct error *error) {
    const struct train_options *o = r->options;
    r->batch_count = train_batches_count(&r->batches);
    uint64_t most = train_run_batches(r), of_epoch = ceil_div(r->batch_count, (size_t)most);
    uint64_t total = o->max_steps > 0 ? o->max_steps : of_epoch * (uint64_t)o->epochs;
    if (total > UINT32_MAX / most) {
        return error_set(error, STATUS_INVALID_ARGUMENT, "%" PRIu64 " steps are too many", total);
    }
    r->schedule = (struct train_schedule){o->schedule, (double)o->rate, 0, total};
    TRY(train_warmup_steps((double)o->warmup, total, &r->schedule.warmup, error));
    r->settings = train_settings(o, &r->config, r->engine.weights, &r->sets.train);
    return r->settings != NULL ? STATUS_OK
                               : error_set(error, STATUS_OUT_OF_MEMORY, "out of memory");
}

/* What the ranks train, and how, one after the other: a message names what differs. */
static enum status compare_settings(struct train_run *r, struct error *error) {
    const cJSON *item;
    cJSON_ArrayForEach(item, r->settings) {
        TRY(ranks_compare(r->ranks, item->string, cJSON_GetStringValue(item), error));
    }
    return STATUS_OK;
}

/* The weights of all ranks are the same bytes. */
static enum status compare_weights(struct train_run *r, struct error *error) {
    uint64_t sum = 0;
    char text[96];
    if (r->ranks == NULL) {
        return STATUS_OK;
    }
    TRY(train_model_checksum(r->model, &sum, error));
    snprintf(text, sizeof text, "weights with the checksum %016" PRIx64, sum);
    return ranks_compare(r->ranks, r->options->load != NULL ? "--load-checkpoint" : "the model",
                         text, error);
}

/* Loads the checkpoint, or sets the initial weights if there is none. */
static enum status start_or_resume(struct train_run *r, struct error *error) {
    if (!r->store.has_checkpoint) {
        if (r->options->resume) {
            printf("--resume: there is no checkpoint, starting a new run\n");
        }
        return set_weights(r, error);
    }
    const struct train_subject subject = train_run_subject(r);
    TRY(train_checkpoint_read(&r->store, &subject, &r->point, error));
    size_t ranks = (size_t)ranks_count(r->ranks);
    if (r->ranks != NULL && r->point.ranks != ranks) {
        return error_set(error, STATUS_BAD_FORMAT, "%s: its checkpoint has the losses of %zu ranks",
                         r->store.folder, r->point.ranks);
    }
    TRY(train_model_write_loss(
        r->model, r->ranks != NULL ? r->point.of_rank[ranks_rank(r->ranks)] : r->point.loss_left,
        error));
    if (r->point.step > r->schedule.total || r->point.batch >= r->batch_count) {
        return error_set(error, STATUS_BAD_FORMAT,
                         "%s: its checkpoint lies after the end of the run", r->store.folder);
    }
    printf("resuming at step %" PRIu64 " of %" PRIu64 "\n", r->point.step, r->schedule.total);
    return STATUS_OK;
}

static enum status start_report(struct train_run *r, struct error *error) {
    struct train_report *report = &r->report;
    report->modelled = r->where.modelled;
    report->total = r->schedule.total;
    report->first_step = r->point.step;
    return r->options->train && train_run_speaks(r) ? train_report_start(report, error) : STATUS_OK;
}

/* ---- Description ---- */

/* "8.31 million". */
static const char *parameters(const struct train_model *model, char text[48]) {
    size_t count, sum = 0;
    const struct train_parameter *list = train_model_parameters(model, &count);
    for (size_t i = 0; i < count; i++) {
        sum += list[i].count;
    }
    if (sum < 100000) {
        snprintf(text, 48, "%zu", sum);
    } else {
        snprintf(text, 48, "%.2f million", (double)sum * 1e-6);
    }
    return text;
}

static void describe_part(const char *what, const char *name, const struct train_part *part,
                          const struct train_batches *batches) {
    printf("%s: %s: %zu sequences, %zu tokens\n", what, name, batches->sequences,
           train_part_ids(part));
}

static void describe(const struct train_run *r) {
    const struct train_options *o = r->options;
    const struct train_config *c = &r->config;
    bool lm = o->task == TRAIN_LM;
    char count[48];
    printf("%s: %s of %zu layers of %zu channels, %s parameters, on %s%s\n",
           train_task_name(o->task),
           !lm              ? "BERT"
           : c->is_gpt_neox ? "GPT-NeoX"
                            : "Llama2",
           !lm              ? c->bert.L
           : c->is_gpt_neox ? c->gpt_neox.L
                            : c->llama2.L,
           !lm              ? c->bert.C
           : c->is_gpt_neox ? c->gpt_neox.C
                            : c->llama2.C,
           parameters(r->model, count), r->where.name, o->dtype == NN_BF16 ? ", in bf16" : "");
    if (r->ranks != NULL) {
        printf("%d GPUs%s: %" PRIu64 " batches of %d in a step\n", ranks_count(r->ranks),
               o->zero == 1 ? ", ZeRO-1" : "", train_run_batches(r), o->batch_size);
    }
    if (o->train) {
        describe_part("train", r->sets.train_name, &r->sets.train, &r->batches);
    }
    if (o->evaluate) {
        describe_part("evaluate", r->sets.evaluate_name, &r->sets.evaluate, &r->evaluation);
    }
    train_labels_print(&r->labels, &r->sets.train);
    size_t cut = r->sets.texts.cut + r->sets.others.cut;
    if (cut > 0 && !lm) {
        printf("%zu texts are longer than %d tokens: %s\n", cut, o->max_length,
               o->task == TRAIN_MLM ? "each is several sequences" : "they are cut");
    }
}

enum status train_run_prepare(struct train_run *r, const struct train_places *places,
                              struct error *error) {
    r->store.lock = r->report.file = -1;
    r->last_loss = NAN;
    ranks_phase(r->ranks, "loading");
    TRY(open_store(r, error));
    TRY(read_texts(r, error));
    TRY(open_batches(r, error));
    TRY(make_model(r, places, error));
    describe(r);
    if (!r->options->train) {
        TRY(set_weights(r, error));
        return start_report(r, error);
    }
    TRY(plan(r, error));
    TRY(compare_settings(r, error));
    ranks_phase(r->ranks, "loading");
    TRY(start_or_resume(r, error));
    TRY(compare_weights(r, error));
    ranks_phase(r->ranks, "training");
    fflush(stdout);
    return start_report(r, error);
}

uint64_t train_run_batches(const struct train_run *r) {
    return (uint64_t)r->options->accumulate * (uint64_t)ranks_count(r->ranks);
}

bool train_run_speaks(const struct train_run *r) {
    return ranks_rank(r->ranks) == 0;
}

void train_run_free(struct train_run *r) {
    for (uint64_t i = 0; i < train_run_batches(r) && r->memory != NULL; i++) {
        train_batch_memory_free(&r->memory[i]);
    }
    free(r->memory);
    cJSON_Delete(r->settings);
    train_batches_free(&r->batches);
    train_batches_free(&r->evaluation);
    train_model_free(r->model);
    if (r->peers.free != NULL) {
        r->peers.free(&r->peers);
    }
    train_engine_destroy(&r->engine);
    train_sets_free(&r->sets);
    train_labels_free(&r->labels);
    train_vocabulary_close(&r->vocabulary);
    train_report_close(&r->report);
    train_store_close(&r->store);
}

struct train_subject train_run_subject(const struct train_run *r) {
    return (struct train_subject){
        .model = r->model,
        .config = &r->config,
        .label_names = r->config.task == TRAIN_CLASSIFY ? r->sets.train.texts->label_names : NULL,
        .vocabulary = &r->vocabulary,
        .type = r->engine.weights,
        .save_dtype = r->options->save_dtype,
        .settings = r->settings,
    };
}
