/* v6's and v7's kernels on simt, with code for compute_90a: against the double oracle, under full
 * checks. ladder_test runs them on a GPU, with more shapes. */
#include "common/device/device.h"
#include "common/testing/testing.h"
#include "labs/07_attention/problem/case.h"
#include "solutions/07_attention/steps/ladder.h"

#define COUNT(array) (sizeof(array) / sizeof *(array))

static void check(const struct attention_spec *spec, attention_function *step) {
    struct attention_case c;
    struct error error = {0};
    char text[400] = "";
    enum status status = attention_case_create(&c, spec, spec->T * 31 + spec->S, false, &error);
    if (status == STATUS_OK) {
        status = attention_case_run(&c, step, NULL, &error);
    }
    if (status != STATUS_OK || !attention_case_check(&c, text, sizeof text)) {
        TEST_FAIL("%s: %s %s", c.name, text, error.message);
    }
    attention_case_free(&c);
}

static void check_list(const struct attention_spec *list, size_t count, attention_function *step) {
    struct error error = {0};
    if (device_open(&error) != STATUS_OK) {
        TEST_STOP("%s", error.message);
    }
    EXPECT_TRUE(attention_hopper_there());
    for (size_t n = 0; n < count && !test_has_failed(); n++) {
        struct attention_spec spec = list[n];
        spec.dtype = n % 2 == 0 ? NN_F16 : NN_BF16;
        spec.loudness = spec.loudness == 0.0f ? 1.0f : spec.loudness;
        check(&spec, step);
    }
}

/* One to many tiles of keys, each kind of mask, both sizes of heads. */
C_TEST(hopper_on_simt, v6_equals_the_oracle) {
    static const int32_t lengths[] = {0, 64, 65, 193, 193, 260};
    static const struct attention_spec list[] = {
        {.B = 1, .T = 64, .S = 64, .NH = 1, .KVH = 1, .HS = 64},
        {.B = 1, .T = 65, .S = 129, .NH = 2, .KVH = 1, .HS = 64},
        {.B = 1, .T = 5, .S = 300, .NH = 1, .KVH = 1, .HS = 8},
        {.B = 1, .T = 100, .S = 257, .NH = 1, .KVH = 1, .HS = 128},
        {.B = 1, .T = 130, .S = 200, .NH = 1, .KVH = 1, .HS = 72, .causal = true},
        {.B = 1, .T = 70, .S = 300, .NH = 1, .KVH = 1, .HS = 64, .mask = MASK_RANDOM},
        {.B = 2, .T = 70, .S = 200, .NH = 1, .KVH = 1, .HS = 128, .mask = MASK_BLOCKS},
        {.B = 5, .NH = 1, .KVH = 1, .HS = 64, .starts = lengths, .causal = true},
    };
    check_list(list, COUNT(list), attention_v6_hopper);
}

/* v7's own kernel: one to many tiles of keys and items, more tiles than stages, keys that end
   inside a tile, causal with more keys than queries, grouped queries, packed texts, outputs that
   are not aligned, and scores that grow from tile to tile. */
C_TEST(hopper_on_simt, v7_equals_the_oracle) {
    static const int32_t lengths[] = {0, 64, 65, 193, 193, 460};
    static const struct attention_spec list[] = {
        {.B = 1, .T = 65, .S = 64, .NH = 1, .KVH = 1, .HS = 64},
        {.B = 1, .T = 128, .S = 128, .NH = 1, .KVH = 1, .HS = 128},
        {.B = 2, .T = 65, .S = 129, .NH = 2, .KVH = 1, .HS = 64},
        {.B = 1, .T = 100, .S = 500, .NH = 1, .KVH = 1, .HS = 128},
        {.B = 1, .T = 300, .S = 700, .NH = 1, .KVH = 1, .HS = 64, .causal = true},
        {.B = 1, .T = 200, .S = 200, .NH = 4, .KVH = 2, .HS = 128, .causal = true},
        {.B = 1, .T = 66, .S = 66, .NH = 2, .KVH = 2, .HS = 64, .layout = LAYOUT_JOINED},
        {.B = 1, .T = 70, .S = 600, .NH = 1, .KVH = 1, .HS = 64, .loudness = 300.0f},
        {.B = 5, .NH = 2, .KVH = 1, .HS = 64, .starts = lengths, .causal = true},
        {.B = 5, .NH = 1, .KVH = 1, .HS = 128, .starts = lengths},
    };
    check_list(list, COUNT(list), attention_v7_specialised);
}
