/*
 * Every step of the ladder with 2, 3 and 4 ranks against sums in double; the grader only sees the
 * last one.
 */
#include <stdlib.h>

#include "labs/15_many_gpus/problem/sums.h"
#include "solutions/ladder_gpu.h"

#define COUNT(array) (sizeof(array) / sizeof *(array))

static bool gpus_open(int ranks) {
    struct device_properties properties;
    if (!ladder_gpu_open(&properties)) {
        return false;
    }
    if (comm_devices() < ranks) {
        test_skip(__FILE__, __LINE__, "needs %d GPUs that reach each other; there are %d", ranks,
                  comm_devices());
        return false;
    }
    return true;
}

static void judge(const char *step, const char *name, enum status status, const char *text,
                  const struct error *error) {
    if (status != STATUS_OK || text[0] != '\0') {
        TEST_FAIL("%s, %s: %s%s", step, name, text,
                  status != STATUS_OK ? error_text(error, status) : "");
    }
}

/* Of the data of any case. */
enum { MOST_BYTES = 1 << 20 };

static enum status try_sums(struct many_rig *rig, const struct many_step *step,
                            struct many_sums_problem *p, char *text, size_t size,
                            struct error *error) {
    TRY(many_rig_renew(rig, error));
    TRY(many_rig_load(rig, &p->sums, p->in, error));
    TRY(many_rig_sum(rig, &p->sums, &step->functions, error));
    TRY(many_rig_store(rig, &p->sums, p->out, error));
    many_sums_check(p, text, size);
    return STATUS_OK;
}

static void run_sums(struct many_rig *rig, const struct many_step *step,
                     const struct many_sums *sums) {
    struct many_sums_problem p;
    struct error error = {0};
    struct rng rng = rng_create(15);
    char text[400] = "";
    enum status status = many_sums_create(&p, rig->ranks, sums, &rng, &error);
    if (status == STATUS_OK) {
        status = try_sums(rig, step, &p, text, sizeof text, &error);
    }
    judge(step->name, p.name, status, text, &error);
    many_sums_free(&p);
}

static void run_products(struct many_rig *rig, const struct many_step *step,
                         const struct many_products *shape) {
    struct many_products_problem p;
    struct error error = {0};
    struct rng rng = rng_create(16);
    char text[400] = "";
    enum status status = many_products_create(&p, rig->ranks, shape, &rng, &error);
    if (status == STATUS_OK) {
        status = many_rig_renew(rig, &error);
    }
    if (status == STATUS_OK) {
        status = many_rig_multiply(rig, &p.products, &step->functions, &error);
    }
    if (status == STATUS_OK) {
        status = many_products_check(&p, text, sizeof text, &error);
    }
    judge(step->name, p.name, status, text, &error);
    many_products_free(&p);
}

/* Counts that divide evenly and that do not, less than a block and several, larger than packets. */
static void run_step(struct many_rig *rig, const struct many_step *step) {
    static const struct many_sums sums[] = {
        {.count = 4, .dtype = NN_F32, .calls = 3},
        {.count = 1028, .dtype = NN_F32, .calls = 3, .delays = 3},
        {.count = 7 * 256 * 4 + 24, .dtype = NN_BF16, .calls = 2},
        {.count = 150004, .dtype = NN_F32, .calls = 1},
    };
    static const struct many_products products[] = {
        {.N = 8, .K = 96, .dtype = NN_F32, .bias = true, .calls = 3},
        {.N = 100, .K = 480, .dtype = NN_BF16, .bias = true, .calls = 2, .delays = 6},
    };
    for (size_t i = 0; i < COUNT(sums); i++) {
        if (rig->ranks == 2 || sums[i].count < 100000) { /* large data takes the same paths */
            run_sums(rig, step, &sums[i]);
        }
    }
    for (size_t i = 0; i < COUNT(products); i++) {
        run_products(rig, step, &products[i]);
    }
}

static void run_ladder(int ranks) {
    size_t count;
    const struct many_step *steps = many_ladder(&count);
    struct many_rig rig;
    struct error error = {0};
    if (!gpus_open(ranks)) {
        return;
    }
    enum status status = many_rig_create(&rig, ranks, MOST_BYTES, &error);
    judge("creating ranks", "", status, "", &error);
    for (size_t i = 0; i < count && !test_has_failed(); i++) {
        if (steps[i].functions.token == NULL) { /* its sums and products are the last step's */
            run_step(&rig, &steps[i]);
        }
    }
    many_rig_free(&rig);
}

C_TEST(ladder, one_rank) {
    run_ladder(1);
}

C_TEST(ladder, two_ranks) {
    run_ladder(2);
}

C_TEST(ladder, three_ranks) {
    run_ladder(3);
}

C_TEST(ladder, four_ranks) {
    run_ladder(4);
}

C_TEST(ladder, cuts) {
    static const struct many_shape shapes[] = {
        {.C = 4096, .hidden = 11008, .NH = 32, .KVH = 32, .HS = 128},
        {.C = 64, .hidden = 96, .NH = 16, .KVH = 4, .HS = 8},
        {.C = 100, .hidden = 4, .NH = 4, .KVH = 4, .HS = 6},
    };
    for (size_t i = 0; i < COUNT(shapes); i++) {
        for (int ranks = 1; ranks <= 4; ranks *= 2) {
            char text[400] = "";
            many_cut_check(&shapes[i], ranks, many_cut, true, text, sizeof text);
            EXPECT_STR_EQ("", text);
        }
    }
}
