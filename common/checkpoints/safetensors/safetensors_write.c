#include "common/checkpoints/safetensors/safetensors_write.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static enum status write_error(const char *path, struct error *error) {
    return error_set(error, STATUS_IO, "%s: cannot write: %s", path, strerror(errno));
}

/* Writes all bytes, in several calls of write() if need be. */
static enum status write_bytes(int descriptor, const unsigned char *data, size_t size,
                               const char *path, struct error *error) {
    while (size > 0) {
        ssize_t count = write(descriptor, data, size);
        if (count < 0 && errno == EINTR) {
            continue;
        }
        if (count <= 0) {
            return write_error(path, error);
        }
        data += count;
        size -= (size_t)count;
    }
    return STATUS_OK;
}

/* `data` has room for the largest tensor. */
static enum status fill_and_write(int descriptor, const struct safetensors_tensor *tensors,
                                  size_t count, const struct safetensors_source *source,
                                  unsigned char *data, const char *path, struct error *error) {
    for (size_t i = 0; i < count; i++) {
        TRY(source->fill(source->context, i, data, error));
        TRY(write_bytes(descriptor, data, tensors[i].bytes, path, error));
    }
    return STATUS_OK;
}

static enum status write_tensors(int descriptor, const struct safetensors_tensor *tensors,
                                 size_t count, const struct safetensors_source *source,
                                 const char *path, struct error *error) {
    size_t largest = 1;
    for (size_t i = 0; i < count; i++) {
        largest = tensors[i].bytes > largest ? tensors[i].bytes : largest;
    }
    unsigned char *data = malloc(largest);
    if (data == NULL) {
        return error_set(error, STATUS_OUT_OF_MEMORY, "out of memory for %zu bytes", largest);
    }
    enum status status = fill_and_write(descriptor, tensors, count, source, data, path, error);
    free(data);
    return status;
}

static enum status write_file(int descriptor, const struct safetensors_tensor *tensors,
                              size_t count, const struct safetensors_source *source,
                              const char *path, struct error *error) {
    unsigned char *header;
    size_t size, data_size;
    TRY(safetensors_header(tensors, count, &header, &size, &data_size, error));
    enum status status = write_bytes(descriptor, header, size, path, error);
    free(header);
    TRY(status);
    TRY(write_tensors(descriptor, tensors, count, source, path, error));
    return fsync(descriptor) == 0 ? STATUS_OK : write_error(path, error);
}

enum status safetensors_write(const char *path, const struct safetensors_tensor *tensors,
                              size_t count, const struct safetensors_source *source,
                              struct error *error) {
    int descriptor = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (descriptor < 0) {
        return error_set(error, STATUS_IO, "%s: cannot create: %s", path, strerror(errno));
    }
    enum status status = write_file(descriptor, tensors, count, source, path, error);
    if (close(descriptor) != 0 && status == STATUS_OK) {
        status = write_error(path, error);
    }
    if (status != STATUS_OK) {
        unlink(path);
    }
    return status;
}
