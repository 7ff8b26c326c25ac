#include "common/checkpoints/gguf/gguf.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/rng.h"
#include "common/checkpoints/gguf/gguf_llama2.h"
#include "common/checkpoints/gguf/gguf_testing.h"
#include "common/checkpoints/gguf/gguf_vocabulary.h"
#include "common/checkpoints/llama2/llama2_checkpoint.h"
#include "common/models/llama2_random.h"
#include "common/testing/refusals.h"
#include "common/testing/testing.h"

/* ---- What blocks stand for ---- */

/* An fp16 number by its definition. */
static double half(const uint8_t *at) {
    int bits = at[0] | at[1] << 8, exponent = bits >> 10 & 31, fraction = bits & 1023;
    double magnitude = exponent == 0 ? ldexp(fraction, -24) : ldexp(1024 + fraction, exponent - 25);
    return bits >> 15 != 0 ? -magnitude : magnitude;
}

/* Bits first .. first + count - 1 of a number that is stored from its lowest byte on. */
static int bits(const uint8_t *at, int first, int count) {
    int value = 0;
    for (int i = 0; i < count; i++) {
        value |= (at[(first + i) / 8] >> ((first + i) % 8) & 1) << i;
    }
    return value;
}

/* Weight i of a block, in double, exactly; each written from the format's description, not as the
   reader computes it. */
static double reference(enum gguf_type type, const uint8_t *b, int i) {
    if (type == GGUF_Q8_0) {
        return half(b) * (b[2 + i] < 128 ? b[2 + i] : b[2 + i] - 256);
    }
    if (type == GGUF_Q4_0) {
        return half(b) * (bits(b + 2 + i % 16, i < 16 ? 0 : 4, 4) - 8);
    }
    if (type == GGUF_Q6_K) { /* ql 128, qh 64, scales 16, d */
        int half_block = i / 128, quarter = i % 128 / 32, column = i % 32;
        int low = bits(b + half_block * 64 + quarter % 2 * 32 + column, quarter / 2 * 4, 4);
        int high = bits(b + 128 + half_block * 32 + column, 2 * quarter, 2);
        int scale = b[192 + i / 16];
        return half(b + 208) * (scale < 128 ? scale : scale - 256) * (low + 16 * high - 32);
    }
    /* Q4_K: d, dmin, 12 bytes of scales, 128 bytes of nibbles, 64 weights in 32 of them */
    const uint8_t *packed = b + 4;
    int group = i / 32, at = group % 4;
    int scale = bits(packed + at, 0, 6), minimum = bits(packed + 4 + at, 0, 6);
    if (group >= 4) {
        scale = bits(packed + 8 + at, 0, 4) + 16 * bits(packed + at, 6, 2);
        minimum = bits(packed + 8 + at, 4, 4) + 16 * bits(packed + 4 + at, 6, 2);
    }
    int q = bits(b + 16 + i / 64 * 32 + i % 32, group % 2 * 4, 4);
    return half(b) * scale * q - half(b + 2) * minimum;
}

static const enum gguf_type blocked[] = {GGUF_Q8_0, GGUF_Q4_0, GGUF_Q4_K, GGUF_Q6_K};
enum { BLOCKED = sizeof blocked / sizeof *blocked, BLOCKS = 64, MOST_WEIGHTS = 256 };

/* Random bytes, but scales that are finite: exponents of all ones become smaller. */
static void fill(uint8_t *data, size_t bytes, enum gguf_type type, struct rng *rng) {
    for (size_t i = 0; i < bytes; i++) {
        data[i] = (uint8_t)rng_below(rng, 256);
    }
    size_t first = type == GGUF_Q6_K ? 208 : 0, scales = type == GGUF_Q4_K ? 2 : 1;
    for (size_t i = 0; i < scales; i++) {
        data[first + 2 * i + 1] &= 0xbf;
    }
}

C_TEST(gguf_blocks, equal_the_definition_bit_for_bit) {
    struct rng rng = rng_create(1);
    for (size_t t = 0; t < BLOCKED; t++) {
        const struct gguf_block block = gguf_block(blocked[t]);
        for (size_t n = 0; n < BLOCKS; n++) {
            uint8_t data[256] = {0};
            float values[MOST_WEIGHTS];
            fill(data, block.bytes, blocked[t], &rng);
            gguf_dequantize(blocked[t], data, values, block.weights);
            for (size_t i = 0; i < block.weights; i++) {
                float want = (float)reference(blocked[t], data, (int)i);
                if (memcmp(&want, &values[i], sizeof want) != 0 &&
                    !(want == 0.0f && values[i] == 0.0f)) {
                    TEST_FAIL("%s, block %zu: weight %zu is %a, not %a", block.name, n, i,
                              (double)values[i], (double)want);
                    return;
                }
            }
        }
    }
}

/* Worked out by hand. */
C_TEST(gguf_blocks, of_known_bytes) {
    uint8_t q8[34] = {0x00, 0x38, 3, 0xff, 0x80}, q4[18] = {0x00, 0x40, 0x1f};
    uint8_t q4k[144] = {0x00, 0x3c, 0x00, 0x38, 2 | 1 << 6, 0, 0, 0, 4 | 2 << 6};
    uint8_t q6k[210] = {0x21};
    float out[256];
    gguf_dequantize(GGUF_Q8_0, q8, out, 32); /* d 0.5 */
    EXPECT_NEAR(1.5, (double)out[0], 0.0);
    EXPECT_NEAR(-0.5, (double)out[1], 0.0);
    EXPECT_NEAR(-64.0, (double)out[2], 0.0);
    gguf_dequantize(GGUF_Q4_0, q4, out, 32); /* d 2 */
    EXPECT_NEAR(14.0, (double)out[0], 0.0);
    EXPECT_NEAR(-14.0, (double)out[16], 0.0);
    EXPECT_NEAR(-16.0, (double)out[1], 0.0);
    q4k[12] = 3 | 5 << 4;                      /* group 4: scale 3 + 16, minimum 5 + 32 */
    q4k[16] = 0x97, q4k[16 + 64] = 0x0a;       /* weights 0 and 32; 128 */
    gguf_dequantize(GGUF_Q4_K, q4k, out, 256); /* d 1, dmin 0.5 */
    EXPECT_NEAR(2.0 * 7 - 0.5 * 4, (double)out[0], 0.0);
    EXPECT_NEAR(0.0, (double)out[32], 0.0);
    EXPECT_NEAR(19.0 * 10 - 0.5 * 37, (double)out[128], 0.0);
    q6k[128] = 2 | 1 << 4, q6k[192] = 3, q6k[196] = 0xff, q6k[209] = 0x3c;
    gguf_dequantize(GGUF_Q6_K, q6k, out, 256); /* d 1 */
    EXPECT_NEAR(3.0 * (1 + 32 - 32), (double)out[0], 0.0);
    EXPECT_NEAR(-1.0 * (2 + 16 - 32), (double)out[64], 0.0);
}

C_TEST(gguf_blocks, of_whole_numbers_of_16_and_32_bits) {
    const float f32 = -3.25f;
    const uint16_t f16 = 0xc280, bf16 = 0xc050;
    unsigned char odd[5];
    float out;
    memcpy(odd + 1, &f32, sizeof f32);
    gguf_dequantize(GGUF_F32, odd + 1, &out, 1);
    EXPECT_NEAR(-3.25, (double)out, 0.0);
    memcpy(odd + 1, &f16, sizeof f16);
    gguf_dequantize(GGUF_F16, odd + 1, &out, 1);
    EXPECT_NEAR(-3.25, (double)out, 0.0);
    memcpy(odd + 1, &bf16, sizeof bf16);
    gguf_dequantize(GGUF_BF16, odd + 1, &out, 1);
    EXPECT_NEAR(-3.25, (double)out, 0.0);
}

/* ---- Files ---- */

static enum status parse(const void *data, size_t size, struct error *error) {
    struct gguf file;
    enum status status = gguf_parse(&file, data, size, error);
    if (status != STATUS_OK) {
        EXPECT_TRUE(file.values == NULL && file.tensors == NULL);
    }
    gguf_close(&file);
    return status;
}

/* A file with a value of each kind and a tensor. */
static struct gguf_file small_file(uint32_t type, size_t columns) {
    struct gguf_file f = {0};
    gguf_put_head(&f, 3, 1, 5);
    gguf_put_text(&f, "text", "hello");
    gguf_put_u32(&f, "whole", 7);
    gguf_put_f32(&f, "real", 0.5f);
    gguf_put_bool(&f, "truth", true);
    gguf_put_array(&f, "list", GGUF_INT16, 2);
    gguf_put(&f, (int16_t[]){-5, 6}, 4);
    gguf_put_tensor(&f, "t", 2, columns, type);
    gguf_put_padding(&f);
    for (size_t i = 0; i < f.offset; i++) {
        gguf_put(&f, &(unsigned char){(unsigned char)i}, 1);
    }
    return f;
}

C_TEST(gguf, finds_values_and_tensors) {
    struct gguf_file f = small_file(GGUF_Q8_0, 32);
    struct gguf file;
    struct gguf_string text;
    size_t whole;
    double real;
    bool truth;
    ASSERT_OK(gguf_parse(&file, f.data, f.size, NULL));
    EXPECT_TRUE(gguf_text_is(&file, "text", "hello") && !gguf_text_is(&file, "text", "hell"));
    EXPECT_TRUE(gguf_text(&file, "text", &text) && text.length == 5);
    EXPECT_TRUE(gguf_size(&file, "whole", &whole) && whole == 7);
    EXPECT_TRUE(gguf_number(&file, "real", &real) && real == 0.5);
    EXPECT_TRUE(gguf_bool(&file, "truth", &truth) && truth);
    EXPECT_TRUE(!gguf_size(&file, "real", &whole) && !gguf_size(&file, "list", &whole));
    EXPECT_TRUE(!gguf_text(&file, "whole", &text) && gguf_value(&file, "none") == NULL);
    EXPECT_NEAR(-5.0, gguf_element(gguf_value(&file, "list"), 0), 0.0);
    EXPECT_NEAR(6.0, gguf_element(gguf_value(&file, "list"), 1), 0.0);
    const struct gguf_tensor *t = gguf_find(&file, "t");
    ASSERT_TRUE(t != NULL && gguf_find(&file, "s") == NULL);
    EXPECT_INT_EQ(2, t->shape[0]);
    EXPECT_INT_EQ(32, t->shape[1]);
    EXPECT_INT_EQ(68, t->bytes);
    EXPECT_INT_EQ(1, ((const uint8_t *)t->data)[1]);
    gguf_close(&file);
    free(f.data);
}

C_TEST(gguf, refuses_every_prefix) {
    struct gguf_file f = small_file(GGUF_F32, 8);
    expect_prefixes_refused(parse, f.data, f.size, STATUS_TRUNCATED, "");
    free(f.data);
}

/* Bytes of a small file, changed, with what is then wrong. */
C_TEST(gguf, refuses_what_is_wrong) {
    const struct {
        size_t at;
        uint32_t value;
        enum status status;
        const char *message;
    } cases[] = {
        {0, 0x46554746, STATUS_BAD_FORMAT, "this is no GGUF file"},
        {4, 1, STATUS_UNSUPPORTED, "GGUF version 1 (make the file anew) is not supported"},
        {4, 0x03000000, STATUS_UNSUPPORTED, "(a big-endian file?)"},
        {8, 1000, STATUS_TRUNCATED, "the header announces 5 values and 1000 tensors"},
        {16, 0xffffffff, STATUS_TRUNCATED, "the header announces"},
        {36, 77, STATUS_BAD_FORMAT, "value \"text\" has the type 77; types are 0 to 12"},
    };
    struct gguf_file f = small_file(GGUF_F32, 8);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        unsigned char *changed = exact_copy(f.data, f.size);
        memcpy(changed + cases[i].at, &cases[i].value, sizeof cases[i].value);
        expect_refusal(parse, changed, f.size, cases[i].status, cases[i].message);
        free(changed);
    }
    free(f.data);
    f = small_file(GGUF_Q8_0, 33);
    expect_refusal(parse, f.data, f.size, STATUS_BAD_FORMAT,
                   "tensor \"t\": its rows of 33 are no multiple of Q8_0's blocks of 32");
    free(f.data);
}

static void expect_head_refused(struct gguf_file *f, enum status status, const char *message) {
    expect_refusal(parse, f->data, f->size, status, message);
    free(f->data);
    *f = (struct gguf_file){0};
}

C_TEST(gguf, refuses_arrays_of_arrays_and_what_is_there_twice) {
    struct gguf_file f = {0};
    gguf_put_head(&f, 3, 0, 1);
    gguf_put_array(&f, "a", GGUF_ARRAY, 1);
    expect_head_refused(&f, STATUS_UNSUPPORTED, "value \"a\" is an array of arrays");
    gguf_put_head(&f, 3, 0, 2);
    gguf_put_u32(&f, "a", 1);
    gguf_put_u32(&f, "a", 1);
    expect_head_refused(&f, STATUS_BAD_FORMAT, "there are two values \"a\"");
    gguf_put_head(&f, 3, 2, 0);
    gguf_put_tensor(&f, "a", 0, 1, GGUF_F32);
    gguf_put_tensor(&f, "a", 0, 0, GGUF_F32);
    gguf_put_padding(&f);
    gguf_put(&f, "01234567890123456789012345678901", 32);
    expect_head_refused(&f, STATUS_BAD_FORMAT, "there are two tensors \"a\"");
    gguf_put_head(&f, 3, 0, 1);
    gguf_put_array(&f, "a", GGUF_UINT64, UINT64_MAX / 4);
    expect_head_refused(&f, STATUS_OVERFLOW, "value \"a\": the size of");
    gguf_put_head(&f, 3, 1, 0);
    gguf_put_tensor(&f, "huge", SIZE_MAX / 2, 3, GGUF_F32);
    expect_head_refused(&f, STATUS_OVERFLOW, "the size of tensor \"huge\" overflows");
    gguf_put_head(&f, 3, 0, 1);
    gguf_put_u32(&f, "general.alignment", 0);
    expect_head_refused(&f, STATUS_BAD_FORMAT, "\"general.alignment\" is not from 1 to 2^30");
}

/* ---- A model ---- */

static const struct llama2_config sizes = {.C = 256,
                                           .hidden = 512,
                                           .L = 2,
                                           .NH = 4,
                                           .KVH = 2,
                                           .HS = 64,
                                           .V = GGUF_BYTE_LEVEL_TOKENS,
                                           .T = 16,
                                           .rope_theta = 50000.0f,
                                           .norm_eps = 1e-6f,
                                           .rope_layout = NN_ROPE_INTERLEAVED};

static struct gguf_file model_file(enum gguf_type type) {
    struct gguf_file f = {0};
    struct llama2_random model;
    EXPECT_OK(llama2_random_create(&model, &sizes, 1));
    EXPECT_OK(gguf_testing_llama2(&f, &sizes, &model.weights, type, NULL, 0));
    llama2_random_free(&model);
    return f;
}

static enum status load(struct llama2_checkpoint *checkpoint, const void *data, size_t size,
                        size_t most_bytes, struct error *error) {
    struct gguf file;
    *checkpoint = (struct llama2_checkpoint){.shared_classifier = false};
    TRY(gguf_parse(&file, data, size, error));
    return llama2_checkpoint_load_gguf(checkpoint, &file, most_bytes, error);
}

C_TEST(gguf_llama2, reads_sizes_and_weights_in_place) {
    struct gguf_file f = model_file(GGUF_F16);
    struct llama2_random model;
    struct llama2_checkpoint checkpoint;
    struct error error = {0};
    ASSERT_OK(llama2_random_create(&model, &sizes, 1));
    ASSERT_OK(load(&checkpoint, f.data, f.size, 0, &error));
    const struct llama2_config *c = &checkpoint.config;
    EXPECT_TRUE(c->C == 256 && c->hidden == 512 && c->L == 2 && c->NH == 4 && c->KVH == 2 &&
                c->HS == 64 && c->V == GGUF_BYTE_LEVEL_TOKENS && c->T == 16);
    EXPECT_TRUE(c->rope_theta == 50000.0f && c->norm_eps == 1e-6f &&
                c->rope_layout == NN_ROPE_INTERLEAVED && checkpoint.shared_classifier);
    const struct decoder_stored_tensor *w2 = &checkpoint.weights.layers[1].w2;
    EXPECT_TRUE(w2->dtype == NN_F16 && w2->rows == 256 && w2->columns == 512);
    EXPECT_TRUE((const unsigned char *)w2->data > f.data &&
                (const unsigned char *)w2->data < f.data + f.size);
    float got[512];
    gguf_dequantize(GGUF_F16, w2->data, got, 512);
    for (size_t i = 0; i < 512; i++) {
        double want = (double)model.weights.layers[1].w2[i];
        EXPECT_NEAR(want, (double)got[i], fabs(want) * 0x1p-11 + 0x1p-25);
    }
    EXPECT_TRUE(memcmp(checkpoint.weights.final_norm.data, model.weights.final_norm, 256 * 4) == 0);
    llama2_checkpoint_close(&checkpoint);
    llama2_random_free(&model);
    free(f.data);
}

C_TEST(gguf_llama2, dequantises_blocks) {
    for (size_t t = 0; t < BLOCKED; t++) {
        struct gguf_file f = model_file(blocked[t]);
        struct llama2_checkpoint checkpoint;
        struct error error = {0};
        ASSERT_OK(load(&checkpoint, f.data, f.size, 0, &error));
        const struct gguf_tensor *t1 = gguf_find(&checkpoint.gguf, "blk.1.ffn_gate.weight");
        const struct decoder_stored_tensor *w1 = &checkpoint.weights.layers[1].w1;
        ASSERT_TRUE(t1 != NULL && w1->dtype == NN_F32 && w1->rows == 512 && w1->columns == 256);
        float *want = malloc(t1->count * sizeof *want);
        gguf_dequantize(blocked[t], t1->data, want, t1->count);
        EXPECT_TRUE(memcmp(want, w1->data, t1->count * sizeof *want) == 0);
        free(want);
        llama2_checkpoint_close(&checkpoint);
        EXPECT_STATUS(STATUS_OUT_OF_MEMORY, load(&checkpoint, f.data, f.size, 1 << 20, &error));
        EXPECT_STR_CONTAINS("weights as fp32 take 0.0 GB of memory", error.message);
        free(f.data);
    }
}

/* Replaces a text of the file by one of the same length. */
static void replace(const struct gguf_file *f, const char *from, const char *to, size_t length) {
    unsigned char *at = memmem(f->data, f->size, from, length);
    ASSERT_TRUE(at != NULL);
    memcpy(at, to, length);
}

C_TEST(gguf_llama2, refuses_other_models) {
    const struct {
        const char *from, *to;
        enum status status;
        const char *message;
    } cases[] = {
        {"\5\0\0\0\0\0\0\0llama", "\5\0\0\0\0\0\0\0gemma", STATUS_UNSUPPORTED,
         "architecture \"gemma\" is not supported, only \"llama\""},
        {"general.architecture", "general.Architecture", STATUS_BAD_FORMAT,
         "\"general.architecture\" is missing"},
        {"llama.block_count", "llama.block_counT", STATUS_BAD_FORMAT,
         "\"llama.block_count\" is missing"},
        {"llama.block_count\4\0\0\0\2", "llama.block_count\4\0\0\0\0", STATUS_BAD_FORMAT,
         "\"llama.block_count\" is not a whole number"},
        {"llama.block_count\4\0\0\0\2", "llama.block_count\4\0\0\0\1", STATUS_MISMATCH,
         "there is a tensor \"blk.1.attn_q.weight\", but \"llama.block_count\" is 1"},
        {"llama.block_count\4\0\0\0\2", "llama.block_count\4\0\0\0\3", STATUS_BAD_FORMAT,
         "tensor \"blk.2.attn_norm.weight\" is missing"},
        {"llama.block_count\4\0\0\0\2", "llama.block_count\4\0\0\0\177", STATUS_MISMATCH,
         "127 layers, but only 20 tensors"},
        {"llama.attention.key_length\4\0\0\0\100", "llama.attention.key_length\4\0\0\0\40",
         STATUS_MISMATCH, "tensor \"blk.0.attn_q.weight\" has 256 rows of 256"},
        {"llama.attention.key_length\4\0\0\0\100", "llama.attention.key_length\4\0\0\0\1",
         STATUS_BAD_FORMAT, "4 heads of 1 channels"},
        {"blk.0.ffn_up.weight\2\0\0\0\0\1\0\0\0\0\0\0\0\2\0\0\0\0\0\0\1",
         "blk.0.ffn_up.weight\2\0\0\0\0\1\0\0\0\0\0\0\0\2\0\0\0\0\0\0\15", STATUS_UNSUPPORTED,
         "tensor \"blk.0.ffn_up.weight\" has the type Q5_K (13); supported are F32, F16"},
        {"blk.0.ffn_up.weight\2\0\0\0\0\1\0\0\0\0\0\0\0\2\0\0\0\0\0\0\1",
         "blk.0.ffn_up.weight\2\0\0\0\0\1\0\0\0\0\0\0\0\2\0\0\0\0\0\0\177", STATUS_UNSUPPORTED,
         "tensor \"blk.0.ffn_up.weight\" has the type unknown (127)"},
        {"blk.0.ffn_up.weight", "rope_freqs.weight__", STATUS_BAD_FORMAT,
         "tensor \"blk.0.ffn_up.weight\" is missing"},
    };
    const size_t lengths[] = {13, 20, 17, 22, 22, 22, 22, 31, 31, 40, 40, 19};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct gguf_file f = model_file(GGUF_F16);
        struct llama2_checkpoint checkpoint;
        struct error error = {0};
        replace(&f, cases[i].from, cases[i].to, lengths[i]);
        EXPECT_STATUS(cases[i].status, load(&checkpoint, f.data, f.size, 0, &error));
        EXPECT_STR_CONTAINS(cases[i].message, error.message);
        EXPECT_TRUE(checkpoint.weights.layers == NULL && checkpoint.gguf.tensors == NULL);
        free(f.data);
    }
}

/* ---- Vocabularies ---- */

static void expect_tokens(const struct bpe *bpe, const char *text, const int32_t *want,
                          size_t count) {
    int32_t *tokens;
    size_t got;
    struct error error = {0};
    ASSERT_OK(bpe_encode(bpe, text, strlen(text), true, false, &tokens, &got, &error));
    ASSERT_TRUE(count == got);
    for (size_t i = 0; i < count; i++) {
        EXPECT_INT_EQ(want[i], tokens[i]);
    }
    free(tokens);
}

/* Token 256 is "ab"; 257 begins each text; a NUL byte is the first that cannot be printed, but
   spelled at its own place here: tokens 0 to 255 are the bytes in order. */
C_TEST(gguf_vocabulary, reads_byte_level_bpe) {
    struct gguf_file f = model_file(GGUF_F16);
    struct gguf file;
    struct bpe *bpe;
    int32_t eos;
    struct error error = {0};
    ASSERT_OK(gguf_parse(&file, f.data, f.size, NULL));
    EXPECT_STATUS(STATUS_OK, gguf_vocabulary_read(&file, sizes.V, &bpe, &eos, &error));
    EXPECT_STR_EQ("", error.message);
    EXPECT_INT_EQ(257, eos);
    EXPECT_INT_EQ(257, bpe_added(bpe, "<|end|>"));
    expect_tokens(bpe, "cab \n", (const int32_t[]){257, 'c', 256, ' ', '\n'}, 5);
    bpe_free(bpe);
    EXPECT_STATUS(STATUS_MISMATCH, gguf_vocabulary_read(&file, 9, &bpe, &eos, &error));
    gguf_close(&file);
    free(f.data);
}

enum { SCORED = 262 };

/* Llama2's beginning, then " ", "a", " a". */
static struct gguf_file scored_file(void) {
    static char texts[SCORED][8] = {"<unk>", "\n<s>\n", "\n</s>\n"};
    const char *pieces[SCORED];
    float scores[SCORED] = {[259] = -1.0f, -2.0f, -3.0f};
    for (int i = 3; i < 259; i++) {
        snprintf(texts[i], sizeof texts[i], "<0x%02X>", (unsigned)i - 3);
    }
    strcpy(texts[259], " ");
    strcpy(texts[260], "a");
    strcpy(texts[261], " a");
    for (int i = 0; i < SCORED; i++) {
        pieces[i] = texts[i];
    }
    unsigned char *tokenizer;
    size_t size;
    struct gguf_file f = {0};
    struct llama2_random model;
    struct llama2_config config = sizes;
    config.V = SCORED;
    EXPECT_OK(llama2_random_create(&model, &config, 1));
    EXPECT_OK(bpe_serialize(pieces, scores, SCORED, &tokenizer, &size));
    EXPECT_OK(gguf_testing_llama2(&f, &config, &model.weights, GGUF_F16, tokenizer, size));
    llama2_random_free(&model);
    free(tokenizer);
    return f;
}

static enum status read_vocabulary(struct gguf_file *f, struct bpe **bpe, struct error *error) {
    struct gguf file;
    int32_t eos;
    *bpe = NULL;
    TRY(gguf_parse(&file, f->data, f->size, error));
    enum status status = gguf_vocabulary_read(&file, 0, bpe, &eos, error);
    gguf_close(&file);
    return status;
}

C_TEST(gguf_vocabulary, reads_pieces_with_scores) {
    struct gguf_file f = scored_file();
    struct bpe *bpe;
    struct error error = {0};
    size_t length;
    ASSERT_OK(read_vocabulary(&f, &bpe, &error));
    expect_tokens(bpe, "aa b", (const int32_t[]){1, 261, 260, 259, 3 + 'b'}, 5);
    expect_tokens(bpe, "<s>", (const int32_t[]){1, 259, 3 + '<', 3 + 's', 3 + '>'}, 5);
    EXPECT_STR_EQ(" a", bpe_decode(bpe, -1, 261, &length));
    bpe_free(bpe);
    free(f.data);
}

C_TEST(gguf_vocabulary, refuses_what_it_cannot_use) {
    const struct {
        bool scored;
        const char *from, *to;
        size_t length;
        enum status status;
        const char *message;
    } cases[] = {
        {true, "tokenizer.ggml.scores", "tokenizer.ggml.Scores", 21, STATUS_BAD_FORMAT,
         "\"tokenizer.ggml.scores\" is missing; give the model's tokenizer.json"},
        {true, "tokenizer.ggml.tokens", "tokenizer.ggml.Tokens", 21, STATUS_BAD_FORMAT,
         "\"tokenizer.ggml.tokens\" is missing"},
        {true, "bos_token_id\4\0\0\0\1", "bos_token_id\4\0\0\0\5", 17, STATUS_UNSUPPORTED,
         "BOS is token 5"},
        {true, "eos_token_id\4\0\0\0\2\0", "eos_token_id\4\0\0\0\2\2", 18, STATUS_BAD_FORMAT,
         "\"tokenizer.ggml.eos_token_id\" is no token of 262"},
        {true, "<0x41>", "<0x42>", 6, STATUS_UNSUPPORTED, "token 68 is not \"<0x41>\""},
        {true, "model\10\0\0\0\5\0\0\0\0\0\0\0llama", "model\10\0\0\0\5\0\0\0\0\0\0\0bert!", 22,
         STATUS_UNSUPPORTED, "\"tokenizer.ggml.model\" \"bert!\" is not supported"},
        {false, "llama-bpe", "llama-bpf", 9, STATUS_UNSUPPORTED,
         "\"tokenizer.ggml.pre\" \"llama-bpf\" is not supported, only llama-bpe, qwen2"},
        {false, "\3\0\0\0\0\0\0\0a b", "\3\0\0\0\0\0\0\0a!b", 11, STATUS_BAD_FORMAT, "merge 0"},
        {false, "\3\0\0\0\0\0\0\0a b", "\3\0\0\0\0\0\0\0a\0b", 11, STATUS_BAD_FORMAT,
         "merge 0 has a NUL byte"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct gguf_file f = cases[i].scored ? scored_file() : model_file(GGUF_F16);
        struct bpe *bpe;
        struct error error = {0};
        replace(&f, cases[i].from, cases[i].to, cases[i].length);
        EXPECT_STATUS(cases[i].status, read_vocabulary(&f, &bpe, &error));
        EXPECT_STR_CONTAINS(cases[i].message, error.message);
        EXPECT_TRUE(bpe == NULL);
        free(f.data);
    }
}
