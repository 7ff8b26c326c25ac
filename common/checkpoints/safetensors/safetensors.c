#include "common/checkpoints/safetensors/safetensors.h"

#include <cjson/cJSON.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/checked.h"
#include "common/base/file_kind.h"
#include "common/base/json_object.h"

#if __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "tensors are read in place: the host must be little-endian"
#endif

enum { LENGTH_BYTES = 8, HEADER_LIMIT = 100000000, HEADER_ALIGNMENT = 8 };

static const char METADATA[] = "__metadata__";

/* The format's names of types. Sizes are in bits because some types are smaller than a byte. */
struct dtype_name {
    const char *name;
    enum safetensors_dtype dtype;
    size_t bits;
};

/* The first six are indexed by enum safetensors_dtype, for writing. */
static const struct dtype_name dtype_names[] = {
    [SAFETENSORS_F32] = {"F32", SAFETENSORS_F32, 32},
    [SAFETENSORS_F16] = {"F16", SAFETENSORS_F16, 16},
    [SAFETENSORS_BF16] = {"BF16", SAFETENSORS_BF16, 16},
    [SAFETENSORS_F64] = {"F64", SAFETENSORS_F64, 64},
    [SAFETENSORS_I32] = {"I32", SAFETENSORS_I32, 32},
    [SAFETENSORS_I64] = {"I64", SAFETENSORS_I64, 64},
    {"U64", SAFETENSORS_OTHER, 64},
    {"C64", SAFETENSORS_OTHER, 64},
    {"U32", SAFETENSORS_OTHER, 32},
    {"I16", SAFETENSORS_OTHER, 16},
    {"U16", SAFETENSORS_OTHER, 16},
    {"I8", SAFETENSORS_OTHER, 8},
    {"U8", SAFETENSORS_OTHER, 8},
    {"BOOL", SAFETENSORS_OTHER, 8},
    {"F8_E4M3", SAFETENSORS_OTHER, 8},
    {"F8_E5M2", SAFETENSORS_OTHER, 8},
    {"F8_E8M0", SAFETENSORS_OTHER, 8},
    {"F6_E2M3", SAFETENSORS_OTHER, 6},
    {"F6_E3M2", SAFETENSORS_OTHER, 6},
    {"F4", SAFETENSORS_OTHER, 4},
};

enum { DTYPES = sizeof dtype_names / sizeof *dtype_names };

static const struct dtype_name *find_dtype(const char *name) {
    for (size_t i = 0; i < DTYPES; i++) {
        if (strcmp(dtype_names[i].name, name) == 0) {
            return &dtype_names[i];
        }
    }
    return NULL;
}

/* Elements and bytes of a shape; false if they overflow or are not a whole number of bytes. */
static bool tensor_size(const struct safetensors_tensor *tensor, size_t bits, size_t *count,
                        size_t *bytes) {
    *count = 1;
    size_t all_bits;
    for (size_t i = 0; i < tensor->rank; i++) {
        if (!checked_multiply(*count, tensor->shape[i], count)) {
            return false;
        }
    }
    if (!checked_multiply(*count, bits, &all_bits) || all_bits % 8 != 0) {
        return false;
    }
    *bytes = all_bits / 8;
    return true;
}

/* Records "tensor NAME: WHAT"; a long name is cut. */
static enum status tensor_error(struct error *error, enum status status, const char *name,
                                const char *what) {
    return error_set(error, status, "tensor \"%.*s\": %s", json_shown(name), name, what);
}

static enum status read_shape(struct safetensors_tensor *tensor, const cJSON *shape,
                              struct error *error) {
    if (!cJSON_IsArray(shape)) {
        return tensor_error(error, STATUS_BAD_FORMAT, tensor->name, "\"shape\" is not an array");
    }
    const cJSON *extent;
    cJSON_ArrayForEach(extent, shape) {
        if (tensor->rank == SAFETENSORS_MAX_RANK) {
            return error_set(error, STATUS_UNSUPPORTED, "tensor \"%.*s\": more than %d dimensions",
                             json_shown(tensor->name), tensor->name, (int)SAFETENSORS_MAX_RANK);
        }
        if (!json_size(extent, &tensor->shape[tensor->rank])) {
            return tensor_error(error, STATUS_BAD_FORMAT, tensor->name,
                                "\"shape\" has an element that is no whole number up to 2^53");
        }
        tensor->rank++;
    }
    return STATUS_OK;
}

static enum status read_dtype(struct safetensors_tensor *tensor, const cJSON *dtype, size_t *bits,
                              struct error *error) {
    if (!cJSON_IsString(dtype)) {
        return tensor_error(error, STATUS_BAD_FORMAT, tensor->name, "\"dtype\" is not a string");
    }
    const struct dtype_name *found = find_dtype(dtype->valuestring);
    if (found == NULL) {
        return error_set(error, STATUS_UNSUPPORTED, "tensor \"%.*s\": unknown dtype \"%.*s\"",
                         json_shown(tensor->name), tensor->name, json_shown(dtype->valuestring),
                         dtype->valuestring);
    }
    tensor->dtype = found->dtype;
    *bits = found->bits;
    return STATUS_OK;
}

/* The part of a file after its header. */
struct data_section {
    const unsigned char *data;
    size_t size;
};

/* [begin, end) must lie in the section and hold exactly the shape. */
static enum status read_offsets(struct safetensors_tensor *tensor, const cJSON *offsets,
                                size_t bits, const struct data_section *section,
                                struct error *error) {
    size_t range[2];
    const cJSON *first = cJSON_IsArray(offsets) ? offsets->child : NULL;
    const cJSON *second = first != NULL ? first->next : NULL;
    if (second == NULL || second->next != NULL || !json_size(first, &range[0]) ||
        !json_size(second, &range[1])) {
        return tensor_error(error, STATUS_BAD_FORMAT, tensor->name,
                            "\"data_offsets\" is not two whole numbers up to 2^53");
    }
    int shown = json_shown(tensor->name);
    if (range[0] > range[1]) {
        return error_set(error, STATUS_BAD_FORMAT,
                         "tensor \"%.*s\": data_offsets [%zu, %zu] run "
                         "backwards",
                         shown, tensor->name, range[0], range[1]);
    }
    size_t bytes;
    if (!tensor_size(tensor, bits, &tensor->count, &bytes)) {
        return tensor_error(error, STATUS_OVERFLOW, tensor->name,
                            "size of its shape overflows or is not a whole number of bytes");
    }
    if (range[1] - range[0] != bytes) {
        return error_set(error, STATUS_MISMATCH,
                         "tensor \"%.*s\": shape takes %zu bytes, "
                         "data_offsets [%zu, %zu] hold %zu",
                         shown, tensor->name, bytes, range[0], range[1], range[1] - range[0]);
    }
    if (range[1] > section->size) {
        return error_set(error, STATUS_TRUNCATED,
                         "tensor \"%.*s\": data_offsets [%zu, %zu] end "
                         "behind the file's %zu bytes of data",
                         shown, tensor->name, range[0], range[1], section->size);
    }
    tensor->data = section->data + range[0];
    tensor->bytes = bytes;
    return STATUS_OK;
}

/* Reads the fields of an entry; tensor->name is borrowed from the entry, for messages. */
static enum status read_fields(struct safetensors_tensor *tensor, const cJSON *entry,
                               const struct data_section *section, struct error *error) {
    if (!cJSON_IsObject(entry)) {
        return tensor_error(error, STATUS_BAD_FORMAT, tensor->name, "its entry is not an object");
    }
    size_t bits = 0;
    TRY(read_dtype(tensor, cJSON_GetObjectItemCaseSensitive(entry, "dtype"), &bits, error));
    TRY(read_shape(tensor, cJSON_GetObjectItemCaseSensitive(entry, "shape"), error));
    const cJSON *offsets = cJSON_GetObjectItemCaseSensitive(entry, "data_offsets");
    return read_offsets(tensor, offsets, bits, section, error);
}

/* Reads one entry of the header. On success the tensor owns a copy of its name. */
static enum status read_tensor(struct safetensors_tensor *tensor, const cJSON *entry,
                               const struct data_section *section, struct error *error) {
    *tensor = (struct safetensors_tensor){.name = entry->string};
    enum status status = read_fields(tensor, entry, section, error);
    tensor->name = NULL;
    TRY(status);
    tensor->name = strdup(entry->string);
    return tensor->name != NULL
               ? STATUS_OK
               : error_set(error, STATUS_OUT_OF_MEMORY, "out of memory for tensor names");
}

static enum status check_metadata(const cJSON *metadata, struct error *error) {
    if (!cJSON_IsObject(metadata)) {
        return error_set(error, STATUS_BAD_FORMAT, "\"%s\" is not an object", METADATA);
    }
    const cJSON *item;
    cJSON_ArrayForEach(item, metadata) {
        if (!cJSON_IsString(item)) {
            return error_set(error, STATUS_BAD_FORMAT,
                             "\"%s\": the value of \"%.*s\" is not a string", METADATA,
                             json_shown(item->string), item->string);
        }
    }
    return STATUS_OK;
}

static int by_offset(const void *a, const void *b) {
    const struct safetensors_tensor *x = a;
    const struct safetensors_tensor *y = b;
    if (x->data != y->data) {
        return (const unsigned char *)x->data < (const unsigned char *)y->data ? -1 : 1;
    }
    return (x->bytes > y->bytes) - (x->bytes < y->bytes); /* empty tensors first */
}

static int by_name(const void *a, const void *b) {
    return strcmp(((const struct safetensors_tensor *)a)->name,
                  ((const struct safetensors_tensor *)b)->name);
}

/* The tensors must cover the data without a gap or an overlap. */
static enum status check_coverage(struct safetensors *file, const struct data_section *section,
                                  struct error *error) {
    if (file->count > 0) {
        qsort(file->tensors, file->count, sizeof *file->tensors, by_offset);
    }
    size_t end = 0;
    for (size_t i = 0; i < file->count; i++) {
        const struct safetensors_tensor *tensor = &file->tensors[i];
        size_t begin = (size_t)((const unsigned char *)tensor->data - section->data);
        if (begin != end) {
            return error_set(
                error, STATUS_BAD_FORMAT,
                "tensor \"%.*s\" begins at byte %zu of the "
                "data, %s at %zu",
                json_shown(tensor->name), tensor->name, begin,
                begin < end ? "inside the tensor that ends" : "after a gap that begins", end);
        }
        end = begin + tensor->bytes;
    }
    if (end != section->size) {
        return error_set(error, STATUS_MISMATCH,
                         "tensors end at byte %zu of the data, file has %zu", end, section->size);
    }
    if (file->count > 0) {
        qsort(file->tensors, file->count, sizeof *file->tensors, by_name);
    }
    return STATUS_OK;
}

static enum status read_entry(struct safetensors *file, const cJSON *entry,
                              const struct data_section *section, struct error *error) {
    if (strcmp(entry->string, METADATA) == 0) {
        return check_metadata(entry, error);
    }
    TRY(read_tensor(&file->tensors[file->count], entry, section, error));
    file->count++;
    return STATUS_OK;
}

static enum status read_entries(struct safetensors *file, const cJSON *header,
                                const struct data_section *section, struct error *error) {
    size_t entries = 0;
    const cJSON *entry;
    cJSON_ArrayForEach(entry, header) {
        entries++;
    }
    if (entries == 0) {
        return STATUS_OK;
    }
    file->tensors = calloc(entries, sizeof *file->tensors);
    if (file->tensors == NULL) {
        return error_set(error, STATUS_OUT_OF_MEMORY, "out of memory for %zu tensors", entries);
    }
    cJSON_ArrayForEach(entry, header) {
        TRY(read_entry(file, entry, section, error));
    }
    return STATUS_OK;
}

/* Reads the length of the JSON header and checks it against the size of the file. */
static enum status read_length(const unsigned char *data, size_t size, size_t *length,
                               struct error *error) {
    if (size < LENGTH_BYTES) {
        return error_set(error, STATUS_TRUNCATED, "header length needs %d bytes, file has %zu",
                         (int)LENGTH_BYTES, size);
    }
    uint64_t stored;
    memcpy(&stored, data, sizeof stored);
    if (stored > HEADER_LIMIT) {
        return error_set(
            error, STATUS_BAD_FORMAT,
            "header length is %llu, at most %d is allowed; is this a safetensors file?",
            (unsigned long long)stored, (int)HEADER_LIMIT);
    }
    if (stored > size - LENGTH_BYTES) {
        return error_set(error, STATUS_TRUNCATED, "header length is %llu, file has %zu bytes",
                         (unsigned long long)stored, size);
    }
    if (stored == 0 || data[LENGTH_BYTES] != '{') {
        return error_set(error, STATUS_BAD_FORMAT, "header does not begin with '{'");
    }
    *length = (size_t)stored;
    return STATUS_OK;
}

/* Reads the JSON header, `length` bytes of text, into the list of tensors. */
static enum status read_header(struct safetensors *file, const char *text, size_t length,
                               const struct data_section *section, struct error *error) {
    cJSON *header;
    enum status status = json_object_parse(&header, text, length, error);
    if (status != STATUS_OK) {
        return error_prefix(error, status, "header");
    }
    status = read_entries(file, header, section, error);
    cJSON_Delete(header);
    TRY(status);
    return check_coverage(file, section, error);
}

enum status safetensors_parse(struct safetensors *file, const void *data, size_t size,
                              struct error *error) {
    *file = (struct safetensors){0};
    size_t length = 0;
    TRY(read_length(data, size, &length, error));
    const unsigned char *text = (const unsigned char *)data + LENGTH_BYTES;
    struct data_section section = {text + length, size - LENGTH_BYTES - length};
    enum status status = read_header(file, (const char *)text, length, &section, error);
    if (status != STATUS_OK) {
        safetensors_close(file);
    }
    return status;
}

enum status safetensors_open(struct safetensors *file, const char *path, struct error *error) {
    *file = (struct safetensors){0};
    struct file_view view;
    TRY(file_view_open(&view, path, error));
    enum status status = safetensors_parse(file, view.data, view.size, error);
    if (status != STATUS_OK) {
        status = file_kind_explain(error, status, path, view.data, view.size,
                                   "a safetensors file belongs here");
        file_view_close(&view);
        return status;
    }
    file->view = view;
    return STATUS_OK;
}

void safetensors_close(struct safetensors *file) {
    for (size_t i = 0; i < file->count; i++) {
        free(file->tensors[i].name);
    }
    free(file->tensors);
    file_view_close(&file->view);
    *file = (struct safetensors){0};
}

const struct safetensors_tensor *safetensors_find(const struct safetensors *file,
                                                  const char *name) {
    size_t low = 0;
    size_t high = file->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        int order = strcmp(name, file->tensors[middle].name);
        if (order == 0) {
            return &file->tensors[middle];
        }
        if (order < 0) {
            high = middle;
        } else {
            low = middle + 1;
        }
    }
    return NULL;
}

const char *safetensors_shape_text(const size_t *shape, size_t rank,
                                   char text[SAFETENSORS_SHAPE_BYTES]) {
    size_t used = (size_t)sprintf(text, "("); /* an extent takes at most 22 bytes */
    for (size_t i = 0; i < rank && i < SAFETENSORS_MAX_RANK; i++) {
        used += (size_t)sprintf(text + used, "%s%zu", i > 0 ? ", " : "", shape[i]);
    }
    strcpy(text + used, ")");
    return text;
}

/* Converts IEEE 754 binary16 to the bits of the same binary32 value; a NaN keeps its payload. */
static uint32_t f32_bits_of_f16(uint16_t half) {
    uint32_t sign = (uint32_t)(half & 0x8000) << 16;
    uint32_t exponent = (half >> 10) & 0x1f;
    uint32_t mantissa = half & 0x3ff;
    if (exponent == 0x1f) { /* infinity, NaN */
        return sign | 0x7f800000 | mantissa << 13;
    }
    if (exponent == 0 && mantissa != 0) { /* denormal: normal in binary32 */
        exponent = 1;
        while ((mantissa & 0x400) == 0) {
            mantissa <<= 1;
            exponent--; /* may wrap below 0; the bias below brings it back */
        }
        mantissa &= 0x3ff;
    } else if (exponent == 0) {
        return sign;
    }
    return sign | (exponent + 127 - 15) << 23 | mantissa << 13;
}

enum status safetensors_read_f32(const struct safetensors_tensor *tensor, float *out) {
    if (!safetensors_is_weight(tensor->dtype)) {
        return STATUS_UNSUPPORTED;
    }
    if (tensor->count == 0) {
        return STATUS_OK;
    }
    if (tensor->dtype == SAFETENSORS_F32) {
        memcpy(out, tensor->data, tensor->count * sizeof *out);
        return STATUS_OK;
    }
    const unsigned char *data = tensor->data;
    for (size_t i = 0; i < tensor->count; i++) {
        uint16_t half;
        memcpy(&half, data + i * sizeof half, sizeof half); /* may be unaligned */
        uint32_t bits =
            tensor->dtype == SAFETENSORS_F16 ? f32_bits_of_f16(half) : (uint32_t)half << 16;
        memcpy(&out[i], &bits, sizeof bits);
    }
    return STATUS_OK;
}

/* A tensor can be written if its type is known and its shape agrees with its bytes. */
static enum status check_for_writing(const struct safetensors_tensor *tensor, struct error *error) {
    if (strcmp(tensor->name, METADATA) == 0) {
        return tensor_error(error, STATUS_INVALID_ARGUMENT, tensor->name, "the name is reserved");
    }
    if ((int)tensor->dtype < 0 || tensor->dtype >= SAFETENSORS_OTHER) {
        return tensor_error(error, STATUS_UNSUPPORTED, tensor->name,
                            "only F64, F32, F16 and BF16 can be written");
    }
    if (tensor->rank > SAFETENSORS_MAX_RANK) {
        return tensor_error(error, STATUS_INVALID_ARGUMENT, tensor->name, "too many dimensions");
    }
    size_t count;
    size_t bytes;
    if (!tensor_size(tensor, dtype_names[tensor->dtype].bits, &count, &bytes)) {
        return tensor_error(error, STATUS_OVERFLOW, tensor->name, "size of its shape overflows");
    }
    if (bytes != tensor->bytes) {
        return error_set(error, STATUS_MISMATCH,
                         "tensor \"%.*s\": shape takes %zu bytes, it has %zu",
                         json_shown(tensor->name), tensor->name, bytes, tensor->bytes);
    }
    return STATUS_OK;
}

static bool add_number(cJSON *array, size_t value) {
    cJSON *number = cJSON_CreateNumber((double)value);
    return number != NULL && cJSON_AddItemToArray(array, number);
}

/* Adds a tensor's entry to the header; false if memory runs out. */
static bool add_entry(cJSON *header, const struct safetensors_tensor *tensor, size_t begin) {
    cJSON *entry = cJSON_AddObjectToObject(header, tensor->name);
    if (entry == NULL ||
        cJSON_AddStringToObject(entry, "dtype", dtype_names[tensor->dtype].name) == NULL) {
        return false;
    }
    cJSON *shape = cJSON_AddArrayToObject(entry, "shape");
    bool added = shape != NULL;
    for (size_t i = 0; i < tensor->rank && added; i++) {
        added = add_number(shape, tensor->shape[i]);
    }
    cJSON *offsets = added ? cJSON_AddArrayToObject(entry, "data_offsets") : NULL;
    return offsets != NULL && add_number(offsets, begin) &&
           add_number(offsets, begin + tensor->bytes);
}

static enum status out_of_memory_for_tensors(size_t count, struct error *error) {
    return error_set(error, STATUS_OUT_OF_MEMORY, "out of memory for %zu tensors", count);
}

/* Adds an entry for every tensor; *data_size, 0 before, receives the bytes of all tensors. */
static enum status add_entries(cJSON *header, const struct safetensors_tensor *tensors,
                               size_t count, size_t *data_size, struct error *error) {
    for (size_t i = 0; i < count; i++) {
        TRY(check_for_writing(&tensors[i], error));
        size_t begin = *data_size;
        if (!checked_add(begin, tensors[i].bytes, data_size)) {
            return error_set(error, STATUS_OVERFLOW, "size of all tensors overflows");
        }
        if (!add_entry(header, &tensors[i], begin)) {
            return out_of_memory_for_tensors(count, error);
        }
    }
    return STATUS_OK;
}

/* Makes the header's JSON text, for cJSON_free(); *text is NULL on failure. */
static enum status make_header(const struct safetensors_tensor *tensors, size_t count, char **text,
                               size_t *data_size, struct error *error) {
    *text = NULL;
    *data_size = 0;
    cJSON *header = cJSON_CreateObject();
    if (header == NULL) {
        return out_of_memory_for_tensors(count, error);
    }
    enum status status = add_entries(header, tensors, count, data_size, error);
    if (status == STATUS_OK) {
        *text = cJSON_PrintUnformatted(header);
        status = *text != NULL ? STATUS_OK : out_of_memory_for_tensors(count, error);
    }
    cJSON_Delete(header);
    return status;
}

/* Allocates the beginning of a file: the length, and the header padded with blanks. */
static enum status frame(const char *header, unsigned char **memory, size_t *size,
                         struct error *error) {
    size_t length = strlen(header);
    size_t padded = ceil_div(length, HEADER_ALIGNMENT) * HEADER_ALIGNMENT;
    if (padded > HEADER_LIMIT) {
        return error_set(error, STATUS_TOO_LONG, "header takes %zu bytes, at most %d are allowed",
                         padded, (int)HEADER_LIMIT);
    }
    *size = LENGTH_BYTES + padded;
    *memory = malloc(*size);
    if (*memory == NULL) {
        return error_set(error, STATUS_OUT_OF_MEMORY, "out of memory for %zu bytes", *size);
    }
    uint64_t stored = padded;
    memcpy(*memory, &stored, sizeof stored);
    memset(*memory + LENGTH_BYTES, ' ', padded);
    memcpy(*memory + LENGTH_BYTES, header, length);
    return STATUS_OK;
}

/* Parses the header again: the caller's names may contain bytes that the reader refuses. */
static enum status check_header(const char *header, struct error *error) {
    cJSON *parsed;
    enum status status = json_object_parse(&parsed, header, strlen(header), error);
    cJSON_Delete(parsed);
    return status;
}

enum status safetensors_header(const struct safetensors_tensor *tensors, size_t count,
                               unsigned char **header, size_t *size, size_t *data_size,
                               struct error *error) {
    *header = NULL;
    *size = 0;
    char *text;
    TRY(make_header(tensors, count, &text, data_size, error));
    enum status status = check_header(text, error);
    if (status == STATUS_OK) {
        status = frame(text, header, size, error);
    }
    cJSON_free(text);
    return status;
}

enum status safetensors_serialize(const struct safetensors_tensor *tensors, size_t count,
                                  unsigned char **data, size_t *size, struct error *error) {
    *data = NULL;
    *size = 0;
    unsigned char *header;
    size_t header_size, data_size, bytes;
    TRY(safetensors_header(tensors, count, &header, &header_size, &data_size, error));
    if (!checked_add(header_size, data_size, &bytes)) {
        free(header);
        return error_set(error, STATUS_OVERFLOW, "size of all tensors overflows");
    }
    unsigned char *memory = realloc(header, bytes);
    if (memory == NULL) {
        free(header);
        return error_set(error, STATUS_OUT_OF_MEMORY, "out of memory for %zu bytes", bytes);
    }
    unsigned char *out = memory + header_size;
    for (size_t i = 0; i < count; i++) {
        if (tensors[i].bytes > 0) {
            memcpy(out, tensors[i].data, tensors[i].bytes);
        }
        out += tensors[i].bytes;
    }
    *data = memory;
    *size = bytes;
    return STATUS_OK;
}
