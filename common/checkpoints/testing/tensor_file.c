#include "common/checkpoints/testing/tensor_file.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "common/base/file.h"
#include "common/testing/testing.h"

enum status tensor_file_parse(struct tensor_file *f) {
    safetensors_close(&f->file);
    return safetensors_parse(&f->file, f->data, f->size, NULL);
}

bool tensor_file_write_again(struct tensor_file *f) {
    unsigned char *data;
    size_t size;
    if (safetensors_serialize(f->file.tensors, f->file.count, &data, &size, NULL) != STATUS_OK) {
        return false;
    }
    free(f->data);
    f->data = data;
    f->size = size;
    return tensor_file_parse(f) == STATUS_OK;
}

void tensor_file_free(struct tensor_file *f) {
    safetensors_close(&f->file);
    free(f->data);
}

struct safetensors_tensor *tensor_file_find(struct tensor_file *f, const char *name) {
    for (size_t i = 0; i < f->file.count; i++) {
        if (strcmp(f->file.tensors[i].name, name) == 0) {
            return &f->file.tensors[i];
        }
    }
    return NULL;
}

void tensor_file_rename(struct safetensors_tensor *tensor, const char *name) {
    free(tensor->name);
    tensor->name = strdup(name);
}

void tensor_file_remove(struct tensor_file *f, struct safetensors_tensor *tensor) {
    free(tensor->name);
    *tensor = f->file.tensors[--f->file.count];
}

void tensor_file_retype(struct tensor_file *f, const char *entry, const char *type) {
    unsigned char *found = memmem(f->data, f->size, entry, strlen(entry));
    ASSERT_TRUE(found != NULL);
    memcpy(found + strlen(entry) - 3, type, 3);
}

bool tensor_file_change(struct tensor_file *f, const struct tensor_case *change) {
    struct safetensors_tensor *tensor = tensor_file_find(f, change->tensor);
    EXPECT_TRUE(tensor != NULL);
    if (tensor == NULL) {
        return false;
    }
    size_t rows = tensor->shape[0];
    switch (change->change) {
    case TENSOR_REMOVE:
        tensor_file_remove(f, tensor);
        break;
    case TENSOR_TRANSPOSE:
        tensor->shape[0] = tensor->shape[1];
        tensor->shape[1] = rows;
        break;
    case TENSOR_FLATTEN:
        tensor->rank = 1;
        tensor->shape[0] *= tensor->shape[1];
    }
    return tensor_file_write_again(f);
}

const char *checkpoint_folder(const char *name, char *folder, size_t size) {
    test_temporary_path(name, folder, size);
    EXPECT_INT_EQ(0, mkdir(folder, 0755));
    return folder;
}

void checkpoint_write(const char *folder, const char *name, const void *data, size_t size) {
    char path[8192];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    EXPECT_OK(file_write(path, data, size, NULL));
}

void checkpoint_expect_same_config(const struct llama2_config *want,
                                   const struct llama2_config *got) {
    EXPECT_INT_EQ(want->C, got->C);
    EXPECT_INT_EQ(want->hidden, got->hidden);
    EXPECT_INT_EQ(want->L, got->L);
    EXPECT_INT_EQ(want->NH, got->NH);
    EXPECT_INT_EQ(want->KVH, got->KVH);
    EXPECT_INT_EQ(want->HS, got->HS);
    EXPECT_INT_EQ(want->V, got->V);
    EXPECT_INT_EQ(want->T, got->T);
    EXPECT_NEAR(want->rope_theta, got->rope_theta, 0.0);
    EXPECT_NEAR(want->norm_eps, got->norm_eps, 0.0);
    EXPECT_INT_EQ(want->rope_layout, got->rope_layout);
}
