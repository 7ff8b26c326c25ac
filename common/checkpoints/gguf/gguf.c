#include "common/checkpoints/gguf/gguf.h"

#include <stdlib.h>
#include <string.h>

#include "common/base/checked.h"

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "files are read as they lie in memory");

/* Fewest bytes of a value (empty key, type, a byte) and of a tensor (empty name, no extents). */
enum { VALUE_BYTES = 8 + 4 + 1, TENSOR_BYTES = 8 + 4 + 4 + 8, DEFAULT_ALIGNMENT = 32, SHOWN = 64 };

static const char magic[4] = {'G', 'G', 'U', 'F'};

/* A file while it is read. */
struct reader {
    const unsigned char *data;
    size_t size, offset;
    struct error *error;
};

static size_t left(const struct reader *r) {
    return r->size - r->offset;
}

/* The next `count` bytes; NULL with a message if there are fewer. */
static const unsigned char *take(struct reader *r, size_t count, const char *what) {
    if (count > left(r)) {
        error_set(r->error, STATUS_TRUNCATED,
                  "the file ends within %s: at byte %zu it takes %zu bytes, %zu are left", what,
                  r->offset, count, left(r));
        return NULL;
    }
    const unsigned char *data = r->data + r->offset;
    r->offset += count;
    return data;
}

static enum status take_u32(struct reader *r, const char *what, uint32_t *out) {
    const unsigned char *data = take(r, sizeof *out, what);
    if (data == NULL) {
        return STATUS_TRUNCATED;
    }
    memcpy(out, data, sizeof *out);
    return STATUS_OK;
}

static enum status take_u64(struct reader *r, const char *what, uint64_t *out) {
    const unsigned char *data = take(r, sizeof *out, what);
    if (data == NULL) {
        return STATUS_TRUNCATED;
    }
    memcpy(out, data, sizeof *out);
    return STATUS_OK;
}

static enum status take_string(struct reader *r, const char *what, struct gguf_string *out) {
    uint64_t length = 0;
    TRY(take_u64(r, what, &length));
    const unsigned char *data = take(r, length, what);
    *out = (struct gguf_string){(const char *)data, length};
    return data != NULL ? STATUS_OK : STATUS_TRUNCATED;
}

int gguf_shown(struct gguf_string string) {
    return (int)(string.length < SHOWN ? string.length : SHOWN);
}

/* ---- Values ---- */

/* Bytes of an element; 0: a string, or no type of elements. */
static size_t element_bytes(uint32_t type) {
    static const unsigned char bytes[GGUF_VALUE_TYPES] = {
        [GGUF_UINT8] = 1,  [GGUF_INT8] = 1,  [GGUF_UINT16] = 2,  [GGUF_INT16] = 2,
        [GGUF_UINT32] = 4, [GGUF_INT32] = 4, [GGUF_FLOAT32] = 4, [GGUF_BOOL] = 1,
        [GGUF_UINT64] = 8, [GGUF_INT64] = 8, [GGUF_FLOAT64] = 8};
    return type < GGUF_VALUE_TYPES ? bytes[type] : 0;
}

static enum status take_strings(struct reader *r, struct gguf_value *v) {
    v->data = r->data + r->offset;
    for (size_t i = 0; i < v->count; i++) {
        struct gguf_string string;
        TRY(take_string(r, "a string", &string));
    }
    return STATUS_OK;
}

static enum status take_elements(struct reader *r, struct gguf_value *v) {
    size_t bytes;
    if (v->type == GGUF_STRING) {
        return take_strings(r, v);
    }
    if (!checked_multiply(v->count, element_bytes(v->type), &bytes)) {
        return error_set(r->error, STATUS_OVERFLOW, "value \"%.*s\": the size of %zu elements",
                         gguf_shown(v->key), v->key.text, v->count);
    }
    v->data = take(r, bytes, "a value");
    return v->data != NULL ? STATUS_OK : STATUS_TRUNCATED;
}

static enum status take_type(struct reader *r, struct gguf_value *v) {
    uint32_t type = 0;
    uint64_t count = 1;
    TRY(take_u32(r, "the type of a value", &type));
    v->is_array = type == GGUF_ARRAY;
    if (v->is_array) {
        TRY(take_u32(r, "the type of an array", &type));
        TRY(take_u64(r, "the length of an array", &count));
    }
    if (type == GGUF_ARRAY) {
        return error_set(r->error, STATUS_UNSUPPORTED,
                         "value \"%.*s\" is an array of arrays, which is not supported",
                         gguf_shown(v->key), v->key.text);
    }
    if (type >= GGUF_VALUE_TYPES) {
        return error_set(r->error, STATUS_BAD_FORMAT,
                         "value \"%.*s\" has the type %u; types are 0 to %d", gguf_shown(v->key),
                         v->key.text, type, GGUF_VALUE_TYPES - 1);
    }
    v->type = type;
    v->count = count;
    return STATUS_OK;
}

static int compare_strings(struct gguf_string a, struct gguf_string b) {
    size_t shorter = a.length < b.length ? a.length : b.length;
    int order = shorter > 0 ? memcmp(a.text, b.text, shorter) : 0;
    return order != 0 ? order : (a.length > b.length) - (a.length < b.length);
}

static int by_key(const void *a, const void *b) {
    return compare_strings(((const struct gguf_value *)a)->key,
                           ((const struct gguf_value *)b)->key);
}

static enum status take_values(struct reader *r, struct gguf *file) {
    for (size_t i = 0; i < file->value_count; i++) {
        struct gguf_value *v = &file->values[i];
        TRY(take_string(r, "a key", &v->key));
        TRY(take_type(r, v));
        TRY(take_elements(r, v));
    }
    qsort(file->values, file->value_count, sizeof *file->values, by_key);
    for (size_t i = 1; i < file->value_count; i++) {
        if (by_key(&file->values[i - 1], &file->values[i]) == 0) {
            return error_set(r->error, STATUS_BAD_FORMAT, "there are two values \"%.*s\"",
                             gguf_shown(file->values[i].key), file->values[i].key.text);
        }
    }
    return STATUS_OK;
}

/* ---- Tensors ---- */

static enum status take_shape(struct reader *r, struct gguf_tensor *t) {
    uint32_t rank = 0;
    TRY(take_u32(r, "the rank of a tensor", &rank));
    if (rank < 1 || rank > GGUF_MAX_RANK) {
        return error_set(r->error, STATUS_BAD_FORMAT, "tensor \"%.*s\" has rank %u, not 1 to %d",
                         gguf_shown(t->name), t->name.text, rank, GGUF_MAX_RANK);
    }
    t->rank = rank;
    t->count = 1;
    for (size_t i = rank; i-- > 0;) {
        uint64_t extent = 0;
        TRY(take_u64(r, "the shape of a tensor", &extent));
        t->shape[i] = extent;
        if (!checked_multiply(t->count, extent, &t->count)) {
            return error_set(r->error, STATUS_OVERFLOW, "the size of tensor \"%.*s\" overflows",
                             gguf_shown(t->name), t->name.text);
        }
    }
    return STATUS_OK;
}

/* The bytes of a tensor whose type can be read: its rows are whole blocks. */
static enum status measure(struct reader *r, struct gguf_tensor *t) {
    const struct gguf_block block = gguf_block(t->type);
    if (block.weights == 0) {
        return STATUS_OK;
    }
    size_t columns = t->shape[t->rank - 1];
    if (columns % block.weights != 0) {
        return error_set(r->error, STATUS_BAD_FORMAT,
                         "tensor \"%.*s\": its rows of %zu are no multiple of %s's blocks of %zu",
                         gguf_shown(t->name), t->name.text, columns, block.name, block.weights);
    }
    return checked_multiply(t->count / block.weights, block.bytes, &t->bytes)
               ? STATUS_OK
               : error_set(r->error, STATUS_OVERFLOW, "the size of tensor \"%.*s\" overflows",
                           gguf_shown(t->name), t->name.text);
}

static int by_name(const void *a, const void *b) {
    return compare_strings(((const struct gguf_tensor *)a)->name,
                           ((const struct gguf_tensor *)b)->name);
}

/* `data` holds the offset until the place of all data is known. */
static enum status take_tensors(struct reader *r, struct gguf *file, uint64_t *offsets) {
    for (size_t i = 0; i < file->tensor_count; i++) {
        struct gguf_tensor *t = &file->tensors[i];
        TRY(take_string(r, "the name of a tensor", &t->name));
        TRY(take_shape(r, t));
        TRY(take_u32(r, "the type of a tensor", &t->type));
        TRY(take_u64(r, "the offset of a tensor", &offsets[i]));
        TRY(measure(r, t));
    }
    return STATUS_OK;
}

/* Where data begins. */
static enum status find_data(struct reader *r, const struct gguf *file, size_t *begin) {
    size_t alignment = DEFAULT_ALIGNMENT;
    if (gguf_value(file, "general.alignment") != NULL &&
        (!gguf_size(file, "general.alignment", &alignment) || alignment == 0 ||
         alignment > (size_t)1 << 30)) {
        return error_set(r->error, STATUS_BAD_FORMAT,
                         "\"general.alignment\" is not from 1 to 2^30");
    }
    *begin = ceil_div(r->offset, alignment) * alignment;
    return STATUS_OK;
}

static enum status place_tensors(struct reader *r, struct gguf *file, const uint64_t *offsets) {
    size_t begin = 0;
    TRY(find_data(r, file, &begin));
    for (size_t i = 0; i < file->tensor_count; i++) {
        struct gguf_tensor *t = &file->tensors[i];
        size_t at, end;
        if (!checked_add(begin, offsets[i], &at) || !checked_add(at, t->bytes, &end) ||
            end > r->size) {
            return error_set(r->error, STATUS_TRUNCATED,
                             "tensor \"%.*s\" of %zu bytes at offset %llu ends behind the file's "
                             "%zu bytes",
                             gguf_shown(t->name), t->name.text, t->bytes,
                             (unsigned long long)offsets[i], r->size);
        }
        t->data = r->data + at;
    }
    qsort(file->tensors, file->tensor_count, sizeof *file->tensors, by_name);
    for (size_t i = 1; i < file->tensor_count; i++) {
        if (by_name(&file->tensors[i - 1], &file->tensors[i]) == 0) {
            return error_set(r->error, STATUS_BAD_FORMAT, "there are two tensors \"%.*s\"",
                             gguf_shown(file->tensors[i].name), file->tensors[i].name.text);
        }
    }
    return STATUS_OK;
}

/* ---- The file ---- */

static enum status take_header(struct reader *r, struct gguf *file) {
    uint32_t version = 0;
    uint64_t tensors = 0, values = 0;
    const unsigned char *mark = take(r, sizeof magic, "its first bytes");
    if (mark == NULL) {
        return STATUS_TRUNCATED;
    }
    if (memcmp(mark, magic, sizeof magic) != 0) {
        return error_set(r->error, STATUS_BAD_FORMAT, "this is no GGUF file");
    }
    TRY(take_u32(r, "its header", &version));
    if (version != 2 && version != 3) {
        return error_set(r->error, STATUS_UNSUPPORTED,
                         "GGUF version %u%s is not supported, only versions 2 and 3", version,
                         version == 1       ? " (make the file anew)"
                         : version > 0xffff ? " (a big-endian file?)"
                                            : "");
    }
    TRY(take_u64(r, "its header", &tensors));
    TRY(take_u64(r, "its header", &values));
    if (values > left(r) / VALUE_BYTES || tensors > left(r) / TENSOR_BYTES) {
        return error_set(r->error, STATUS_TRUNCATED,
                         "the header announces %llu values and %llu tensors, more than %zu bytes "
                         "can hold",
                         (unsigned long long)values, (unsigned long long)tensors, left(r));
    }
    file->value_count = values;
    file->tensor_count = tensors;
    return STATUS_OK;
}

static enum status read_all(struct reader *r, struct gguf *file, uint64_t **offsets) {
    TRY(take_header(r, file));
    file->values = calloc(file->value_count + 1, sizeof *file->values);
    file->tensors = calloc(file->tensor_count + 1, sizeof *file->tensors);
    *offsets = calloc(file->tensor_count + 1, sizeof **offsets);
    if (file->values == NULL || file->tensors == NULL || *offsets == NULL) {
        return error_set(r->error, STATUS_OUT_OF_MEMORY, "no memory for %zu values, %zu tensors",
                         file->value_count, file->tensor_count);
    }
    TRY(take_values(r, file));
    TRY(take_tensors(r, file, *offsets));
    return place_tensors(r, file, *offsets);
}

enum status gguf_parse(struct gguf *file, const void *data, size_t size, struct error *error) {
    struct reader r = {.data = data, .size = size, .error = error};
    uint64_t *offsets = NULL;
    *file = (struct gguf){0};
    enum status status = read_all(&r, file, &offsets);
    free(offsets);
    if (status != STATUS_OK) {
        gguf_close(file);
    }
    return status;
}

enum status gguf_open(struct gguf *file, const char *path, struct error *error) {
    struct file_view view;
    *file = (struct gguf){0};
    TRY(file_view_open(&view, path, error));
    enum status status = gguf_parse(file, view.data, view.size, error);
    if (status != STATUS_OK) {
        file_view_close(&view);
        return error_prefix(error, status, path);
    }
    file->view = view;
    return STATUS_OK;
}

bool gguf_is(const char *path) {
    struct file_view view;
    if (file_view_open(&view, path, NULL) != STATUS_OK) {
        return false;
    }
    bool is = view.size >= sizeof magic && memcmp(view.data, magic, sizeof magic) == 0;
    file_view_close(&view);
    return is;
}

void gguf_close(struct gguf *file) {
    free(file->values);
    free(file->tensors);
    file_view_close(&file->view);
    *file = (struct gguf){0};
}

/* ---- Looking up ---- */

const struct gguf_tensor *gguf_find(const struct gguf *file, const char *name) {
    const struct gguf_tensor want = {.name = {name, strlen(name)}};
    return bsearch(&want, file->tensors, file->tensor_count, sizeof want, by_name);
}

const struct gguf_value *gguf_value(const struct gguf *file, const char *key) {
    const struct gguf_value want = {.key = {key, strlen(key)}};
    return bsearch(&want, file->values, file->value_count, sizeof want, by_key);
}

/* An element of a type that begins the largest integer or float. */
static double number(enum gguf_value_type type, const unsigned char *data) {
    float f32 = 0.0f;
    double f64;
    uint64_t bits = 0;
    size_t bytes = element_bytes(type);
    memcpy(&bits, data, bytes);
    memcpy(&f32, data, bytes < sizeof f32 ? bytes : sizeof f32);
    memcpy(&f64, &bits, sizeof f64);
    unsigned unused = 64 - 8 * (unsigned)bytes;
    switch (type) {
    case GGUF_FLOAT32:
        return (double)f32;
    case GGUF_FLOAT64:
        return f64;
    case GGUF_INT8:
    case GGUF_INT16:
    case GGUF_INT32:
    case GGUF_INT64:
        return (double)((int64_t)(bits << unused) >> unused);
    default:
        return (double)bits;
    }
}

bool gguf_number(const struct gguf *file, const char *key, double *out) {
    const struct gguf_value *v = gguf_value(file, key);
    if (v == NULL || v->is_array || v->type == GGUF_STRING || v->type == GGUF_BOOL) {
        return false;
    }
    *out = number(v->type, v->data);
    return true;
}

bool gguf_size(const struct gguf *file, const char *key, size_t *out) {
    const struct gguf_value *v = gguf_value(file, key);
    double value;
    if (v == NULL || v->type == GGUF_FLOAT32 || v->type == GGUF_FLOAT64 ||
        !gguf_number(file, key, &value) || value < 0.0 || value > 0x1p53) {
        return false;
    }
    *out = (size_t)value;
    return true;
}

bool gguf_bool(const struct gguf *file, const char *key, bool *out) {
    const struct gguf_value *v = gguf_value(file, key);
    if (v == NULL || v->is_array || v->type != GGUF_BOOL) {
        return false;
    }
    *out = *v->data != 0;
    return true;
}

bool gguf_text(const struct gguf *file, const char *key, struct gguf_string *out) {
    const struct gguf_value *v = gguf_value(file, key);
    if (v == NULL || v->is_array || v->type != GGUF_STRING) {
        return false;
    }
    const unsigned char *next = v->data;
    *out = gguf_next_string(&next);
    return true;
}

bool gguf_text_is(const struct gguf *file, const char *key, const char *want) {
    struct gguf_string text;
    return gguf_text(file, key, &text) && text.length == strlen(want) &&
           memcmp(text.text, want, text.length) == 0;
}

double gguf_element(const struct gguf_value *array, size_t index) {
    return number(array->type, array->data + index * element_bytes(array->type));
}

struct gguf_string gguf_next_string(const unsigned char **next) {
    uint64_t length = 0;
    memcpy(&length, *next, sizeof length);
    const struct gguf_string string = {(const char *)*next + sizeof length, length};
    *next += sizeof length + length;
    return string;
}
