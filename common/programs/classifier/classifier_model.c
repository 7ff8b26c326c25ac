/* Opens a classifier's weights, vocabulary and label names, or makes random ones. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/file.h"
#include "common/checkpoints/bert/bert_example.h"
#include "common/programs/classifier/classifier.h"

enum { MOST_CONFIG = 16 << 20, PATH_BYTES = 4096, BASE_PIECES = 30522 };

/* path = FOLDER/NAME. */
static enum status join(char *path, const char *folder, const char *name, struct error *error) {
    int length = snprintf(path, PATH_BYTES, "%s/%s", folder, name);
    return length > 0 && length < PATH_BYTES
               ? STATUS_OK
               : error_set(error, STATUS_TOO_LONG, "%.100s...: the path is too long", folder);
}

static bool is_weights_file(const char *path) {
    static const char end[] = ".safetensors";
    size_t length = strlen(path);
    return length >= sizeof end && strcmp(path + length - (sizeof end - 1), end) == 0;
}

/* The folder of a checkpoint, which may be given as the path of its weights. */
static enum status folder_of(const char *checkpoint, char *folder, struct error *error) {
    TRY(join(folder, checkpoint, "", error));
    folder[strlen(folder) - 1] = '\0';
    if (is_weights_file(checkpoint)) {
        char *slash = strrchr(folder, '/');
        if (slash == NULL) {
            strcpy(folder, ".");
        } else {
            slash[slash == folder] = '\0'; /* "/model.safetensors" lies in "/" */
        }
    }
    return STATUS_OK;
}

static enum status load_weights(struct classifier_model *m, const struct packed_config *packed,
                                const char *path, struct error *error) {
    struct bert_config config = m->config;
    TRY(bert_checkpoint_open_file(&m->checkpoint, &config, packed, path, error));
    m->config = m->checkpoint.config;
    m->weights = &m->checkpoint.weights;
    return STATUS_OK;
}

static enum status parse_config(struct classifier_model *m, struct packed_config *packed,
                                const char *json, size_t size, struct error *error) {
    TRY(bert_config_parse(&m->config, json, size, error));
    TRY(packed_config_parse(packed, json, size, error));
    return bert_labels_parse(json, size, m->config.labels, &m->labels, error);
}

static enum status read_config(struct classifier_model *m, struct packed_config *packed,
                               const char *path, struct error *error) {
    char *json;
    size_t size;
    TRY(file_read(path, MOST_CONFIG, &json, &size, error));
    enum status status = parse_config(m, packed, json, size, error);
    free(json);
    return status == STATUS_OK ? STATUS_OK : error_prefix(error, status, path);
}

static enum status open_checkpoint(struct classifier_model *m,
                                   const struct classifier_source *source, struct error *error) {
    char folder[PATH_BYTES], path[PATH_BYTES], weights[PATH_BYTES];
    struct packed_config packed;
    if (file_is_regular(source->checkpoint) && !is_weights_file(source->checkpoint)) {
        return error_set(error, STATUS_INVALID_ARGUMENT,
                         "%s: is no checkpoint; give a folder with config.json, model.safetensors "
                         "and vocab.txt, or a .safetensors file",
                         source->checkpoint);
    }
    TRY(folder_of(source->checkpoint, folder, error));
    TRY(join(path, folder, "config.json", error));
    TRY(read_config(m, &packed, path, error));
    TRY(join(weights, folder, "model.safetensors", error));
    const char *file = is_weights_file(source->checkpoint) ? source->checkpoint : weights;
    TRY(load_weights(m, &packed, file, error));
    if (m->config.labels == 0) {
        return error_set(error, STATUS_UNSUPPORTED,
                         "%s: has no classifier (classifier.weight); give a BERT fine-tuned for "
                         "classification",
                         file);
    }
    if (source->vocab != NULL) {
        return wordpiece_open(&m->wordpiece, source->vocab, error);
    }
    TRY(join(path, folder, "vocab.txt", error));
    return wordpiece_open(&m->wordpiece, path, error);
}

static enum status open_random_vocabulary(struct classifier_model *m,
                                          const struct classifier_source *source,
                                          struct error *error) {
    if (source->vocab != NULL) {
        return wordpiece_open(&m->wordpiece, source->vocab, error);
    }
    char *text;
    size_t size;
    size_t pieces = strcmp(source->shape, "base") == 0 ? BASE_PIECES : 0;
    TRY(bert_letters_vocabulary(pieces, &text, &size));
    enum status status = wordpiece_parse(&m->wordpiece, text, size, error);
    free(text);
    return status;
}

static enum status open_random(struct classifier_model *m, const struct classifier_source *source,
                               struct error *error) {
    TRY(bert_shape_parse(source->shape, &m->config, error));
    TRY(open_random_vocabulary(m, source, error));
    m->config.V = wordpiece_size(m->wordpiece);
    m->config.labels = source->labels;
    TRY(bert_labels_parse(NULL, 0, m->config.labels, &m->labels, error));
    enum status status = bert_random_create(&m->random, &m->config, source->seed);
    m->weights = &m->random.weights;
    return status == STATUS_OK
               ? STATUS_OK
               : error_set(error, status, "cannot make random weights: %s", status_message(status));
}

static enum status open_source(struct classifier_model *m, const struct classifier_source *source,
                               struct error *error) {
    TRY(source->checkpoint != NULL ? open_checkpoint(m, source, error)
                                   : open_random(m, source, error));
    if (wordpiece_size(m->wordpiece) > m->config.V) {
        return error_set(error, STATUS_MISMATCH,
                         "the vocabulary has %zu pieces, the checkpoint's word embedding %zu rows: "
                         "give the checkpoint's own vocabulary",
                         wordpiece_size(m->wordpiece), m->config.V);
    }
    return STATUS_OK;
}

enum status classifier_model_open(struct classifier_model *model,
                                  const struct classifier_source *source, struct error *error) {
    *model = (struct classifier_model){0};
    enum status status = open_source(model, source, error);
    if (status != STATUS_OK) {
        classifier_model_close(model);
    }
    return status;
}

void classifier_model_close(struct classifier_model *model) {
    wordpiece_free(model->wordpiece);
    bert_checkpoint_close(&model->checkpoint);
    bert_random_free(&model->random);
    free(model->labels);
    *model = (struct classifier_model){0};
}
