#include "common/train/program/train_options.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/flags.h"
#include "common/programs/dtype_flag.h"
#include "common/texts/text_flags.h"

static const char *const task_names[] = {
    [TRAIN_CLASSIFY] = "classify", [TRAIN_MLM] = "mlm", [TRAIN_LM] = "lm"};

enum { TASKS = sizeof task_names / sizeof *task_names };

static const char EPILOGUE[] =
    "With neither --do-train nor --do-eval it does both.\n"
    "Your own labels may be any words or whole numbers. Their ids, sorted by value or by bytes, "
    "and\n"
    "names are written to config.json. Without --eval-data the last tenth of the file evaluates.\n"
    "The folder of --output-dir contains: checkpoint-STEP, the last checkpoint, from which\n"
    "--resume continues bit for bit; best, the model of the best evaluation; final, the last\n"
    "model; log.jsonl, the curves.\n"
    "Bits per byte of lm: the sum of -log2 p over the tokens of the evaluated texts, divided by\n"
    "the bytes of these texts in UTF-8. BOS at the beginning of a text is not counted.\n"
    "With --gpus N a step has N times --accumulate batches, and its result is that of one GPU "
    "with\n"
    "as many to --accumulate, but for the rounding of sums; the same N gives the same bits. Under\n"
    "srun or mpirun give --gpus the number of their processes.\n"
    "examples:\n"
    "  train --task classify --data tickets.csv --text-column body --label-column team \\\n"
    "        --load-checkpoint datasets/reviews_bert --output-dir tickets\n"
    "  train --task mlm --dataset imdb --data aclImdb_unsup.tar.xz --vocab vocab.txt \\\n"
    "        --max-length 256 --output-dir pretrained\n"
    "  train --task classify --dataset imdb --data aclImdb_labelled.tar.xz \\\n"
    "        --load-checkpoint pretrained/final --max-length 256 --output-dir reviews\n"
    "  train --task lm --dataset text --data stories.txt --vocab tokenizer.bin --output-dir tiny";

const char *train_task_name(enum train_task task) {
    return task_names[task];
}

static struct train_options defaults(void) {
    return (struct train_options){
        .max_length = 128,
        .batch_size = 32,
        .accumulate = 1,
        .gpus = 1,
        .epochs = 3,
        .seed = 1,
        .log_every = 10,
        .decay = 0.01f,
        .warmup = 0.06f,
        .dropout = 0.1f,
        .asked = 0.15f,
        .clip = 1.0f,
        .beta1 = 0.9f,
        .beta2 = 0.999f,
        .eps = 1e-8f,
        .model_name = "llama2",
        .schedule_name = "linear",
        .dtype_name = "fp32",
        .save_dtype_name = "fp32",
        .device = "auto",
        .hidden = 256,
        .layers = 4,
        .heads = 4,
        .tied = true,
    };
}

/* ---- Checks ---- */

static enum status refuse_number(struct error *error, const char *flag, double value,
                                 const char *range) {
    return error_set(error, STATUS_INVALID_ARGUMENT, "--%s %g: %s", flag, value, range);
}

static enum status check_sizes(const struct train_options *o, struct error *error) {
    const struct {
        const char *flag;
        int value, least, most;
    } numbers[] = {
        {"max-length", o->max_length, 3, 1 << 20},
        {"batch-size", o->batch_size, 1, 1 << 16},
        {"accumulate", o->accumulate, 1, 1 << 16},
        {"epochs", o->epochs, 1, 1 << 20},
        {"gpus", o->gpus, 1, TRAIN_MOST_RANKS},
        {"zero", o->zero, 0, 1},
        {"train-rows", o->train_rows, 0, INT32_MAX},
        {"eval-rows", o->eval_rows, 0, INT32_MAX},
        {"hidden", o->hidden, 1, 1 << 16},
        {"layers", o->layers, 1, 1 << 10},
        {"heads", o->heads, 1, 1 << 10},
        {"kv-heads", o->kv_heads, 0, 1 << 10},
        {"intermediate", o->intermediate, 0, 1 << 20},
        {"positions", o->positions, 0, 1 << 20},
    };
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        if (numbers[i].value < numbers[i].least || numbers[i].value > numbers[i].most) {
            return error_set(error, STATUS_INVALID_ARGUMENT, "--%s %d: from %d to %d",
                             numbers[i].flag, numbers[i].value, numbers[i].least, numbers[i].most);
        }
    }
    return STATUS_OK;
}

static enum status check_rates(const struct train_options *o, struct error *error) {
    const struct {
        const char *flag;
        float value;
        bool below_one;
    } numbers[] = {
        {"lr", o->rate, false},       {"weight-decay", o->decay, false},
        {"warmup", o->warmup, false}, {"dropout", o->dropout, true},
        {"clip", o->clip, false},     {"beta1", o->beta1, true},
        {"beta2", o->beta2, true},
    };
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        if (numbers[i].value < 0.0f || (numbers[i].below_one && numbers[i].value >= 1.0f)) {
            return refuse_number(error, numbers[i].flag, (double)numbers[i].value,
                                 numbers[i].below_one ? "at least 0 and below 1" : "at least 0");
        }
    }
    if (!(o->asked > 0.0f && o->asked < 1.0f)) {
        return refuse_number(error, "mlm-probability", (double)o->asked, "more than 0 and below 1");
    }
    return o->eps > 0.0f ? STATUS_OK : refuse_number(error, "eps", (double)o->eps, "more than 0");
}

bool train_options_new_gpt_neox(const struct train_options *o) {
    return strcmp(o->model_name, "gpt-neox") == 0;
}

static enum status check_model(const struct train_options *o, struct error *error) {
    return train_options_new_gpt_neox(o) || strcmp(o->model_name, "llama2") == 0
               ? STATUS_OK
               : error_set(error, STATUS_INVALID_ARGUMENT,
                           "--model is 'llama2' or 'gpt-neox', not '%s'", o->model_name);
}

static enum status read_task(struct train_options *o, struct error *error) {
    for (int i = 0; i < TASKS && o->task_name != NULL; i++) {
        if (strcmp(o->task_name, task_names[i]) == 0) {
            o->task = (enum train_task)i;
            return STATUS_OK;
        }
    }
    return o->task_name == NULL
               ? error_set(error, STATUS_INVALID_ARGUMENT,
                           "--task classify|mlm|lm is needed; --help shows how")
               : error_set(error, STATUS_INVALID_ARGUMENT,
                           "--task is 'classify', 'mlm' or 'lm', not '%s'", o->task_name);
}

static enum status check_data(struct train_options *o, struct error *error) {
    if (o->data == NULL) {
        return error_set(error, STATUS_INVALID_ARGUMENT, "--data PATH is needed; --help shows how");
    }
    TRY(text_dataset_choose(&o->kind, o->dataset, o->data, &o->columns, error));
    o->dataset = text_dataset_name(o->kind);
    if (o->task == TRAIN_CLASSIFY && !text_dataset_has_labels(o->kind)) {
        return error_set(error, STATUS_INVALID_ARGUMENT,
                         "--dataset %s: its texts have no labels, which --task classify needs",
                         o->dataset);
    }
    if (o->task != TRAIN_CLASSIFY && o->columns.label != NULL) {
        return error_set(error, STATUS_INVALID_ARGUMENT,
                         "--label-column %s: --task %s reads no labels", o->columns.label,
                         o->task_name);
    }
    return STATUS_OK;
}

static enum status check_what(struct train_options *o, struct error *error) {
    TRY(read_task(o, error));
    TRY(check_data(o, error));
    if (!o->train && !o->evaluate) {
        o->train = o->evaluate = true;
    }
    if (o->train && (o->output == NULL || o->output[0] == '\0')) {
        return error_set(error, STATUS_INVALID_ARGUMENT,
                         "--output-dir DIR is needed: the folder for the model");
    }
    if (!o->train && o->load == NULL) {
        return error_set(error, STATUS_INVALID_ARGUMENT,
                         "--do-eval without --do-train needs --load-checkpoint DIR, the model");
    }
    if (o->config != NULL && o->load != NULL) {
        return error_set(error, STATUS_INVALID_ARGUMENT,
                         "give --config or --load-checkpoint, not both");
    }
    if (o->vocab == NULL && o->load == NULL) {
        return error_set(error, STATUS_INVALID_ARGUMENT, "--vocab FILE is needed: %s",
                         o->task == TRAIN_LM ? "tokenizer.bin or tokenizer.json"
                                             : "vocab.txt, a piece a line");
    }
    return STATUS_OK;
}

/* Refuses flags that the task does not have. (Their defaults cannot be told from a flag.) */
static enum status check_effects(const struct train_options *o, struct error *error) {
    const struct train_options usual = defaults();
    bool lm = o->task == TRAIN_LM;
    const struct {
        const char *flag, *task;
        bool useless;
    } cases[] = {
        {"dropout", "classify or mlm: language models have none",
         lm && o->dropout != usual.dropout && o->dropout != 0.0f},
        {"mlm-probability", "mlm", o->task != TRAIN_MLM && o->asked != usual.asked},
        {"kv-heads", "lm --model llama2",
         (!lm || train_options_new_gpt_neox(o)) && o->kv_heads != usual.kv_heads},
        {"model", "lm", !lm && strcmp(o->model_name, usual.model_name) != 0},
        {"tied", "lm", !lm && o->tied != usual.tied},
    };
    if (o->zero > 0 && o->gpus == 1) {
        return error_set(error, STATUS_INVALID_ARGUMENT,
                         "--zero %d has no effect without --gpus above 1", o->zero);
    }
    if (o->gpus > 1 && (strcmp(o->device, "cpu") == 0 || strcmp(o->device, "reference") == 0)) {
        return error_set(error, STATUS_INVALID_ARGUMENT, "--gpus %d: --device %s is no GPU",
                         o->gpus, o->device);
    }
    if (o->gpus > 1 && !o->train) {
        return error_set(error, STATUS_INVALID_ARGUMENT,
                         "--gpus %d has no effect without --do-train", o->gpus);
    }
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        if (cases[i].useless) {
            return error_set(error, STATUS_INVALID_ARGUMENT, "--%s has no effect without --task %s",
                             cases[i].flag, cases[i].task);
        }
    }
    return STATUS_OK;
}

/* Fills in defaults that depend on the task. */
static void fill_in(struct train_options *o) {
    if (o->rate == 0.0f) {
        o->rate = o->task == TRAIN_CLASSIFY ? 5e-5f : 5e-4f;
    }
    if (o->split == NULL) {
        bool unlabelled = o->task != TRAIN_CLASSIFY && o->kind == TEXT_DATASET_IMDB;
        o->split = unlabelled ? TEXT_DATASET_UNLABELLED : "train";
    }
    if (o->task == TRAIN_LM) {
        o->dropout = 0.0f; /* language models have none */
    }
    if (o->log_every == 0) {
        o->log_every = 1;
    }
}

static enum status check(struct train_options *o, const struct arguments *arguments,
                         struct error *error) {
    if (arguments->count > 0) {
        return error_set(error, STATUS_INVALID_ARGUMENT, "unexpected argument '%s'; --help helps",
                         arguments->values[0]);
    }
    TRY(check_what(o, error));
    TRY(check_model(o, error));
    TRY(check_sizes(o, error));
    TRY(check_rates(o, error));
    TRY(check_effects(o, error));
    TRY(train_decay_parse(o->schedule_name, &o->schedule, error));
    TRY(dtype_flag_parse(o->dtype_name, &o->dtype, error));
    if (o->dtype == NN_F16) {
        return error_set(error, STATUS_INVALID_ARGUMENT, "--dtype is 'fp32' or 'bf16', not 'fp16'");
    }
    if (dtype_flag_parse(o->save_dtype_name, &o->save_dtype, NULL) != STATUS_OK) {
        return error_set(error, STATUS_INVALID_ARGUMENT,
                         "--save-dtype is 'fp32', 'fp16' or 'bf16', not '%s'", o->save_dtype_name);
    }
    fill_in(o);
    return STATUS_OK;
}

/* ---- The flags, in four groups ---- */

enum { MOST_FLAGS = 64 };

/* Flags about the texts. @return their number */
static size_t add_texts_flags(struct train_options *o, struct flag *table) {
    const struct flag flags[] = {
        {"task", 't', FLAG_STRING, &o->task_name, "NAME",
         "classify (BERT, labels), mlm (BERT, masked tokens) or lm (next token: --model)"},
        {"data", 0, FLAG_STRING, &o->data, "PATH",
         "a file of your own: .csv, .tsv or .jsonl, or without labels .txt; or, with --dataset "
         "imdb: a folder, .tar or .tar.xz; agnews: a CSV or its folder; text, sample: a file"},
        TEXT_FLAGS_TEXT(&o->columns),
        TEXT_FLAGS_LABEL(&o->columns),
        {"dataset", 0, FLAG_STRING, &o->dataset, "NAME",
         "imdb, agnews, text, sample or file; default: by the ending of --data"},
        {"split", 0, FLAG_STRING, &o->split, "NAME",
         "split to train on: train, test, or unsup (imdb without labels, the default for mlm, lm)"},
        {"train-rows", 0, FLAG_INT, &o->train_rows, "N",
         "train on the first N texts; 0: all except those for evaluation"},
        {"eval-data", 0, FLAG_STRING, &o->eval_data, "PATH",
         "data set to evaluate on; default: --data"},
        {"eval-split", 0, FLAG_STRING, &o->eval_split, "NAME",
         "split to evaluate on; default: test, or the texts of --split not used for training"},
        {"eval-rows", 0, FLAG_INT, &o->eval_rows, "N",
         "evaluate on N texts, in the same split those after the training texts; 0: all of them, "
         "without --train-rows the last tenth"},
        {"vocab", 0, FLAG_STRING, &o->vocab, "PATH",
         "vocab.txt, or for lm tokenizer.bin or .json; default: of --load-checkpoint"},
        {"max-length", 'l', FLAG_INT, &o->max_length, "N", "most tokens of a sequence"},
    };
    memcpy(table, flags, sizeof flags);
    return sizeof flags / sizeof *flags;
}

/* Flags about the training steps. @return their number */
static size_t add_steps_flags(struct train_options *o, struct flag *table) {
    const struct flag flags[] = {
        {"batch-size", 'b', FLAG_INT, &o->batch_size, "N", "sequences in a batch"},
        {"accumulate", 0, FLAG_INT, &o->accumulate, "N", "batches in a step, of each GPU"},
        {"gpus", 0, FLAG_INT, &o->gpus, "N",
         "train on N GPUs of this host, a process each, which share the batches of a step"},
        {"zero", 0, FLAG_INT, &o->zero, "0|1",
         "1: each GPU has AdamW's moments of its part of the weights alone (ZeRO-1)"},
        {"epochs", 'e', FLAG_INT, &o->epochs, "N", "passes through all texts"},
        {"max-steps", 0, FLAG_U64, &o->max_steps, "N",
         "number of steps, instead of --epochs; 0: use --epochs"},
        {"lr", 0, FLAG_FLOAT, &o->rate, "X",
         "highest learning rate; 0: 5e-5 for classify, 5e-4 for others"},
        {"weight-decay", 0, FLAG_FLOAT, &o->decay, "X",
         "weight decay of matrices and embeddings (AdamW)"},
        {"warmup", 0, FLAG_FLOAT, &o->warmup, "X",
         "steps until the highest learning rate; below 1: share of all steps"},
        {"schedule", 0, FLAG_STRING, &o->schedule_name, "NAME",
         "decay of the learning rate after that: linear or cosine"},
        {"dropout", 0, FLAG_FLOAT, &o->dropout, "P", "share of BERT's activations set to 0"},
        {"mlm-probability", 0, FLAG_FLOAT, &o->asked, "P", "mlm: share of tokens to predict"},
        {"clip", 0, FLAG_FLOAT, &o->clip, "X", "largest norm of a step's gradient; 0: any"},
        {"beta1", 0, FLAG_FLOAT, &o->beta1, "X", "beta1 of AdamW"},
        {"beta2", 0, FLAG_FLOAT, &o->beta2, "X", "beta2 of AdamW"},
        {"eps", 0, FLAG_FLOAT, &o->eps, "X", "epsilon of AdamW"},
        {"seed", 's', FLAG_U64, &o->seed, "N", "seed of weights, order, masked tokens and dropout"},
        {"dtype", 0, FLAG_STRING, &o->dtype_name, "NAME",
         "type of activations: fp32, or bf16 with weights in fp32"},
        {"device", 'd', FLAG_STRING, &o->device, "NAME",
         "auto, gpu, cpu, or reference (in double, on the CPU, for tiny models)"},
    };
    memcpy(table, flags, sizeof flags);
    return sizeof flags / sizeof *flags;
}

/* Flags about the model. @return their number */
static size_t add_model_flags(struct train_options *o, struct flag *table) {
    const struct flag flags[] = {
        {"model", 0, FLAG_STRING, &o->model_name, "NAME",
         "new model, lm: llama2 or gpt-neox, a quarter of whose heads is rotated; with --config "
         "its "
         "model_type counts"},
        {"config", 0, FLAG_STRING, &o->config, "FILE", "config.json with the sizes of a new model"},
        {"hidden", 0, FLAG_INT, &o->hidden, "N", "new model: channels"},
        {"layers", 0, FLAG_INT, &o->layers, "N", "new model: layers"},
        {"heads", 0, FLAG_INT, &o->heads, "N", "new model: heads"},
        {"kv-heads", 0, FLAG_INT, &o->kv_heads, "N",
         "new model, lm: heads of keys and values; 0: as many as --heads"},
        {"intermediate", 0, FLAG_INT, &o->intermediate, "N",
         "new model: channels of the feed-forward; 0: 4 times --hidden, for llama2 8/3 times"},
        {"positions", 0, FLAG_INT, &o->positions, "N", "new model: longest text; 0: --max-length"},
        {"tied", 0, FLAG_SWITCH, &o->tied, NULL,
         "lm: the embedding is also the classifier; --tied=false: it is not"},
        {"load-checkpoint", 'c', FLAG_STRING, &o->load, "DIR", "initial weights"},
    };
    memcpy(table, flags, sizeof flags);
    return sizeof flags / sizeof *flags;
}

/* Flags about output and actions. @return their number */
static size_t add_output_flags(struct train_options *o, struct flag *table) {
    const struct flag flags[] = {
        {"output-dir", 'o', FLAG_STRING, &o->output, "DIR", "folder for checkpoints and models"},
        {"save-every", 0, FLAG_U64, &o->save_every, "N", "steps between checkpoints; 0: an epoch"},
        {"eval-every", 0, FLAG_U64, &o->eval_every, "N", "steps between evaluations; 0: an epoch"},
        {"save-dtype", 0, FLAG_STRING, &o->save_dtype_name, "NAME",
         "type of the models best and final: fp32, fp16 or bf16"},
        {"log", 0, FLAG_STRING, &o->log, "FILE",
         "curves, as JSON lines; default: log.jsonl in --output-dir"},
        {"log-every", 0, FLAG_U64, &o->log_every, "N", "steps between lines of the curves"},
        {"resume", 0, FLAG_SWITCH, &o->resume, NULL,
         "continue from the checkpoint, if there is one"},
        {"do-train", 0, FLAG_SWITCH, &o->train, NULL, "train"},
        {"do-eval", 0, FLAG_SWITCH, &o->evaluate, NULL,
         "evaluate; with --do-train after each epoch"},
        {"do-profile", 0, FLAG_SWITCH, &o->profile, NULL,
         "print the time of each operator at the end (slower)"},
    };
    memcpy(table, flags, sizeof flags);
    return sizeof flags / sizeof *flags;
}

static enum status parse(struct train_options *o, int argc, char **argv,
                         struct arguments *arguments, struct error *error) {
    struct flag table[MOST_FLAGS];
    size_t count = add_texts_flags(o, table);
    count += add_steps_flags(o, table + count);
    count += add_model_flags(o, table + count);
    count += add_output_flags(o, table + count);
    const struct flags flags = {
        .program = "train",
        .positional = "",
        .summary = "trains a BERT, a Llama2 or a GPT-NeoX",
        .table = table,
        .count = count,
        .epilogue = EPILOGUE,
    };
    return flags_read(&flags, argc, argv, arguments, error);
}

enum status train_options_parse(struct train_options *options, int argc, char **argv, bool *help,
                                struct error *error) {
    *options = defaults();
    struct arguments arguments;
    enum status status = parse(options, argc, argv, &arguments, error);
    *help = arguments.help;
    if (status == STATUS_OK && !*help) {
        status = check(options, &arguments, error);
    }
    free(arguments.values);
    return status;
}
