#include "common/programs/classifier/answering.h"

#include <cjson/cJSON.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/file.h"
#include "common/base/json_object.h"
#include "common/programs/program.h"

/* ---- One answer ---- */

static void print_answer(const struct classifier_model *model, const float *logits,
                         const double *probabilities) {
    size_t labels = model->config.labels;
    fputs(model->labels[classifier_answer(logits, labels)].name, stdout);
    for (size_t i = 0; i < labels; i++) {
        printf("\t%s %.4f", model->labels[i].name, probabilities[i]);
    }
    putchar('\n');
}

/* The answer as an object; NULL: there is no memory. */
static char *answer_json(const struct classifier_model *model, const float *logits,
                         const double *probabilities, const struct answering_text *text) {
    size_t labels = model->config.labels;
    char *copy = strndup(text->bytes, text->length), *json = NULL;
    cJSON *object = cJSON_CreateObject();
    bool added =
        copy != NULL && cJSON_AddStringToObject(object, "text", copy) != NULL &&
        cJSON_AddStringToObject(object, "label",
                                model->labels[classifier_answer(logits, labels)].name) != NULL;
    cJSON *values = cJSON_AddObjectToObject(object, "probabilities");
    for (size_t i = 0; i < labels && added; i++) {
        added = json_add_rounded(values, model->labels[i].name, probabilities[i]);
    }
    if (added && cJSON_AddBoolToObject(object, "cut", text->encoded->cut) != NULL) {
        json = cJSON_PrintUnformatted(object);
    }
    cJSON_Delete(object);
    free(copy);
    return json;
}

/* ---- Logits as a file ---- */

static enum status logits_open(struct logits_file *file, const struct classifier_session *s,
                               struct error *error) {
    file->stream = open_memstream(&file->text, &file->size);
    if (file->stream == NULL) {
        return error_set(error, STATUS_OUT_OF_MEMORY, "out of memory for the logits");
    }
    fprintf(file->stream, "{\"stage\":\"%s\",\"dtype\":\"%s\",\"texts\":[", s->stage->name,
            nn_dtype_name(s->dtype));
    return STATUS_OK;
}

static void logits_add(struct logits_file *file, const struct classifier_text *text,
                       const float *logits, size_t labels) {
    if (file->stream == NULL) {
        return;
    }
    fprintf(file->stream, "%s\n{\"ids\":[", file->begun ? "," : "");
    file->begun = true;
    for (size_t i = 0; i < text->count; i++) {
        fprintf(file->stream, "%s%d", i > 0 ? "," : "", (int)text->ids[i]);
    }
    fputs("],\"logits\":[", file->stream);
    for (size_t i = 0; i < labels; i++) {
        fprintf(file->stream, "%s%.9g", i > 0 ? "," : "", (double)logits[i]);
    }
    fputs("]}", file->stream);
}

/* Ends the text, and writes the file if `status`, the status so far, is STATUS_OK. (After Ctrl-C an
   older file with all texts is worth more.) */
static enum status logits_close(struct logits_file *file, const char *path, enum status status,
                                struct error *error) {
    if (file->stream == NULL) {
        return status;
    }
    fputs("\n]}\n", file->stream);
    bool whole = fclose(file->stream) == 0;
    if (status == STATUS_OK) {
        status = whole ? file_write(path, file->text, file->size, error)
                       : error_set(error, STATUS_OUT_OF_MEMORY, "out of memory for the logits");
    }
    free(file->text);
    return status;
}

/* ---- Batches ---- */

enum status answering_create(struct answering *a, const struct classifier_session *s, size_t batch,
                             struct error *error) {
    size_t labels = s->model.config.labels;
    a->session = s;
    TRY(classifier_create(&a->classifier, &s->model, &s->engine, batch, s->max_length, error));
    a->logits = calloc(batch * labels, sizeof *a->logits);
    a->probabilities = calloc(labels, sizeof *a->probabilities);
    a->texts = calloc(batch, sizeof *a->texts);
    a->batch = calloc(batch, sizeof *a->batch);
    if (a->logits == NULL || a->probabilities == NULL || a->texts == NULL || a->batch == NULL) {
        return error_set(error, STATUS_OUT_OF_MEMORY, "out of memory");
    }
    return a->logits_path != NULL ? logits_open(&a->file, s, error) : STATUS_OK;
}

enum status answering_end(struct answering *a, enum status status, struct error *error) {
    status = logits_close(&a->file, a->logits_path, status, error);
    free(a->batch);
    free(a->texts);
    free(a->probabilities);
    free(a->logits);
    classifier_free(&a->classifier);
    *a = (struct answering){.json = false};
    return status;
}

static enum status put_answer(struct answering *a, const struct answering_text *text,
                              const float *logits, struct error *error) {
    const struct classifier_model *model = &a->session->model;
    size_t labels = model->config.labels;
    logits_add(&a->file, text->encoded, logits, labels);
    classifier_probabilities(logits, labels, a->probabilities);
    if (!a->json) {
        print_answer(model, logits, a->probabilities);
        return STATUS_OK;
    }
    char *json = answer_json(model, logits, a->probabilities, text);
    if (json == NULL) {
        return error_set(error, STATUS_OUT_OF_MEMORY, "out of memory for an answer");
    }
    puts(json);
    free(json);
    return STATUS_OK;
}

enum status answering_run(struct answering *a, size_t count, struct error *error) {
    size_t labels = a->session->model.config.labels;
    for (size_t i = 0; i < count; i++) {
        a->batch[i] = a->texts[i].encoded;
    }
    struct classifier_batch laid_out = classifier_batch(&a->classifier, a->batch, count, false, 0);
    TRY(classifier_run(&a->classifier, &laid_out, a->logits, error));
    for (size_t i = 0; i < count; i++) {
        TRY(put_answer(a, &a->texts[i], a->logits + i * labels, error));
    }
    return program_output_end(error);
}
