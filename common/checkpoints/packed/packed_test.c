#include <stdlib.h>
#include <string.h>

#include "common/checkpoints/packed/packed_testing.h"
#include "common/checkpoints/packed/packed_weights.h"
#include "common/testing/refusals.h"
#include "common/testing/testing.h"

/* ---- The configuration ---- */

#define COMPRESSED(weights)                                                         \
    "{\"quantization_config\":{\"quant_method\":\"compressed-tensors\",\"format\":" \
    "\"pack-quantized\",\"config_groups\":{\"group_0\":{\"targets\":[\"Linear\"],"  \
    "\"weights\":" weights ",\"input_activations\":null}}}}"
#define GPTQ(members) "{\"quantization_config\":{\"quant_method\":\"gptq\"" members "}}"

static enum status parse(const void *data, size_t size, struct error *error) {
    struct packed_config config;
    enum status status = packed_config_parse(&config, data, size, error);
    EXPECT_TRUE(status == STATUS_OK || config.format == PACKED_NONE);
    return status;
}

C_TEST(packed_config, reads_both_layouts) {
    const struct {
        const char *json;
        struct packed_config want;
    } cases[] = {
        {"{}", {PACKED_NONE, 0, 0, false, 0}},
        {"{\"quantization_config\":null}", {PACKED_NONE, 0, 0, false, 0}},
        {COMPRESSED("{\"num_bits\":4,\"type\":\"int\",\"symmetric\":true,\"strategy\":\"group\","
                    "\"group_size\":128}"),
         {PACKED_COMPRESSED, 4, 128, true, 0}},
        {COMPRESSED("{\"num_bits\":8,\"symmetric\":false,\"strategy\":\"channel\"}"),
         {PACKED_COMPRESSED, 8, 0, false, 0}},
        {GPTQ(",\"bits\":4,\"group_size\":128,\"desc_act\":true"), {PACKED_GPTQ, 4, 128, false, 1}},
        {GPTQ(",\"bits\":4,\"group_size\":-1,\"checkpoint_format\":\"gptq_v2\""),
         {PACKED_GPTQ, 4, 0, false, 0}},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct packed_config got;
        const struct packed_config *want = &cases[i].want;
        ASSERT_OK(packed_config_parse(&got, cases[i].json, strlen(cases[i].json), NULL));
        EXPECT_TRUE(got.format == want->format && got.bits == want->bits &&
                    got.group == want->group && got.symmetric == want->symmetric &&
                    got.zero_add == want->zero_add);
    }
}

C_TEST(packed_config, refuses_others) {
    const struct refusal cases[] = {
        {"{\"quantization_config\":{}}", STATUS_UNSUPPORTED,
         "\"quantization_config\": \"quant_method\" is \"missing\"; supported is"},
        {"{\"quantization_config\":{\"quant_method\":\"awq\"}}", STATUS_UNSUPPORTED,
         "\"quant_method\" is \"awq\"; supported is \"compressed-tensors\" or \"gptq\""},
        {"{\"quantization_config\":{\"quant_method\":\"compressed-tensors\",\"format\":"
         "\"marlin-24\"}}",
         STATUS_UNSUPPORTED, "\"format\" is \"marlin-24\"; supported is \"pack-quantized\""},
        {"{\"quantization_config\":{\"quant_method\":\"compressed-tensors\",\"format\":"
         "\"pack-quantized\",\"config_groups\":{\"a\":{},\"b\":{}}}}",
         STATUS_UNSUPPORTED, "\"config_groups\" does not have one group"},
        {COMPRESSED("7"), STATUS_BAD_FORMAT, "\"weights\" is missing or not an object"},
        {COMPRESSED("{\"num_bits\":2}"), STATUS_UNSUPPORTED, "\"num_bits\" is not 4 or 8"},
        {COMPRESSED("{\"num_bits\":4,\"type\":\"float\"}"), STATUS_UNSUPPORTED,
         "\"type\" is \"float\"; supported is \"int\""},
        {COMPRESSED("{\"num_bits\":4,\"strategy\":\"block\"}"), STATUS_UNSUPPORTED,
         "\"strategy\" is \"block\""},
        {COMPRESSED("{\"num_bits\":4,\"strategy\":\"group\"}"), STATUS_BAD_FORMAT,
         "the strategy is \"group\", but there is no \"group_size\""},
        {GPTQ(",\"bits\":3"), STATUS_UNSUPPORTED, "\"bits\" is not 4 or 8"},
        {GPTQ(",\"bits\":4,\"group_size\":0"), STATUS_BAD_FORMAT, "\"group_size\" is no positive"},
        {GPTQ(",\"bits\":4,\"checkpoint_format\":\"marlin\""), STATUS_UNSUPPORTED,
         "\"checkpoint_format\" is \"marlin\""},
    };
    expect_refusals(parse, cases, sizeof cases / sizeof *cases);
}

/* ---- Matrices ---- */

/* A file in memory as the only shard. */
static void open_shards(const struct packed_testing *t, unsigned char **data,
                        struct decoder_shards *shards) {
    size_t size;
    ASSERT_OK(packed_testing_serialize(t, data, &size));
    *shards = (struct decoder_shards){
        .path = strdup("file"), .shards = calloc(1, sizeof *shards->shards), .count = 1};
    shards->shards->path = strdup("file");
    ASSERT_OK(safetensors_parse(&shards->shards->file, *data, size, NULL));
    ASSERT_OK(decoder_shards_join(shards, NULL, NULL));
}

static const void *part(const struct decoder_shards *shards, const char *name) {
    const struct decoder_located *found = decoder_shards_find(shards, name);
    return found != NULL ? found->tensor->data : NULL;
}

/* Bits of the number that a list of words holds at an index, counted bit by bit. */
static int bits_of(const uint32_t *words, size_t first, size_t step, size_t index, size_t bits) {
    int value = 0;
    for (size_t bit = 0; bit < bits; bit++) {
        size_t at = index * bits + bit;
        value |= (int)(words[first + at / 32 * step] >> (at % 32) & 1) << bit;
    }
    return value;
}

static double want_compressed(const struct decoder_shards *s, const struct packed_config *c,
                              size_t row, size_t column, size_t columns) {
    size_t groups = c->group > 0 ? (columns + c->group - 1) / c->group : 1;
    size_t group = c->group > 0 ? column / c->group : 0;
    size_t words = (columns * c->bits + 31) / 32;
    const float *scales = part(s, "m.weight_scale");
    int q = bits_of(part(s, "m.weight_packed"), row * words, 1, column, c->bits);
    int zero = c->symmetric ? 1 << (c->bits - 1)
                            : bits_of(part(s, "m.weight_zero_point"), group, groups, row, c->bits);
    return (double)scales[row * groups + group] * (q - zero);
}

static double want_gptq(const struct decoder_shards *s, const struct packed_config *c, size_t row,
                        size_t column, size_t rows) {
    const float *scales = part(s, "m.scales");
    size_t group = (size_t)((const int32_t *)part(s, "m.g_idx"))[column];
    int q = bits_of(part(s, "m.qweight"), row, rows, column, c->bits);
    int zero = bits_of(part(s, "m.qzeros"), group * (rows * c->bits / 32), 1, row, c->bits);
    return (double)scales[group * rows + row] * (q - zero - c->zero_add);
}

enum { ROWS = 24, COLUMNS = 80 };

static const struct packed_config layouts[] = {
    {PACKED_COMPRESSED, 4, 32, true, 0}, {PACKED_COMPRESSED, 4, 16, false, 0},
    {PACKED_COMPRESSED, 8, 0, true, 0},  {PACKED_COMPRESSED, 8, 128, true, 0},
    {PACKED_GPTQ, 4, 16, false, 1},      {PACKED_GPTQ, 8, 0, false, 0},
};

C_TEST(packed, dequantises_by_the_definition) {
    for (size_t i = 0; i < sizeof layouts / sizeof *layouts; i++) {
        const struct packed_config *c = &layouts[i];
        struct packed_testing t = {.state = i + 1};
        struct decoder_shards shards;
        struct packed_matrix matrix;
        struct error error = {0};
        unsigned char *data;
        float out[ROWS * COLUMNS];
        size_t columns = c->format == PACKED_GPTQ ? COLUMNS : COLUMNS - 3; /* odd */
        packed_testing_add_matrix(&t, c, "m", ROWS, columns);
        open_shards(&t, &data, &shards);
        ASSERT_OK(packed_find(&matrix, &shards, c, "m.weight", ROWS, columns, &error));
        ASSERT_TRUE(matrix.words != NULL);
        packed_dequantize(&matrix, out);
        for (size_t k = 0; k < ROWS * columns; k++) {
            double want = c->format == PACKED_GPTQ
                              ? want_gptq(&shards, c, k / columns, k % columns, ROWS)
                              : want_compressed(&shards, c, k / columns, k % columns, columns);
            if ((float)want != out[k]) {
                TEST_FAIL("layout %zu, weight %zu is %g, not %g", i, k, (double)out[k], want);
                break;
            }
        }
        ASSERT_OK(packed_find(&matrix, &shards, c, "other.weight", ROWS, columns, &error));
        EXPECT_TRUE(matrix.words == NULL);
        decoder_shards_close(&shards);
        packed_testing_free(&t);
        free(data);
    }
}

/* What is packed is what the storage order of low_bit.h stands for. */
C_TEST(packed, packs_what_it_dequantises) {
    enum { GROUP = 16, WIDTH = 45, GROUPS = 3 };
    for (int kind = 0; kind < 3; kind++) {
        size_t bits = kind == 0 ? 8 : 4;
        bool zeros = kind == 2;
        uint8_t points[ROWS * GROUPS];
        float weights[ROWS * WIDTH], want[ROWS * WIDTH], got[ROWS * WIDTH], scales[ROWS * GROUPS];
        uint8_t values[ROWS * WIDTH];
        for (int i = 0; i < ROWS * WIDTH; i++) {
            weights[i] = (float)((i * 37) % 101 - 30) * 0.01f;
        }
        struct low_bit_matrix m = {
            {bits == 4 ? LOW_BIT_INT4 : LOW_BIT_INT8, ROWS, WIDTH, GROUP, NN_F32, zeros},
            values,
            scales,
            zeros ? points : NULL};
        ASSERT_OK(low_bit_quantize(weights, &m, NULL));
        low_bit_dequantize(&m, 0, ROWS, want);
        const struct packed_config c = {PACKED_COMPRESSED, bits, GROUP, !zeros, 0};
        struct packed_testing t = {.state = 1};
        struct decoder_shards shards;
        struct packed_matrix matrix;
        unsigned char *data;
        packed_testing_add_matrix(&t, &c, "m", ROWS, WIDTH);
        packed_words(&m, (uint32_t *)t.tensors[0].data);
        memcpy((void *)t.tensors[1].data, scales, sizeof scales);
        if (zeros) {
            packed_zeros(&m, (uint32_t *)t.tensors[2].data);
        }
        open_shards(&t, &data, &shards);
        ASSERT_OK(packed_find(&matrix, &shards, &c, "m.weight", ROWS, WIDTH, NULL));
        packed_dequantize(&matrix, got);
        EXPECT_TRUE(memcmp(want, got, sizeof got) == 0);
        decoder_shards_close(&shards);
        packed_testing_free(&t);
        free(data);
    }
}

/* Changes a tensor of a matrix, which then is refused. */
C_TEST(packed, refuses_wrong_parts) {
    const struct {
        size_t layout, tensor;
        int change; /* 0: another name, 1: another type, 2: another shape, 3: a group too many */
        enum status status;
        const char *message;
    } cases[] = {
        {0, 1, 0, STATUS_BAD_FORMAT, "file: tensor \"m.weight_scale\" is missing"},
        {1, 2, 0, STATUS_BAD_FORMAT, "file: tensor \"m.weight_zero_point\" is missing"},
        {0, 0, 1, STATUS_UNSUPPORTED, "file: tensor \"m.weight_packed\" has another type than I32"},
        {0, 1, 1, STATUS_UNSUPPORTED, "file: tensor \"m.weight_scale\" has another type than F32"},
        {0, 0, 2, STATUS_MISMATCH,
         "file: tensor \"m.weight_packed\" is (10, 24), must be (24, 10)"},
        {4, 1, 0, STATUS_BAD_FORMAT, "file: tensor \"m.scales\" is missing"},
        {4, 2, 2, STATUS_MISMATCH, "file: tensor \"m.qzeros\" is (3, 5), must be (5, 3)"},
        {4, 3, 3, STATUS_BAD_FORMAT, "tensor \"m.g_idx\": column 7 is in group 5 of 5"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const struct packed_config *c = &layouts[cases[i].layout];
        struct packed_testing t = {.state = 1};
        struct decoder_shards shards;
        struct packed_matrix matrix;
        struct error error = {0};
        unsigned char *data;
        packed_testing_add_matrix(&t, c, "m", ROWS, COLUMNS);
        struct safetensors_tensor *changed = &t.tensors[cases[i].tensor];
        size_t rows = changed->shape[0];
        switch (cases[i].change) {
        case 0:
            changed->name[0] = 'n';
            break;
        case 1:
            changed->dtype = changed->dtype == SAFETENSORS_I32 ? SAFETENSORS_F32 : SAFETENSORS_I32;
            break;
        case 2:
            changed->shape[0] = changed->shape[1];
            changed->shape[1] = rows;
            break;
        default:
            ((int32_t *)changed->data)[7] = 5;
        }
        open_shards(&t, &data, &shards);
        EXPECT_STATUS(cases[i].status,
                      packed_find(&matrix, &shards, c, "m.weight", ROWS, COLUMNS, &error));
        EXPECT_STR_CONTAINS(cases[i].message, error.message);
        decoder_shards_close(&shards);
        packed_testing_free(&t);
        free(data);
    }
}
