#include "common/checkpoints/safetensors/safetensors.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "common/testing/fixture.h"
#include "common/testing/refusals.h"

/* A file of its parts, in memory of exactly its size; the caller frees it. */
static unsigned char *join(const char *header, size_t header_size, size_t data_size, size_t *size) {
    *size = 8 + header_size + data_size;
    unsigned char *file = calloc(1, *size);
    if (file != NULL) {
        uint64_t length = header_size;
        memcpy(file, &length, sizeof length);
        memcpy(file + 8, header, header_size);
    }
    return file;
}

static const float floats[6] = {1.0f, -2.5f, 0.0f, 3e38f, 1e-40f, -7.0f};
static const uint16_t halves[3] = {0x3c00, 0xc100, 0x0001};

/* A file in memory. */
struct made {
    unsigned char *data;
    size_t size;
};

/* F32 (2, 3), F16 (3), an empty one, BF16 (1, 1, 2), a scalar; not in the order of names. */
static bool made_create(struct made *made) {
    char names[][24] = {"z.weight", "half", "empty", "\xf0\x9f\x90\xb8 \"q\" \\ \xcc\x88", "a"};
    const struct safetensors_tensor tensors[] = {
        {names[0], SAFETENSORS_F32, 2, {2, 3}, 6, floats, 24},
        {names[1], SAFETENSORS_F16, 1, {3}, 3, halves, 6},
        {names[2], SAFETENSORS_F32, 2, {0, 5}, 0, NULL, 0},
        {names[3], SAFETENSORS_BF16, 3, {1, 1, 2}, 2, halves, 4},
        {names[4], SAFETENSORS_F32, 0, {0}, 1, floats, 4},
    };
    return safetensors_serialize(tensors, 5, &made->data, &made->size, NULL) == STATUS_OK;
}

/* A test of that file. */
#define MADE_TEST(name) \
    FIXTURE_TEST(safetensors, name, struct made, made, made_create(made), free(made->data))

static void expect_floats(const struct safetensors *file, const char *name, const float *want,
                          size_t count) {
    const struct safetensors_tensor *tensor = safetensors_find(file, name);
    ASSERT_TRUE(tensor != NULL);
    EXPECT_INT_EQ(count, tensor->count);
    float got[8] = {0};
    EXPECT_OK(safetensors_read_f32(tensor, got));
    EXPECT_TRUE(memcmp(want, got, count * sizeof *want) == 0);
}

MADE_TEST(round_trip) {
    struct safetensors file;
    ASSERT_OK(safetensors_parse(&file, made->data, made->size, NULL));
    EXPECT_INT_EQ(5, file.count);
    expect_floats(&file, "z.weight", floats, 6);
    expect_floats(&file, "half", (const float[]){1.0f, -2.5f, 0x1p-24f}, 3);
    expect_floats(&file, "empty", floats, 0);
    expect_floats(&file, "a", floats, 1);
    /* 0x3c00 and 0xc100 as upper halves of an fp32 */
    expect_floats(&file, "\xf0\x9f\x90\xb8 \"q\" \\ \xcc\x88", (const float[]){0x1p-7f, -8.0f}, 2);
    const struct safetensors_tensor *z = safetensors_find(&file, "z.weight");
    EXPECT_INT_EQ(2, z->rank);
    EXPECT_INT_EQ(2, z->shape[0]);
    EXPECT_INT_EQ(3, z->shape[1]);
    for (size_t i = 1; i < file.count; i++) {
        EXPECT_TRUE(strcmp(file.tensors[i - 1].name, file.tensors[i].name) < 0);
    }
    EXPECT_TRUE(safetensors_find(&file, "nothing") == NULL);
    safetensors_close(&file);
    safetensors_close(&file); /* closing twice is allowed */
}

C_TEST(safetensors, a_file_without_tensors) {
    unsigned char *data;
    size_t size;
    ASSERT_OK(safetensors_serialize(NULL, 0, &data, &size, NULL));
    struct safetensors file;
    ASSERT_OK(safetensors_parse(&file, data, size, NULL));
    EXPECT_INT_EQ(0, file.count);
    EXPECT_TRUE(safetensors_find(&file, "a") == NULL);
    safetensors_close(&file);
    free(data);
}

/* What a half-precision number of these fields is worth, straight from its definition. */
static double value_of_bits(unsigned sign, int exponent, int exponent_all_ones, int bias,
                            double mantissa) {
    double value;
    if (exponent == exponent_all_ones) {
        value = mantissa == 0.0 ? INFINITY : NAN;
    } else if (exponent == 0) {
        value = ldexp(mantissa, 1 - bias);
    } else {
        value = ldexp(1.0 + mantissa, exponent - bias);
    }
    return sign != 0 ? -value : value;
}

static void expect_all_values(enum safetensors_dtype dtype, int mantissa_bits, int bias) {
    for (uint32_t i = 0; i <= 0xffff && !test_has_failed(); i++) {
        uint16_t bits = (uint16_t)i;
        struct safetensors_tensor tensor = {
            .dtype = dtype, .count = 1, .data = &bits, .bytes = sizeof bits};
        float got;
        EXPECT_OK(safetensors_read_f32(&tensor, &got));
        int all_ones = (1 << (15 - mantissa_bits)) - 1;
        int exponent = (int)(i >> mantissa_bits) & all_ones;
        double mantissa = ldexp((double)(i & ((1u << mantissa_bits) - 1)), -mantissa_bits);
        double want = value_of_bits(i >> 15, exponent, all_ones, bias, mantissa);
        bool same = isnan(want) ? isnan(got) : (double)got == want;
        if (!same || (i >> 15 != 0) != (signbit(got) != 0)) {
            TEST_FAIL("bits 0x%04x: want %g, got %g", (unsigned)i, want, (double)got);
        }
    }
}

C_TEST(safetensors, every_f16_is_converted_exactly) {
    expect_all_values(SAFETENSORS_F16, 10, 15);
}

C_TEST(safetensors, every_bf16_is_converted_exactly) {
    expect_all_values(SAFETENSORS_BF16, 7, 127);
}

C_TEST(safetensors, reads_tensors_that_are_not_aligned) {
    static const char header[] = "{\"b\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[0,1]},"
                                 "\"f\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[1,5]},"
                                 "\"h\":{\"dtype\":\"F16\",\"shape\":[1],\"data_offsets\":[5,7]}}";
    size_t size;
    unsigned char *data = join(header, sizeof header - 1, 7, &size);
    ASSERT_TRUE(data != NULL);
    memcpy(data + size - 6, &floats[1], 4);
    memcpy(data + size - 2, &halves[0], 2);
    struct safetensors file;
    ASSERT_OK(safetensors_parse(&file, data, size, NULL));
    expect_floats(&file, "f", (const float[]){-2.5f}, 1);
    expect_floats(&file, "h", (const float[]){1.0f}, 1);
    float out;
    EXPECT_STATUS(STATUS_UNSUPPORTED, safetensors_read_f32(safetensors_find(&file, "b"), &out));
    safetensors_close(&file);
    free(data);
}

static enum status parse(const void *data, size_t size, struct error *error) {
    struct safetensors file;
    enum status status = safetensors_parse(&file, data, size, error);
    EXPECT_TRUE(status == STATUS_OK || file.tensors == NULL);
    safetensors_close(&file);
    return status;
}

MADE_TEST(every_truncation_is_refused) {
    expect_prefixes_refused(parse, made->data, made->size, STATUS_TRUNCATED, "file");
}

/* A header, the number of data bytes after it, and the result that it must have. */
struct header_case {
    const char *header;
    size_t data_size;
    enum status status;
    const char *message; /* part of the line */
};

#define TENSOR(dtype, shape, offsets) \
    "{\"dtype\":\"" dtype "\",\"shape\":" shape ",\"data_offsets\":" offsets "}"
#define ONE(dtype, shape, offsets) "{\"a\":" TENSOR(dtype, shape, offsets) "}"

static const struct header_case good_headers[] = {
    {"{}", 0, STATUS_OK, ""},
    {"{} \n\t ", 0, STATUS_OK, ""},
    {ONE("F32", "[1]", "[0,4]"), 4, STATUS_OK, ""},
    {ONE("F32", "[]", "[0,4]"), 4, STATUS_OK, ""},
    {ONE("I64", "[1,2]", "[0,16]"), 16, STATUS_OK, ""},
    {ONE("BOOL", "[3]", "[0,3]"), 3, STATUS_OK, ""},
    {ONE("F4", "[4]", "[0,2]"), 2, STATUS_OK, ""},
    {ONE("F32", "[1,1,1,1,1,1,1,1]", "[0,4]"), 4, STATUS_OK, ""},
    {ONE("F32", "[0,9007199254740992]", "[0,0]"), 0, STATUS_OK, ""},
    {"{\"__metadata__\":{\"format\":\"pt\"}}", 0, STATUS_OK, ""},
    {"{\"__metadata__\":{},\"a\":" TENSOR("F32", "[1]", "[0,4]") "}", 4, STATUS_OK, ""},
    {"{\"\":" TENSOR("F32", "[1]", "[0,4]") "}", 4, STATUS_OK, ""},
    {"{\"b\":" TENSOR("F32", "[1]", "[4,8]") ",\"a\":" TENSOR("F32", "[1]", "[0,4]") "}", 8,
     STATUS_OK, ""},
    {"{\"\\ud83d\\udc38\\u0001\":" TENSOR("F32", "[1]", "[0,4]") "}", 4, STATUS_OK, ""},
    {"{\"b\":" TENSOR("F32", "[0]", "[4,4]") ",\"a\":" TENSOR("F32", "[1]", "[0,4]") "}", 4,
     STATUS_OK, ""},
};

static const struct header_case bad_headers[] = {
    /* not JSON, or not this JSON */
    {"[]", 0, STATUS_BAD_FORMAT, "header does not begin with '{'"},
    {" {}", 0, STATUS_BAD_FORMAT, "header does not begin with '{'"},
    {"\"text\"", 0, STATUS_BAD_FORMAT, "header does not begin with '{'"},
    {"{", 0, STATUS_BAD_FORMAT, "header: not valid JSON at byte"},
    {"{\"a\"", 0, STATUS_BAD_FORMAT, "header: not valid JSON at byte"},
    {"{\"a\":1,}", 0, STATUS_BAD_FORMAT, "header: not valid JSON at byte"},
    {"{} {}", 0, STATUS_BAD_FORMAT, "header: JSON has text after its end, at byte 3"},
    {"{\"\xff\":1}", 0, STATUS_BAD_UTF8, "header: JSON is not valid UTF-8 at byte 2"},
    {"{\"\xed\xa0\x80\":1}", 0, STATUS_BAD_UTF8, "header: JSON is not valid UTF-8 at byte 2"},
    {"{\"\\ud800\":1}", 0, STATUS_BAD_FORMAT, "header: not valid JSON"},
    {"{\"\x01\":1}", 0, STATUS_BAD_FORMAT, "header: JSON has a control character at byte 2"},
    {"{\"a\\u0000b\":1}", 0, STATUS_BAD_FORMAT, "header: JSON has a string with a NUL at byte 3"},
    /* duplicates */
    {"{\"a\":" TENSOR("F32", "[0]", "[0,0]") ",\"a\":" TENSOR("F32", "[0]", "[0,0]") "}", 0,
     STATUS_BAD_FORMAT, "header: JSON has the key \"a\" twice"},
    {"{\"a\":" TENSOR("F32", "[0]", "[0,0]") ",\"\\u0061\":" TENSOR("F32", "[0]", "[0,0]") "}", 0,
     STATUS_BAD_FORMAT, "header: JSON has the key \"a\" twice"},
    {"{\"a\":{\"dtype\":\"F32\",\"dtype\":\"F16\",\"shape\":[0],\"data_offsets\":[0,0]}}", 0,
     STATUS_BAD_FORMAT, "header: JSON has the key \"dtype\" twice"},
    {"{\"__metadata__\":{\"k\":\"1\",\"k\":\"2\"}}", 0, STATUS_BAD_FORMAT, "the key \"k\" twice"},
    {"{\"__metadata__\":{},\"__metadata__\":{}}", 0, STATUS_BAD_FORMAT,
     "the key \"__metadata__\" twice"},
    /* metadata */
    {"{\"__metadata__\":[]}", 0, STATUS_BAD_FORMAT, "\"__metadata__\" is not an object"},
    {"{\"__metadata__\":{\"k\":1}}", 0, STATUS_BAD_FORMAT, "value of \"k\" is not a string"},
    {"{\"__metadata__\":{\"k\":null}}", 0, STATUS_BAD_FORMAT, "value of \"k\" is not a string"},
    /* entries */
    {"{\"a\":1}", 0, STATUS_BAD_FORMAT, "tensor \"a\": its entry is not an object"},
    {"{\"a\":{}}", 0, STATUS_BAD_FORMAT, "tensor \"a\": \"dtype\" is not a string"},
    {"{\"a\":{\"dtype\":7}}", 0, STATUS_BAD_FORMAT, "tensor \"a\": \"dtype\" is not a string"},
    {"{\"a\":{\"DTYPE\":\"F32\"}}", 0, STATUS_BAD_FORMAT, "\"dtype\" is not a string"},
    {ONE("F31", "[1]", "[0,4]"), 4, STATUS_UNSUPPORTED, "tensor \"a\": unknown dtype \"F31\""},
    {ONE("f32", "[1]", "[0,4]"), 4, STATUS_UNSUPPORTED, "tensor \"a\": unknown dtype \"f32\""},
    {"{\"a\":{\"dtype\":\"F32\"}}", 0, STATUS_BAD_FORMAT, "\"shape\" is not an array"},
    {ONE("F32", "4", "[0,4]"), 4, STATUS_BAD_FORMAT, "\"shape\" is not an array"},
    {ONE("F32", "[-1]", "[0,4]"), 4, STATUS_BAD_FORMAT,
     "\"shape\" has an element that is no whole number"},
    {ONE("F32", "[1.5]", "[0,4]"), 4, STATUS_BAD_FORMAT,
     "\"shape\" has an element that is no whole number"},
    {ONE("F32", "[\"1\"]", "[0,4]"), 4, STATUS_BAD_FORMAT,
     "\"shape\" has an element that is no whole number"},
    {ONE("F32", "[9007199254740994]", "[0,4]"), 4, STATUS_BAD_FORMAT, "\"shape\" has"},
    {ONE("F32", "[1e999]", "[0,4]"), 4, STATUS_BAD_FORMAT,
     "\"shape\" has an element that is no whole number"},
    {ONE("F32", "[1,1,1,1,1,1,1,1,1]", "[0,4]"), 4, STATUS_UNSUPPORTED, "more than 8 dimensions"},
    /* offsets */
    {"{\"a\":{\"dtype\":\"F32\",\"shape\":[1]}}", 4, STATUS_BAD_FORMAT, "\"data_offsets\" is not"},
    {ONE("F32", "[1]", "[0]"), 4, STATUS_BAD_FORMAT, "\"data_offsets\" is not two whole numbers"},
    {ONE("F32", "[1]", "[0,4,8]"), 4, STATUS_BAD_FORMAT, "\"data_offsets\" is not two"},
    {ONE("F32", "[1]", "[-4,0]"), 4, STATUS_BAD_FORMAT, "\"data_offsets\" is not two"},
    {ONE("F32", "[1]", "[0,4.5]"), 4, STATUS_BAD_FORMAT, "\"data_offsets\" is not two"},
    {ONE("F32", "[1]", "[0,1e300]"), 4, STATUS_BAD_FORMAT, "\"data_offsets\" is not two"},
    {ONE("F32", "[1]", "{\"x\":0,\"y\":4}"), 4, STATUS_BAD_FORMAT, "\"data_offsets\" is not two"},
    {ONE("F32", "[1]", "[4,0]"), 4, STATUS_BAD_FORMAT, "data_offsets [4, 0] run backwards"},
    {ONE("F32", "[2]", "[0,4]"), 4, STATUS_MISMATCH,
     "tensor \"a\": shape takes 8 bytes, data_offsets [0, 4] hold 4"},
    {ONE("F16", "[1]", "[0,4]"), 4, STATUS_MISMATCH, "shape takes 2 bytes"},
    {ONE("F32", "[1099511627776]", "[0,4398046511104]"), 4, STATUS_TRUNCATED,
     "tensor \"a\": data_offsets [0, 4398046511104] end behind the file's 4 bytes of data"},
    {ONE("F32", "[4294967296,4294967296]", "[0,0]"), 0, STATUS_OVERFLOW, "overflows"},
    {ONE("F32", "[2147483648,2147483648]", "[0,0]"), 0, STATUS_OVERFLOW, "overflows"},
    {ONE("F4", "[3]", "[0,1]"), 1, STATUS_OVERFLOW, "not a whole number of bytes"},
    /* coverage */
    {ONE("F32", "[1]", "[0,4]"), 5, STATUS_MISMATCH,
     "tensors end at byte 4 of the data, file has 5"},
    {"{}", 1, STATUS_MISMATCH, "tensors end at byte 0 of the data, file has 1"},
    {ONE("F32", "[1]", "[4,8]"), 8, STATUS_BAD_FORMAT,
     "tensor \"a\" begins at byte 4 of the data, after a gap that begins at 0"},
    {"{\"a\":" TENSOR("F32", "[2]", "[0,8]") ",\"b\":" TENSOR("F32", "[1]", "[4,8]") "}", 8,
     STATUS_BAD_FORMAT,
     "tensor \"b\" begins at byte 4 of the data, inside the tensor that ends at 8"},
    {"{\"a\":" TENSOR("F32", "[1]", "[0,4]") ",\"b\":" TENSOR("F32", "[1]", "[0,4]") "}", 4,
     STATUS_BAD_FORMAT, "inside the tensor that ends at 4"},
    {"{\"a\":" TENSOR("F32", "[1]", "[0,4]") ",\"b\":" TENSOR("F32", "[0]", "[2,2]") "}", 4,
     STATUS_BAD_FORMAT, "inside the tensor that ends at 4"},
};

static void check_header_case(const struct header_case *test) {
    size_t size;
    unsigned char *data = join(test->header, strlen(test->header), test->data_size, &size);
    ASSERT_TRUE(data != NULL);
    struct safetensors file;
    struct error error = {0};
    enum status status = safetensors_parse(&file, data, size, &error);
    if (status != test->status || strstr(error.message, test->message) == NULL ||
        strchr(error.message, '\n') != NULL) {
        TEST_FAIL("%s: want %s \"...%s...\", got %s \"%s\"", test->header,
                  status_name(test->status), test->message, status_name(status), error.message);
    }
    safetensors_close(&file);
    free(data);
}

C_TEST(safetensors, good_headers_are_accepted) {
    for (size_t i = 0; i < sizeof good_headers / sizeof *good_headers; i++) {
        check_header_case(&good_headers[i]);
    }
}

C_TEST(safetensors, bad_headers_are_refused) {
    for (size_t i = 0; i < sizeof bad_headers / sizeof *bad_headers; i++) {
        check_header_case(&bad_headers[i]);
    }
}

C_TEST(safetensors, a_raw_nul_in_a_name_is_refused) {
    static const char header[] = "{\"a\0b\":{\"dtype\":\"F32\",\"shape\":[0],"
                                 "\"data_offsets\":[0,0]}}";
    size_t size;
    unsigned char *data = join(header, sizeof header - 1, 0, &size);
    ASSERT_TRUE(data != NULL);
    expect_refusal(parse, data, size, STATUS_BAD_FORMAT,
                   "header: JSON has a control character at byte 3");
    free(data);
}

C_TEST(safetensors, deep_nesting_is_refused) {
    enum { DEPTH = 100000 };
    char *header = malloc(DEPTH + 6);
    ASSERT_TRUE(header != NULL);
    memcpy(header, "{\"a\":", 5);
    memset(header + 5, '[', DEPTH);
    header[DEPTH + 5] = '\0';
    check_header_case(
        &(struct header_case){header, 0, STATUS_BAD_FORMAT, "header: not valid JSON at byte"});
    free(header);
}

C_TEST(safetensors, long_names_are_cut_between_code_points) {
    char header[512] = "{\"x"; /* the 100th byte falls inside a two-byte code point */
    for (int i = 0; i < 80; i++) {
        strcat(header, "\xc3\xa9");
    }
    strcat(header, "\":1}");
    char want[512] = "tensor \"x";
    for (int i = 0; i < 49; i++) {
        strcat(want, "\xc3\xa9");
    }
    strcat(want, "\": its entry is not an object");
    check_header_case(&(struct header_case){header, 0, STATUS_BAD_FORMAT, want});
}

/* The eight bytes before the header. */
struct length_case {
    uint64_t length;
    enum status status;
    const char *message;
};

C_TEST(safetensors, bad_header_lengths_are_refused) {
    static const struct length_case cases[] = {
        {0, STATUS_BAD_FORMAT, "header does not begin with '{'"},
        {3, STATUS_TRUNCATED, "header length is 3, file has 10 bytes"},
        {100000000, STATUS_TRUNCATED, "header length is 100000000, file has 10 bytes"},
        {100000001, STATUS_BAD_FORMAT, "header length is 100000001, at most 100000000"},
        {UINT64_MAX, STATUS_BAD_FORMAT, "header length is 18446744073709551615, at most"},
        {UINT64_MAX - 7, STATUS_BAD_FORMAT, "header length is 18446744073709551608, at most"},
        {(uint64_t)1 << 63, STATUS_BAD_FORMAT, "header length is 9223372036854775808, at most"},
        {0x20656874206c6c41, STATUS_BAD_FORMAT, "is this a safetensors file?"}, /* "All the " */
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        unsigned char data[10] = {[8] = '{', [9] = '}'};
        memcpy(data, &cases[i].length, sizeof cases[i].length);
        expect_refusal(parse, data, sizeof data, cases[i].status, cases[i].message);
    }
}

static enum status open_file(const char *path, struct error *error) {
    struct safetensors file;
    enum status status = safetensors_open(&file, path, error);
    safetensors_close(&file);
    return status;
}

MADE_TEST(opens_files_and_names_bad_ones) {
    char path[4096];
    test_temporary_path("good.safetensors", path, sizeof path);
    ASSERT_OK(file_write(path, made->data, made->size, NULL));
    struct safetensors file;
    ASSERT_OK(safetensors_open(&file, path, NULL));
    expect_floats(&file, "z.weight", floats, 6);
    safetensors_close(&file);
    ASSERT_OK(file_write(path, made->data, made->size - 1, NULL));
    expect_open_fails(open_file, path, "", STATUS_TRUNCATED,
                      "tensor \"a\": data_offsets [34, 38] end behind");
    ASSERT_OK(file_write(path, "\x80\x02}q\x00(X\x01\x00\x00\x00", 11, NULL)); /* a pickle */
    expect_open_fails(open_file, path, "", STATUS_BAD_FORMAT, "this is a Python pickle");
    expect_bad_files_named(open_file, STATUS_TRUNCATED, "header length needs 8 bytes, file has 0");
}

/* Tensors that cannot be written. */
C_TEST(safetensors, serialize_refuses_what_cannot_be_read_back) {
    char name[] = "a";
    char reserved[] = "__metadata__";
    char broken[] = "\xff";
    const struct safetensors_tensor good = {name, SAFETENSORS_F32, 1, {2}, 2, floats, 8};
    const struct safetensors_tensor twice[] = {good, good};
    unsigned char *data;
    size_t size;
    struct error error = {0};
    EXPECT_ERROR(STATUS_BAD_FORMAT, "JSON has the key \"a\" twice",
                 safetensors_serialize(twice, 2, &data, &size, &error));
    struct safetensors_tensor bad = good;
    bad.name = reserved;
    EXPECT_STATUS(STATUS_INVALID_ARGUMENT, safetensors_serialize(&bad, 1, &data, &size, &error));
    bad.name = broken;
    EXPECT_STATUS(STATUS_BAD_UTF8, safetensors_serialize(&bad, 1, &data, &size, &error));
    bad = good;
    bad.dtype = SAFETENSORS_OTHER;
    EXPECT_STATUS(STATUS_UNSUPPORTED, safetensors_serialize(&bad, 1, &data, &size, &error));
    bad = good;
    bad.bytes = 7;
    EXPECT_ERROR(STATUS_MISMATCH, "tensor \"a\": shape takes 8 bytes, it has 7",
                 safetensors_serialize(&bad, 1, &data, &size, &error));
    bad.rank = 9;
    EXPECT_STATUS(STATUS_INVALID_ARGUMENT, safetensors_serialize(&bad, 1, &data, &size, &error));
    EXPECT_TRUE(data == NULL);
}
