#include "common/models/device_matrices.h"

#include <stdint.h>
#include <string.h>

#include "common/base/checked.h"

enum {
    ALIGNMENT = 256,
    CODES = 65536, /* values of a 16-bit type */
    BLOCK = 4096   /* elements converted at once */
};

/* Bytes of the two halves of the host buffer: a table of conversions, then converted elements. */
static const size_t TABLE_BYTES = (size_t)CODES * sizeof(float);
static const size_t CHUNK_BYTES = ((size_t)64 << 20) - (size_t)CODES * sizeof(float);

struct device_matrices {
    device_stream stream;
    struct error *error;
    unsigned char *memory;  /* device; NULL while sizes are added up */
    size_t used;            /* bytes of memory */
    void *table;            /* host: element i is the value of code i in the type `to` */
    unsigned char *staging; /* host, CHUNK_BYTES; NULL: nothing was converted yet */
    enum nn_dtype from, to; /* types of the table; equal: it is not filled yet */
};

/* Allocates the host buffer when it is first needed: a file in the device's type needs none. */
static enum status make_staging(struct device_matrices *l) {
    if (l->table != NULL) {
        return STATUS_OK;
    }
    TRY(device_alloc_host(&l->table, TABLE_BYTES + CHUNK_BYTES, l->error));
    l->staging = (unsigned char *)l->table + TABLE_BYTES;
    return STATUS_OK;
}

/* Converts all values of a 16-bit type once, so that elements can be looked up. */
static void make_table(struct device_matrices *l, enum nn_dtype from, enum nn_dtype to) {
    if (l->from == from && l->to == to) {
        return;
    }
    for (size_t first = 0; first < CODES; first += BLOCK) {
        uint16_t codes[BLOCK];
        float values[BLOCK];
        for (size_t i = 0; i < BLOCK; i++) {
            codes[i] = (uint16_t)(first + i);
        }
        nn_dtype_load(values, codes, BLOCK, from);
        nn_dtype_store((unsigned char *)l->table + first * nn_dtype_bytes(to), values, BLOCK, to);
    }
    l->from = from;
    l->to = to;
}

/* memcpy() reads the stored elements, as they may lie at odd addresses. */
static void look_up(const struct device_matrices *l, const unsigned char *from, size_t count) {
    for (size_t i = 0; i < count; i++) {
        uint16_t code;
        memcpy(&code, from + i * sizeof code, sizeof code);
        if (l->to == NN_F32) {
            ((float *)(void *)l->staging)[i] = ((const float *)l->table)[code];
        } else {
            ((uint16_t *)(void *)l->staging)[i] = ((const uint16_t *)l->table)[code];
        }
    }
}

static void round_down(struct device_matrices *l, const unsigned char *from, size_t count,
                       enum nn_dtype to) {
    float block[BLOCK];
    for (size_t done = 0; done < count; done += BLOCK) {
        size_t some = count - done < BLOCK ? count - done : BLOCK;
        memcpy(block, from + done * sizeof *block, some * sizeof *block);
        nn_dtype_store(l->staging + done * nn_dtype_bytes(to), block, some, to);
    }
}

static enum status convert(struct device_matrices *l, unsigned char *to, const void *data,
                           enum nn_dtype from, enum nn_dtype dtype, size_t count) {
    const unsigned char *stored = data;
    size_t wide = nn_dtype_bytes(dtype);
    TRY(make_staging(l));
    if (from != NN_F32) {
        make_table(l, from, dtype);
    }
    for (size_t done = 0; done < count;) {
        size_t room = CHUNK_BYTES / wide;
        size_t some = count - done < room ? count - done : room;
        if (from != NN_F32) {
            look_up(l, stored + done * nn_dtype_bytes(from), some);
        } else {
            round_down(l, stored + done * sizeof(float), some, dtype);
        }
        TRY(device_write(to + done * wide, l->staging, some * wide, l->stream, l->error));
        done += some;
    }
    return STATUS_OK;
}

/* Adds up the bytes of a tensor while there is no device memory; then copies it there. */
static enum status place_tensor(struct device_matrices *l,
                                const struct decoder_stored_tensor *tensor, enum nn_dtype dtype) {
    size_t count, bytes, end;
    if (!checked_multiply(tensor->rows, tensor->columns, &count) ||
        !checked_multiply(count, nn_dtype_bytes(dtype), &bytes) ||
        !checked_add(l->used, bytes, &end) || end > SIZE_MAX - ALIGNMENT) {
        return error_set(l->error, STATUS_OVERFLOW, "the weights' sizes overflow: %zu x %zu",
                         tensor->rows, tensor->columns);
    }
    if (l->memory != NULL && tensor->dtype == dtype) {
        TRY(device_write(l->memory + l->used, tensor->data, bytes, l->stream, l->error));
    } else if (l->memory != NULL) {
        TRY(convert(l, l->memory + l->used, tensor->data, tensor->dtype, dtype, count));
    }
    l->used = end;
    return STATUS_OK;
}

/* Places the rows of q, k and v one after the other: parts (head, q k v, row) become (q k v, head,
   row). A vector is one row, whose elements are the rows. */
static enum status place_separated(struct device_matrices *l, const struct device_matrix *matrix) {
    const struct decoder_stored_tensor *all = matrix->tensors[0];
    size_t heads = matrix->heads, elements = all->rows * all->columns / (3 * heads);
    struct decoder_stored_tensor some = {.dtype = all->dtype, .rows = 1, .columns = elements};
    for (size_t i = 0; i < 3 * heads; i++) {
        size_t part = i / heads, head = i % heads, from = (3 * head + part) * elements;
        some.data = (const unsigned char *)all->data + from * nn_dtype_bytes(all->dtype);
        TRY(place_tensor(l, &some, matrix->dtype));
    }
    return STATUS_OK;
}

enum status device_matrices_place(struct device_matrices *l, const struct device_matrix *matrix) {
    if (matrix->tensors[0] == NULL) {
        return STATUS_OK;
    }
    size_t begin = ceil_div(l->used, ALIGNMENT) * ALIGNMENT;
    l->used = begin;
    if (matrix->heads > 0) {
        TRY(place_separated(l, matrix));
    }
    for (size_t t = 0; matrix->heads == 0 && t < DEVICE_MATRIX_TENSORS; t++) {
        if (matrix->tensors[t] != NULL) {
            TRY(place_tensor(l, matrix->tensors[t], matrix->dtype));
        }
    }
    *matrix->address = l->memory != NULL ? l->memory + begin : NULL;
    return STATUS_OK;
}

static enum status load(struct device_matrices *l, device_matrices_lister *list, void *context,
                        void **memory, size_t *bytes) {
    TRY(list(context, l)); /* without memory: adds up the sizes */
    *bytes = l->used;
    TRY(device_alloc(memory, *bytes, l->error));
    l->memory = *memory;
    l->used = 0;
    TRY(list(context, l));
    return device_synchronize(l->stream, l->error);
}

enum status device_matrices_load(device_matrices_lister *list, void *context, device_stream stream,
                                 void **memory, size_t *bytes, struct error *error) {
    struct device_matrices loading = {.stream = stream, .error = error};
    *memory = NULL;
    enum status status = load(&loading, list, context, memory, bytes);
    device_free_host(loading.table);
    if (status != STATUS_OK) {
        device_free(*memory);
        *memory = NULL;
    }
    return status;
}
