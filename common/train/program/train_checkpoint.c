#include "common/train/program/train_checkpoint.h"

#include <cjson/cJSON.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/base/file.h"
#include "common/base/hash.h"
#include "common/base/json_object.h"
#include "common/base/whole_folder.h"
#include "common/train/program/train_weights.h"

enum { SCHEMA = 2, TRAINING_LIMIT = 1 << 20, VOCABULARY_LIMIT = 256 << 20 };

static const char CHECKPOINT[] = "checkpoint-";

/* ---- The folder ---- */

/* The step of a checkpoint's name; false: it is another name. */
static bool parse_name(const char *name, uint64_t *step) {
    size_t length = sizeof CHECKPOINT - 1;
    if (strncmp(name, CHECKPOINT, length) != 0 || name[length] < '0' || name[length] > '9') {
        return false;
    }
    char *end;
    errno = 0;
    *step = strtoull(name + length, &end, 10);
    return *end == '\0' && errno == 0;
}

static bool is_mine(const char *name) {
    uint64_t step;
    return strcmp(name, "best") == 0 || strcmp(name, "final") == 0 || parse_name(name, &step);
}

const char *train_store_path(const struct train_store *store, uint64_t step,
                             char path[FOLDER_PATH_BYTES]) {
    snprintf(path, FOLDER_PATH_BYTES, "%.4000s/%s%" PRIu64, store->folder, CHECKPOINT, step);
    return path;
}

static enum status take_lock(struct train_store *store, struct error *error) {
    char path[FOLDER_PATH_BYTES];
    TRY(folder_join(path, store->folder, ".lock", "output folder", error));
    store->lock = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0666);
    if (store->lock < 0) {
        return error_set(error, STATUS_IO, "%s: cannot create: %s", path, strerror(errno));
    }
    if (flock(store->lock, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK) {
        return error_set(error, STATUS_IO, "%s: another program is training into this folder",
                         store->folder);
    }
    return STATUS_OK; /* also on a file system without locks */
}

/* Keeps the last of several checkpoints, which an interrupted program may leave; removes others. */
static enum status take_checkpoint(struct train_store *store, uint64_t step, struct error *error) {
    uint64_t older = step;
    if (!store->has_checkpoint) {
        store->step = step;
        store->has_checkpoint = true;
        return STATUS_OK;
    }
    if (step > store->step) {
        older = store->step;
        store->step = step;
    }
    char path[FOLDER_PATH_BYTES];
    return whole_folder_remove(train_store_path(store, older, path), error);
}

static enum status find_checkpoint(struct train_store *store, struct error *error) {
    DIR *folder = opendir(store->folder);
    if (folder == NULL) {
        return error_set(error, STATUS_IO, "%s: cannot read the folder: %s", store->folder,
                         strerror(errno));
    }
    enum status status = STATUS_OK;
    const struct dirent *entry;
    while (status == STATUS_OK && (entry = readdir(folder)) != NULL) {
        uint64_t step;
        if (parse_name(entry->d_name, &step)) {
            status = take_checkpoint(store, step, error);
        }
    }
    closedir(folder);
    return status;
}

static enum status open_folder(struct train_store *store, struct error *error) {
    store->made = !path_exists(store->folder);
    TRY(whole_folder_make(store->folder, error));
    TRY(take_lock(store, error));
    TRY(whole_folder_recover(store->folder, is_mine, error));
    return find_checkpoint(store, error);
}

enum status train_store_open(struct train_store *store, const char *folder, struct error *error) {
    *store = (struct train_store){.lock = -1};
    if (strlen(folder) > 3000) {
        return error_set(error, STATUS_TOO_LONG, "--output-dir: the path is too long");
    }
    snprintf(store->folder, sizeof store->folder, "%s", folder);
    enum status status = open_folder(store, error);
    if (status != STATUS_OK) {
        train_store_close(store);
    }
    return status;
}

void train_store_close(struct train_store *store) {
    if (store->lock >= 0) {
        close(store->lock);
    }
    store->lock = -1;
}

void train_store_discard(struct train_store *store) {
    char path[FOLDER_PATH_BYTES];
    struct stat log;
    if (!store->made) {
        return;
    }
    snprintf(path, sizeof path, "%.4000s/log.jsonl", store->folder);
    if (stat(path, &log) == 0 && log.st_size == 0) {
        unlink(path);
    }
    snprintf(path, sizeof path, "%.4000s/.lock", store->folder);
    unlink(path);
    rmdir(store->folder); /* stays if there is more in it */
}

/* ---- Writing ---- */

static enum status copy_vocabulary(const char *folder, const struct train_vocabulary *vocabulary,
                                   struct error *error) {
    char *text;
    size_t size;
    TRY(file_read(vocabulary->path, VOCABULARY_LIMIT, &text, &size, error));
    enum status status = folder_write(folder, vocabulary->name, text, size, "checkpoint", error);
    free(text);
    return status;
}

/* Writes model.safetensors, config.json and the vocabulary. */
static enum status write_model(const char *folder, const struct train_subject *s,
                               enum nn_dtype dtype, struct error *error) {
    char path[FOLDER_PATH_BYTES], *json;
    TRY(folder_join(path, folder, "model.safetensors", "checkpoint", error));
    TRY(train_weights_write(s->model, path, dtype, error));
    TRY(train_config_serialize(s->config, s->label_names, dtype, &json, error));
    enum status status =
        folder_write(folder, "config.json", json, strlen(json), "checkpoint", error);
    free(json);
    return status == STATUS_OK ? copy_vocabulary(folder, s->vocabulary, error) : status;
}

/* ---- Checksums ---- */

/* The files of a checkpoint that training.json has checksums of. */
static const char *const summed[] = {"model.safetensors", "optimizer.safetensors"};

static enum status sum_file(const char *folder, const char *name, char sum[24],
                            struct error *error) {
    char path[FOLDER_PATH_BYTES];
    struct file_view view;
    TRY(folder_join(path, folder, name, "checkpoint", error));
    TRY(file_view_open(&view, path, error));
    snprintf(sum, 24, "%016" PRIx64, checksum_bytes(view.data, view.size));
    file_view_close(&view);
    return STATUS_OK;
}

static enum status add_sums(cJSON *root, const char *folder, struct error *error) {
    cJSON *sums = cJSON_AddObjectToObject(root, "checksums");
    for (size_t i = 0; i < sizeof summed / sizeof *summed; i++) {
        char sum[24];
        TRY(sum_file(folder, summed[i], sum, error));
        if (cJSON_AddStringToObject(sums, summed[i], sum) == NULL) {
            return error_set(error, STATUS_OUT_OF_MEMORY, "out of memory for a checkpoint");
        }
    }
    return STATUS_OK;
}

/* Checkpoints of earlier versions have no checksums. */
static enum status check_sums(const cJSON *root, const char *folder, struct error *error) {
    const cJSON *sums = json_member(root, "checksums");
    for (size_t i = 0; i < sizeof summed / sizeof *summed && sums != NULL; i++) {
        char sum[24];
        const char *want = cJSON_GetStringValue(json_member(sums, summed[i]));
        TRY(sum_file(folder, summed[i], sum, error));
        if (want == NULL || strcmp(sum, want) != 0) {
            return error_set(error, STATUS_BAD_FORMAT,
                             "%s/%s is damaged: its checksum is %s, in training.json it is %.24s",
                             folder, summed[i], sum, want != NULL ? want : "missing");
        }
    }
    return STATUS_OK;
}

/* ---- The position ---- */

/* Adds the loss since the last line of the curve. */
static bool add_loss(cJSON *root, const struct train_point *point) {
    cJSON *loss = cJSON_AddObjectToObject(root, "loss");
    cJSON *ranks = point->ranks > 0 ? cJSON_AddArrayToObject(loss, "ranks") : NULL;
    for (size_t r = 0; r < point->ranks; r++) {
        if (!cJSON_AddItemToArray(ranks, cJSON_CreateNumber(point->of_rank[r]))) {
            return false;
        }
    }
    return loss != NULL &&
           cJSON_AddNumberToObject(loss, "steps", (double)point->loss_steps) != NULL &&
           cJSON_AddNumberToObject(loss, "sum", point->loss_sum) != NULL &&
           cJSON_AddNumberToObject(loss, "left", point->loss_left) != NULL;
}

static cJSON *describe(const struct train_point *point, const struct cJSON *settings) {
    cJSON *root = cJSON_CreateObject();
    bool added = root != NULL && cJSON_AddNumberToObject(root, "schema", SCHEMA) != NULL &&
                 cJSON_AddNumberToObject(root, "step", (double)point->step) != NULL &&
                 cJSON_AddNumberToObject(root, "epoch", (double)point->epoch) != NULL &&
                 cJSON_AddNumberToObject(root, "batch", (double)point->batch) != NULL &&
                 add_loss(root, point);
    if (added && point->has_best) {
        cJSON *best = cJSON_AddObjectToObject(root, "best");
        added = best != NULL && cJSON_AddNumberToObject(best, "score", point->best) != NULL &&
                cJSON_AddNumberToObject(best, "step", (double)point->best_step) != NULL;
    }
    if (added && point->evaluates) {
        added = cJSON_AddTrueToObject(root, "evaluates") != NULL;
    }
    cJSON *copy = added ? cJSON_Duplicate(settings, true) : NULL;
    if (copy == NULL || !cJSON_AddItemToObject(root, "settings", copy)) {
        cJSON_Delete(root);
        return NULL;
    }
    return root;
}

/* Takes the object. */
static enum status write_object(const char *folder, cJSON *root, struct error *error) {
    char *text = root != NULL ? cJSON_Print(root) : NULL;
    cJSON_Delete(root);
    if (text == NULL) {
        return error_set(error, STATUS_OUT_OF_MEMORY, "out of memory for a checkpoint");
    }
    enum status status =
        folder_write(folder, "training.json", text, strlen(text), "checkpoint", error);
    free(text);
    return status;
}

/* After the files that it has checksums of. */
static enum status write_training(const char *folder, const struct train_point *point,
                                  const struct cJSON *settings, struct error *error) {
    cJSON *root = describe(point, settings);
    enum status status = root != NULL ? add_sums(root, folder, error) : STATUS_OK;
    if (status != STATUS_OK) {
        cJSON_Delete(root);
        return status;
    }
    return write_object(folder, root, error);
}

static enum status write_checkpoint(const char *folder, const struct train_subject *s,
                                    const struct train_point *point, struct error *error) {
    char path[FOLDER_PATH_BYTES];
    TRY(write_model(folder, s, NN_F32, error));
    TRY(folder_join(path, folder, "optimizer.safetensors", "checkpoint", error));
    TRY(train_moments_write(s->model, path, s->type, error));
    return write_training(folder, point, s->settings, error);
}

/* Publishes a folder whose files have been written, or removes it if `written` is a failure. */
static enum status publish(const char *path, enum status written, struct error *error) {
    if (written != STATUS_OK) {
        whole_folder_abandon(path);
        return written;
    }
    return whole_folder_finish(path, error);
}

enum status train_checkpoint_write(struct train_store *store, const struct train_subject *s,
                                   const struct train_point *point, struct error *error) {
    char path[FOLDER_PATH_BYTES], partial[FOLDER_PATH_BYTES];
    train_store_path(store, point->step, path);
    TRY(whole_folder_begin(path, partial, error));
    TRY(publish(path, write_checkpoint(partial, s, point, error), error));
    bool older = store->has_checkpoint && store->step != point->step;
    uint64_t step = store->step;
    store->has_checkpoint = true;
    store->step = point->step;
    return older ? whole_folder_remove(train_store_path(store, step, path), error) : STATUS_OK;
}

enum status train_model_save(const struct train_store *store, const struct train_subject *s,
                             const char *name, struct error *error) {
    char path[FOLDER_PATH_BYTES], partial[FOLDER_PATH_BYTES];
    TRY(folder_join(path, store->folder, name, "model", error));
    TRY(whole_folder_begin(path, partial, error));
    return publish(path, write_model(partial, s, s->save_dtype, error), error);
}

/* ---- Reading ---- */

static enum status read_count(const cJSON *root, const char *key, uint64_t *out,
                              struct error *error) {
    size_t value;
    if (!json_size(json_member(root, key), &value)) {
        return error_set(error, STATUS_BAD_FORMAT, "\"%s\" is missing or no whole number", key);
    }
    *out = value;
    return STATUS_OK;
}

static enum status read_number(const cJSON *root, const char *key, double *out,
                               struct error *error) {
    const cJSON *value = json_member(root, key);
    if (!cJSON_IsNumber(value)) {
        return error_set(error, STATUS_BAD_FORMAT, "\"%s\" is missing or no number", key);
    }
    *out = value->valuedouble;
    return STATUS_OK;
}

static enum status read_loss(const cJSON *root, struct train_point *point, struct error *error) {
    const cJSON *loss = json_member(root, "loss");
    TRY(read_count(loss, "steps", &point->loss_steps, error));
    TRY(read_number(loss, "sum", &point->loss_sum, error));
    const cJSON *part, *ranks = json_member(loss, "ranks");
    cJSON_ArrayForEach(part, ranks) {
        if (!cJSON_IsNumber(part) || point->ranks == TRAIN_MOST_RANKS) {
            return error_set(error, STATUS_BAD_FORMAT, "\"ranks\" is not a list of %d numbers",
                             TRAIN_MOST_RANKS);
        }
        point->of_rank[point->ranks++] = part->valuedouble;
    }
    return read_number(loss, "left", &point->loss_left, error);
}

static enum status read_point(const cJSON *root, struct train_point *point, struct error *error) {
    uint64_t schema = 0;
    *point = (struct train_point){0};
    TRY(read_count(root, "schema", &schema, error));
    if (schema != SCHEMA) {
        return error_set(error, STATUS_UNSUPPORTED, "\"schema\" is %" PRIu64 ", not %d", schema,
                         SCHEMA);
    }
    TRY(read_count(root, "step", &point->step, error));
    TRY(read_count(root, "epoch", &point->epoch, error));
    TRY(read_count(root, "batch", &point->batch, error));
    TRY(read_loss(root, point, error));
    point->evaluates = cJSON_IsTrue(json_member(root, "evaluates"));
    const cJSON *best = json_member(root, "best");
    if (best == NULL) {
        return STATUS_OK;
    }
    TRY(read_number(best, "score", &point->best, error));
    point->has_best = true;
    return read_count(best, "step", &point->best_step, error);
}

static enum status read_object(const cJSON *root, const struct cJSON *settings,
                               struct train_point *point, struct error *error) {
    TRY(read_point(root, point, error));
    return train_settings_compare(settings, json_member(root, "settings"), error);
}

static enum status parse_training(const char *folder, const char *path, const char *text,
                                  size_t size, const struct cJSON *settings,
                                  struct train_point *point, struct error *error) {
    cJSON *root;
    enum status status = json_object_parse(&root, text, size, error);
    if (status != STATUS_OK) {
        return error_prefix(error, status, path);
    }
    status = read_object(root, settings, point, error);
    status =
        status == STATUS_OK ? check_sums(root, folder, error) : error_prefix(error, status, path);
    cJSON_Delete(root);
    return status;
}

static enum status read_training(const char *folder, const struct cJSON *settings,
                                 struct train_point *point, struct error *error) {
    char path[FOLDER_PATH_BYTES], *text;
    size_t size;
    TRY(folder_join(path, folder, "training.json", "checkpoint", error));
    TRY(file_read(path, TRAINING_LIMIT, &text, &size, error));
    enum status status = parse_training(folder, path, text, size, settings, point, error);
    free(text);
    return status;
}

enum status train_checkpoint_read(const struct train_store *store, const struct train_subject *s,
                                  struct train_point *point, struct error *error) {
    char folder[FOLDER_PATH_BYTES], path[FOLDER_PATH_BYTES];
    struct train_missing missing;
    train_store_path(store, store->step, folder);
    TRY(read_training(folder, s->settings, point, error));
    if (point->step != store->step) {
        return error_set(error, STATUS_BAD_FORMAT, "%s: training.json is of step %" PRIu64, folder,
                         point->step);
    }
    TRY(train_weights_load(s->model, folder, &missing, error));
    if (missing.count > 0) {
        return error_set(error, STATUS_BAD_FORMAT, "%s/model.safetensors: tensor \"%s\" is missing",
                         folder, missing.first);
    }
    TRY(folder_join(path, folder, "optimizer.safetensors", "checkpoint", error));
    return train_moments_read(s->model, path, s->type, error);
}
