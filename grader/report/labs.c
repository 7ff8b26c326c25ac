#include "grader/report/labs.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/base/file.h"

static const struct lab course[LAB_COUNT] = {
    {"01_cpu_matmul", "Matmul on the CPU", "matmul.c"},
    {"02_gpu_matmul", "First CUDA matmul", "gpu_matmul.cu"},
    {"03_resident_weights", "Weights that stay", "resident.cu"},
    {"04_sgemm", "Tiled SGEMM", "sgemm.cu"},
    {"05_layernorm_softmax", "Norms and softmax", "layernorm_softmax.cu"},
    {"06_fused_epilogues", "Fused epilogues", "fused_epilogues.cu"},
    {"07_attention", "Attention", "attention.cu"},
    {"08_bert_classifier", "BERT classifier", "encoder.cu"},
    {"09_kv_cache", "KV cache", "kv_cache.cu"},
    {"10_llama2_decoder", "Llama2 decoder", "decoder.cu"},
    {"11_training", "Training", "training.cu"},
    {"12_tensor_cores", "Tensor cores", "tensor_cores.cu"},
    {"13_low_bit", "Weights of few bits", "low_bit.cu"},
    {"14_endless_text", "Text without end", "endless_text.cu"},
    {"15_many_gpus", "Many GPUs", "many_gpus.cu"},
};

static const struct lab warmups = {"00_warmups", "Warm-ups", NULL};

const struct lab *lab_at(size_t index) {
    return &course[index];
}

const struct lab *handout_at(size_t index) {
    return index < LAB_COUNT ? &course[index] : &warmups;
}

/* "04", "4" or the whole name; the length of what is asked for is given. */
static bool is_called(const struct lab *lab, const char *text, size_t length) {
    size_t digits = strspn(text, "0123456789");
    if (digits >= length && length > 0 && length <= 2) {
        return strtol(text, NULL, 10) == strtol(lab->name, NULL, 10);
    }
    return strlen(lab->name) == length && strncmp(lab->name, text, length) == 0;
}

static enum status find(const char *text, size_t length, const struct lab **lab,
                        struct error *error) {
    for (size_t i = 0; i < LAB_COUNT; i++) {
        if (is_called(&course[i], text, length)) {
            *lab = &course[i];
            return STATUS_OK;
        }
    }
    return error_set(
        error, STATUS_INVALID_ARGUMENT, "no lab '%.*s': they are %s to %s, or 01 to 15",
        (int)(length < 60 ? length : 60), text, course[0].name, course[LAB_COUNT - 1].name);
}

enum status lab_find(const char *text, const struct lab **lab, struct error *error) {
    return find(text, strlen(text), lab, error);
}

enum status handout_find(const char *text, size_t *index, struct error *error) {
    const struct lab *lab;
    if (is_called(&warmups, text, strlen(text))) {
        *index = LAB_COUNT;
        return STATUS_OK;
    }
    TRY(lab_find(text, &lab, error));
    *index = (size_t)(lab - course);
    return STATUS_OK;
}

enum status lab_choose(const char *list, const struct lab *chosen[LAB_COUNT], bool *with_warmups,
                       struct error *error) {
    bool all = list == NULL || list[0] == '\0';
    *with_warmups = all;
    for (size_t i = 0; i < LAB_COUNT; i++) {
        chosen[i] = all ? &course[i] : NULL;
    }
    while (!all && list[0] != '\0') {
        const struct lab *lab = NULL;
        size_t length = strcspn(list, ",");
        if (is_called(&warmups, list, length)) {
            *with_warmups = true;
        } else {
            TRY(find(list, length, &lab, error));
            chosen[lab - course] = lab;
        }
        list += length + (list[length] == ',');
    }
    return STATUS_OK;
}

void lab_starter_path(const struct lab *lab, const char *workspace, char *path, size_t size) {
    snprintf(path, size, "%s/labs/%s/given/starter%s", workspace, lab->name,
             strrchr(lab->file, '.'));
}

bool lab_file_is(const char *path, const char *starter) {
    struct file_view file = {0}, other = {0};
    bool same = file_view_open(&file, path, NULL) == STATUS_OK &&
                file_view_open(&other, starter, NULL) == STATUS_OK && file.size == other.size &&
                (file.size == 0 || memcmp(file.data, other.data, file.size) == 0);
    file_view_close(&file);
    file_view_close(&other);
    return same;
}

/* A path to this folder or to one above it: the last LEVELS parts of "../../.." */
static const char parents[] = "../../../../../../../..";

static const char *parent(size_t levels) {
    return levels == 0 ? "." : parents + sizeof parents - 3 * levels;
}

static int is_workspace(size_t levels) {
    char path[sizeof parents + sizeof "/WORKSPACE"];
    snprintf(path, sizeof path, "%s/WORKSPACE", parent(levels));
    if (access(path, F_OK) != 0) {
        return 0;
    }
    snprintf(path, sizeof path, "%s/labs", parent(levels));
    return access(path, F_OK) == 0;
}

const char *lab_workspace(void) {
    const char *workspace = getenv("BUILD_WORKSPACE_DIRECTORY");
    if (workspace != NULL && workspace[0] != '\0') {
        return workspace;
    }
    for (size_t levels = 0; levels <= sizeof parents / 3; levels++) {
        if (is_workspace(levels)) {
            return parent(levels);
        }
    }
    return ".";
}
