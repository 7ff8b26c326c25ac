/* v6's kernel on simt, with code for compute_90a: against the double oracle, under full checks.
 * ladder_test runs it on a GPU, with more shapes. */
#include "common/device/device.h"
#include "common/testing/testing.h"
#include "labs/07_attention/problem/case.h"
#include "solutions/07_attention/steps/ladder.h"

#define COUNT(array) (sizeof(array) / sizeof *(array))

static void check(const struct attention_spec *spec) {
    struct attention_case c;
    struct error error = {0};
    char text[400] = "";
    enum status status = attention_case_create(&c, spec, spec->T * 31 + spec->S, false, &error);
    if (status == STATUS_OK) {
        status = attention_case_run(&c, attention_v6_hopper, NULL, &error);
    }
    if (status != STATUS_OK || !attention_case_check(&c, text, sizeof text)) {
        TEST_FAIL("%s: %s %s", c.name, text, error.message);
    }
    attention_case_free(&c);
}

/* One to many tiles of keys, each kind of mask, both sizes of heads. */
C_TEST(hopper_on_simt, equals_the_oracle) {
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
    struct error error = {0};
    if (device_open(&error) != STATUS_OK) {
        TEST_STOP("%s", error.message);
    }
    EXPECT_TRUE(attention_hopper_there());
    for (size_t n = 0; n < COUNT(list) && !test_has_failed(); n++) {
        struct attention_spec spec = list[n];
        spec.dtype = n % 2 == 0 ? NN_F16 : NN_BF16;
        spec.loudness = 1.0f;
        check(&spec);
    }
}
