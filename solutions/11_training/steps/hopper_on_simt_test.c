/* v6's kernel for attention's gradient on simt, with code for compute_90a: against the double
 * oracle, under full checks, twice with the same bits. ladder_test runs it on a GPU. */
#include <stdio.h>

#include "common/base/rng.h"
#include "common/device/device.h"
#include "common/testing/testing.h"
#include "labs/11_training/problem/attention.h"
#include "solutions/11_training/steps/ladder.h"

#define COUNT(array) (sizeof(array) / sizeof *(array))

struct call {
    struct attention_gradient_case *c;
    unsigned most_blocks;
};

static enum status run(void *argument, struct error *error) {
    const struct call *call = argument;
    const struct attention_backward_problem problem = attention_gradient_problem(call->c);
    TRY(attention_gradient_send(call->c, error));
    TRY(attention_backward_hopper(&problem, call->c->scratch, call->most_blocks, NULL, error));
    return device_synchronize(NULL, error);
}

static enum status check(struct attention_gradient_case *c, unsigned most_blocks, char *text,
                         size_t size, struct error *error) {
    struct call call = {c, most_blocks};
    const struct tensor_outputs outputs = attention_gradient_outputs(c);
    bool same = false;
    TRY(run(&call, error));
    TRY(attention_gradient_check(c, text, size, error));
    if (text[0] == '\0') {
        TRY(tensor_repeat(&outputs, run, &call, &same, error));
        snprintf(text, size, "%s", same ? "" : "other bits the second time");
    }
    return STATUS_OK;
}

static void check_list(const struct attention_gradient_spec *list, size_t count,
                       unsigned most_blocks) {
    struct error error = {0};
    if (device_open(&error) != STATUS_OK) {
        TEST_STOP("%s", error.message);
    }
    for (size_t i = 0; i < count && !test_has_failed(); i++) {
        struct attention_gradient_spec spec = list[i];
        struct attention_gradient_case c = {0};
        struct rng rng = rng_create(i + 1);
        char text[600] = "";
        spec.dtype = NN_BF16;
        spec.loudness = spec.loudness == 0.0 ? 1.0 : spec.loudness;
        enum status status = attention_gradient_create(&c, &spec, &rng, false, &error);
        if (status == STATUS_OK) {
            status = check(&c, most_blocks, text, sizeof text, &error);
        }
        if (status != STATUS_OK || text[0] != '\0') {
            TEST_FAIL("%s: %s%s", c.name, text,
                      status != STATUS_OK ? error_text(&error, status) : "");
        }
        attention_gradient_free(&c);
    }
}

/* One or two tiles of keys and several of queries, some of which reach beyond their sequence. */
C_TEST(hopper_on_simt, equals_the_oracle) {
    static const struct attention_gradient_spec list[] = {
        {.NH = 1, .KVH = 1, .HS = 128, .B = 1, .lengths = {64}},
        {.NH = 1, .KVH = 1, .HS = 64, .B = 3, .lengths = {200, 1, 128}, .joined = true},
        {.NH = 1, .KVH = 1, .HS = 128, .B = 2, .lengths = {130, 65}},
        {.NH = 2, .KVH = 1, .HS = 64, .B = 1, .lengths = {140}, .causal = true},
        {.NH = 2, .KVH = 1, .HS = 128, .B = 1, .lengths = {190}, .causal = true},
        {.NH = 1, .KVH = 1, .HS = 64, .B = 1, .lengths = {66}, .loudness = 20.0},
    };
    check_list(list, COUNT(list), 0);
}

/* Several rounds of items: heads that follow each other on a block, of causal ones every second
   the other way round; and sequences that have no tile of keys for some block. */
C_TEST(hopper_on_simt, takes_item_after_item) {
    static const struct attention_gradient_spec list[] = {
        {.NH = 2, .KVH = 2, .HS = 64, .B = 2, .lengths = {150, 90}},
        {.NH = 2, .KVH = 2, .HS = 128, .B = 1, .lengths = {140}, .causal = true},
        {.NH = 2, .KVH = 1, .HS = 64, .B = 2, .lengths = {260, 60}, .causal = true},
    };
    check_list(list, COUNT(list), 3);
}
