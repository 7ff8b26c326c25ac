/*
 * Writes a BERT classifier with random weights in Hugging Face's format: config.json,
 * model.safetensors, vocab.txt. Its answers mean nothing; its sizes and its speed are real.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "common/base/file.h"
#include "common/base/flags.h"
#include "common/base/folder.h"
#include "common/base/terminal.h"
#include "common/checkpoints/bert/bert_checkpoint.h"
#include "common/checkpoints/bert/bert_example.h"
#include "common/checkpoints/bert/bert_random.h"
#include "common/tokenizers/wordpiece/wordpiece.h"

enum { BASE_PIECES = 30522, MOST_LABELS = 1000, MOST_VOCABULARY = 64 << 20 };

static const char program[] = "random_bert";

struct options {
    const char *folder, *shape, *vocab;
    int labels;
    uint64_t seed;
    struct bert_config config;
};

static enum status check_options(struct options *o, const struct arguments *arguments,
                                 struct error *error) {
    if (arguments->count > 0) {
        return error_set(error, STATUS_INVALID_ARGUMENT,
                         "unexpected argument '%s'; --help lists the flags", arguments->values[0]);
    }
    if (o->folder == NULL || o->folder[0] == '\0') {
        return error_set(error, STATUS_INVALID_ARGUMENT,
                         "--output-dir DIR is needed: the folder to write the checkpoint to");
    }
    if (o->labels < 1 || o->labels > MOST_LABELS) {
        return error_set(error, STATUS_INVALID_ARGUMENT, "--labels is %d, must be from 1 to %d",
                         o->labels, MOST_LABELS);
    }
    return bert_shape_parse(o->shape, &o->config, error);
}

/* Reads the command line; sets *help if it printed the help. */
static enum status read_options(int argc, char **argv, struct options *o, bool *help,
                                struct error *error) {
    const struct flag table[] = {
        {"output-dir", 'o', FLAG_STRING, &o->folder, "DIR",
         "folder to write to; created if it does not exist"},
        {"shape", 's', FLAG_STRING, &o->shape, "NAME",
         "tiny (2 layers of 64) or base (12 layers of 768, 440 MB)"},
        {"labels", 'n', FLAG_INT, &o->labels, "N", "number of classes"},
        {"vocab", 0, FLAG_STRING, &o->vocab, "FILE",
         "vocabulary, as bert-base-uncased's vocab.txt; without this flag: single characters"},
        {"seed", 0, FLAG_U64, &o->seed, "N", "seed of the weights"},
    };
    const struct flags flags = {
        .program = program,
        .positional = "",
        .summary = "writes a BERT classifier with random weights, to try programs without a model",
        .table = table,
        .count = sizeof table / sizeof *table,
    };
    struct arguments arguments;
    enum status status = flags_read(&flags, argc, argv, &arguments, error);
    *help = arguments.help;
    if (status == STATUS_OK && !*help) {
        status = check_options(o, &arguments, error);
    }
    free(arguments.values);
    return status;
}

/* Reads or makes the vocabulary and checks it. *pieces receives the number of its pieces. */
static enum status read_vocabulary(const struct options *o, char **text, size_t *size,
                                   size_t *pieces, struct error *error) {
    struct wordpiece *wordpiece;
    if (o->vocab != NULL) {
        TRY(file_read(o->vocab, MOST_VOCABULARY, text, size, error));
    } else if (bert_letters_vocabulary(strcmp(o->shape, "base") == 0 ? BASE_PIECES : 0, text,
                                       size) != STATUS_OK) {
        return error_set(error, STATUS_OUT_OF_MEMORY, "out of memory for the vocabulary");
    }
    enum status status = wordpiece_parse(&wordpiece, *text, *size, error);
    if (status != STATUS_OK) {
        return o->vocab != NULL ? error_prefix(error, status, o->vocab) : status;
    }
    *pieces = wordpiece_size(wordpiece);
    wordpiece_free(wordpiece);
    return STATUS_OK;
}

static enum status serialize_weights(const struct options *o, unsigned char **data, size_t *size,
                                     struct error *error) {
    struct bert_random model;
    enum status status = bert_random_create(&model, &o->config, o->seed);
    if (status != STATUS_OK) {
        return error_set(error, status, "cannot make the weights: %s", status_message(status));
    }
    status = bert_checkpoint_serialize(&o->config, &model.weights, data, size, error);
    bert_random_free(&model);
    return status;
}

static enum status write_weights(const struct options *o, struct error *error) {
    unsigned char *data;
    size_t size;
    TRY(serialize_weights(o, &data, &size, error));
    enum status status =
        folder_write(o->folder, "model.safetensors", data, size, "checkpoint", error);
    free(data);
    return status;
}

static enum status write_config(const struct options *o, struct error *error) {
    char *json;
    enum status status = bert_config_serialize(&o->config, &json);
    if (status != STATUS_OK) {
        return error_set(error, status, "cannot write the configuration: %s",
                         status_message(status));
    }
    status = folder_write(o->folder, "config.json", json, strlen(json), "checkpoint", error);
    free(json);
    return status;
}

static enum status create_folder(const char *folder, struct error *error) {
    if (mkdir(folder, 0777) != 0 && errno != EEXIST) {
        return error_set(error, STATUS_IO, "%s: cannot make the folder: %s", folder,
                         strerror(errno));
    }
    return STATUS_OK;
}

/* The configuration is written last, so that a folder with a configuration is complete. */
static enum status write_files(const struct options *o, const char *vocabulary, size_t size,
                               struct error *error) {
    TRY(create_folder(o->folder, error));
    TRY(folder_write(o->folder, "vocab.txt", vocabulary, size, "checkpoint", error));
    TRY(write_weights(o, error));
    return write_config(o, error);
}

static enum status write_all(struct options *o, struct error *error) {
    char *vocabulary = NULL;
    size_t size;
    enum status status = read_vocabulary(o, &vocabulary, &size, &o->config.V, error);
    o->config.labels = (size_t)o->labels;
    if (status == STATUS_OK) {
        status = write_files(o, vocabulary, size, error);
    }
    free(vocabulary);
    return status;
}

int main(int argc, char **argv) {
    struct options options = {.shape = "tiny", .labels = 2, .seed = 1};
    struct error error = {0};
    bool help = false;
    file_enter_working_directory();
    enum status status = read_options(argc, argv, &options, &help, &error);
    if (status == STATUS_OK && !help) {
        status = write_all(&options, &error);
    }
    if (status == STATUS_OK && !help) {
        printf("%s: BERT %s with random weights, %zu pieces, %d labels; its answers mean nothing\n",
               options.folder, options.shape, options.config.V, options.labels);
    }
    return status == STATUS_OK ? 0 : report_failure(program, &error, status);
}
