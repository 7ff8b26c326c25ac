/* Lab 07: the steps on tensor cores, v4, v5 and v6, which multiplies by wgmma. */
#include <stdlib.h>

#include "labs/07_attention/problem/case.h"
#include "solutions/07_attention/steps/ladder.h"
#include "solutions/hopper_results/results.h"

#define COUNT(array) (sizeof(array) / sizeof *(array))

/* Exponentials are approximate: softmax weights differ in their last place, and so do results that
   are rounded to the neighbour. */
static const double SOFTMAX = 1.0;

/* v6 with code for compute_90a, whose names end so. */
attention_function attention_v6_hopper_90a;

static enum status take(struct results *results, const struct attention_spec *spec,
                        const char *step, attention_function *run, struct error *error) {
    char name[RESULTS_NAME];
    struct attention_case c;
    size_t count = 0;
    snprintf(name, sizeof name, "07 %s %s B=%zu T=%zu S=%zu NH=%zu KVH=%zu HS=%zu%s%s", step,
             nn_dtype_name(spec->dtype), spec->B, spec->T, spec->S, spec->NH, spec->KVH, spec->HS,
             spec->causal ? " causal" : "", spec->mask != MASK_NONE ? " mask" : "");
    if (!results_want(results, name)) {
        return STATUS_OK;
    }
    enum status status = attention_case_create(&c, spec, 31 * spec->T + spec->S, false, error);
    void *stored = NULL;
    if (status == STATUS_OK) {
        status = attention_case_run(&c, run, NULL, error);
        count = c.q_tokens * spec->NH * spec->HS;
        stored = malloc(count * nn_dtype_bytes(spec->dtype) + 1);
    }
    if (status == STATUS_OK && stored != NULL) {
        nn_dtype_store(stored, c.got, count, spec->dtype);
        results_take(results, name, spec->dtype, stored, count, SOFTMAX);
    }
    free(stored);
    attention_case_free(&c);
    return status;
}

enum status results_of_attention(struct results *results, struct error *error) {
    static const struct attention_spec list[] = {
        {.B = 1, .T = 64, .S = 64, .NH = 1, .KVH = 1, .HS = 64},
        {.B = 1, .T = 65, .S = 129, .NH = 2, .KVH = 1, .HS = 64},
        {.B = 1, .T = 100, .S = 257, .NH = 1, .KVH = 1, .HS = 128},
        {.B = 1, .T = 130, .S = 200, .NH = 1, .KVH = 1, .HS = 72, .causal = true},
        {.B = 1, .T = 70, .S = 300, .NH = 1, .KVH = 1, .HS = 64, .mask = MASK_BLOCKS},
    };
    for (size_t n = 0; n < COUNT(list); n++) {
        struct attention_spec spec = list[n];
        spec.dtype = n % 2 == 0 ? NN_F16 : NN_BF16;
        spec.loudness = 1.0f;
        TRY(take(results, &spec, "v4_tensor", attention_v4_tensor, error));
        TRY(take(results, &spec, "v5_lengths", attention_v5_lengths, error));
        TRY(take(results, &spec, "v6_hopper", attention_v6_hopper_90a, error));
    }
    return STATUS_OK;
}
