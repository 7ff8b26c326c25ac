/* Every step of the ladder against the double oracle; the grader only sees the last one. */
#include <stdlib.h>

#include "labs/07_attention/attention.h"
#include "labs/07_attention/problem/case.h"
#include "labs/07_attention/problem/test_cases.h"
#include "solutions/07_attention/steps/ladder.h"
#include "solutions/ladder_gpu.h"

#define COUNT(array) (sizeof(array) / sizeof *(array))

enum which { ALL_STEPS, LAST_STEP, HOPPER_STEPS };

static void run_steps(struct attention_case *c, enum which which) {
    size_t count;
    const struct attention_step *steps = attention_ladder(&count);
    size_t first = which == ALL_STEPS ? 0 : which == LAST_STEP ? count - 1 : count - 2;
    for (size_t i = first; i < count && !test_has_failed(); i++) {
        struct error error = {0};
        char text[400] = "";
        enum status status = attention_case_run(c, steps[i].run, NULL, &error);
        if (status != STATUS_OK || !attention_case_check(c, text, sizeof text)) {
            TEST_FAIL("%s %s: %s %s", steps[i].name, c->name, text, error.message);
        }
    }
}

static void check_spec(const struct attention_spec *spec, bool modelled, enum which which) {
    struct attention_case c;
    struct error error = {0};
    if (attention_case_create(&c, spec, 7 + spec->T * 31 + spec->S, !modelled, &error) !=
        STATUS_OK) {
        TEST_FAIL("%s: %s", c.name, error.message);
    } else {
        run_steps(&c, which);
    }
    attention_case_free(&c);
}

/* Every specification in the three formats. */
static void check_list(const struct attention_spec *list, size_t count) {
    struct device_properties gpu;
    if (!ladder_gpu_open(&gpu)) {
        return;
    }
    for (size_t i = 0; i < count && !test_has_failed(); i++) {
        for (int dtype = NN_F32; dtype <= NN_BF16 && !test_has_failed(); dtype++) {
            struct attention_spec spec = list[i];
            spec.dtype = (enum nn_dtype)dtype;
            spec.loudness = spec.loudness > 0.0f ? spec.loudness : 1.0f;
            check_spec(&spec, gpu.modelled, ALL_STEPS);
        }
    }
}

static void check_topic(enum attention_topic topic) {
    size_t count;
    const struct attention_spec *list = attention_list(topic, &count);
    check_list(list, count);
}

C_TEST(ladder, has_its_steps) {
    size_t count;
    (void)attention_ladder(&count);
    EXPECT_INT_EQ(7, count);
}

C_TEST(ladder, sizes) {
    static const struct attention_spec list[] = {
        {.B = 1, .T = 1, .S = 1, .NH = 1, .KVH = 1, .HS = 1},
        {.B = 2, .T = 3, .S = 5, .NH = 3, .KVH = 3, .HS = 7},
        {.B = 1, .T = 17, .S = 31, .NH = 1, .KVH = 1, .HS = 8},
        {.B = 1, .T = 65, .S = 63, .NH = 2, .KVH = 2, .HS = 33},
        {.B = 1, .T = 61, .S = 131, .NH = 1, .KVH = 1, .HS = 64},
        {.B = 1, .T = 129, .S = 65, .NH = 1, .KVH = 1, .HS = 65},
        {.B = 1, .T = 7, .S = 97, .NH = 1, .KVH = 1, .HS = 127},
        {.B = 1, .T = 64, .S = 64, .NH = 1, .KVH = 1, .HS = 128},
    };
    check_list(list, COUNT(list));
}

#define TOPIC_TEST(name, topic) \
    C_TEST(ladder, name) {      \
        check_topic(topic);     \
    }

TOPIC_TEST(empty_sizes, TOPIC_EMPTY)
TOPIC_TEST(causal, TOPIC_CAUSAL)
TOPIC_TEST(grouped_heads, TOPIC_GROUPED_HEADS)
TOPIC_TEST(masks, TOPIC_MASKS)

C_TEST(ladder, packed) {
    int32_t many[71];
    for (int i = 0; i < 71; i++) {
        many[i] = i * 3 - (i > 50 ? 2 : 0);
    }
    const struct attention_spec texts = {.B = 70, .NH = 1, .KVH = 1, .HS = 8, .starts = many};
    check_topic(TOPIC_PACKED);
    check_list(&texts, 1);
}

TOPIC_TEST(layouts, TOPIC_LAYOUTS)

C_TEST(ladder, large_scores) {
    const struct attention_spec louder = {
        .B = 1, .T = 20, .S = 80, .NH = 1, .KVH = 1, .HS = 16, .loudness = 1000.0f, .causal = true};
    check_topic(TOPIC_LARGE_SCORES);
    check_list(&louder, 1);
}

/* The last step's tall tiles, which problems of few heads do not get. */
C_TEST(ladder, tall_tiles) {
    static const struct attention_spec list[] = {
        {.B = 1, .T = 128, .S = 33, .NH = 132, .KVH = 4, .HS = 64, .loudness = 1.0f},
        {.B = 1,
         .T = 128,
         .S = 130,
         .NH = 132,
         .KVH = 1,
         .HS = 24,
         .causal = true,
         .loudness = 1.0f},
        {.B = 1, .T = 128, .S = 20, .NH = 132, .KVH = 1, .HS = 128, .loudness = 1.0f},
    };
    struct device_properties gpu;
    bool open = ladder_gpu_open(&gpu);
    for (size_t i = 0; i < COUNT(list) * 2 && open; i++) {
        struct attention_spec spec = list[i / 2];
        spec.dtype = i % 2 == 0 ? NN_F32 : NN_BF16;
        check_spec(&spec, gpu.modelled, LAST_STEP);
    }
}

/* The kernels of v6 and v7, alone: one to many tiles of keys, each kind of mask, heads that they
   support. */
C_TEST(ladder, wgmma_on_hopper) {
    static const int32_t lengths[] = {0, 64, 65, 193, 193, 450};
    static const struct attention_spec list[] = {
        {.B = 1, .T = 64, .S = 64, .NH = 1, .KVH = 1, .HS = 64},
        {.B = 2, .T = 65, .S = 129, .NH = 3, .KVH = 1, .HS = 64},
        {.B = 1, .T = 5, .S = 700, .NH = 2, .KVH = 2, .HS = 8},
        {.B = 2, .T = 100, .S = 257, .NH = 2, .KVH = 2, .HS = 128},
        {.B = 1, .T = 130, .S = 200, .NH = 2, .KVH = 1, .HS = 72, .causal = true},
        {.B = 2, .T = 70, .S = 400, .NH = 2, .KVH = 2, .HS = 64, .mask = MASK_RANDOM},
        {.B = 2, .T = 70, .S = 400, .NH = 2, .KVH = 2, .HS = 128, .mask = MASK_BLOCKS},
        {.B = 1, .T = 70, .S = 100, .NH = 1, .KVH = 1, .HS = 64, .mask = MASK_ALL},
        {.B = 1, .T = 300, .S = 300, .NH = 1, .KVH = 1, .HS = 96, .layout = LAYOUT_JOINED},
        {.B = 5, .NH = 2, .KVH = 1, .HS = 64, .starts = lengths, .causal = true},
        {.B = 5, .NH = 2, .KVH = 2, .HS = 128, .starts = lengths},
        {.B = 1, .T = 80, .S = 300, .NH = 1, .KVH = 1, .HS = 64, .loudness = 300.0f},
        {.B = 1, .T = 400, .S = 500, .NH = 72, .KVH = 8, .HS = 64, .causal = true},
        {.B = 2, .T = 260, .S = 260, .NH = 70, .KVH = 7, .HS = 128, .causal = true},
        {.B = 5, .NH = 72, .KVH = 72, .HS = 64, .starts = lengths},
    };
    struct device_properties gpu;
    bool open = ladder_gpu_open(&gpu);
    if (open && !attention_hopper_there()) {
        TEST_SKIP("wgmma is for GPUs of compute capability 9.0; on %s v6 and v7 are v5",
                  gpu.record_name);
    }
    for (size_t i = 0; i < COUNT(list) * 2 && open; i++) {
        struct attention_spec spec = list[i / 2];
        spec.dtype = i % 2 == 0 ? NN_F16 : NN_BF16;
        spec.loudness = spec.loudness == 0.0f ? 1.0f : spec.loudness;
        check_spec(&spec, gpu.modelled, HOPPER_STEPS);
    }
}

/* v7's four warpgroups: these problems leave fewer multiprocessors of a GPU idle by items of 256
   queries than by 192; sequences that end within an item, causal ones, grouped heads. */
C_TEST(ladder, four_warpgroups_on_a_gpu) {
    static const int32_t starts[] = {0, 512, 1024, 1536, 2048};
    static const struct attention_spec list[] = {
        {.B = 4, .T = 500, .S = 700, .NH = 12, .KVH = 6, .HS = 64},
        {.B = 4, .T = 512, .S = 512, .NH = 12, .KVH = 12, .HS = 64, .causal = true},
        {.B = 4, .NH = 12, .KVH = 4, .HS = 64, .starts = starts},
    };
    struct device_properties gpu;
    bool open = ladder_gpu_open(&gpu);
    if (open && (gpu.modelled || !attention_hopper_there())) {
        TEST_SKIP("needs a Hopper GPU; on simt hopper_on_simt_test has these warpgroups");
    }
    for (size_t i = 0; i < COUNT(list) * 2 && open; i++) {
        struct attention_spec spec = list[i / 2];
        spec.dtype = i % 2 == 0 ? NN_F16 : NN_BF16;
        spec.loudness = 1.0f;
        check_spec(&spec, gpu.modelled, HOPPER_STEPS);
    }
}

/* As many blocks on a GPU, for all steps. */
C_TEST(ladder, large_sizes_on_a_gpu) {
    static const struct attention_spec list[] = {
        {.B = 4, .T = 512, .S = 512, .NH = 12, .KVH = 12, .HS = 64, .layout = LAYOUT_JOINED},
        {.B = 40, .T = 128, .S = 300, .NH = 8, .KVH = 8, .HS = 96, .mask = MASK_BLOCKS},
    };
    struct device_properties gpu;
    bool open = ladder_gpu_open(&gpu);
    if (open && gpu.modelled) {
        TEST_SKIP("large sizes are for a GPU; this is simt");
    }
    check_topic(TOPIC_LARGE_SIZES);
    check_list(list, COUNT(list));
}

enum { REFUSED = 12 };

/* Problems that the contract refuses: each is a good one with one mistake. */
static void make_refused(struct attention_problem bad[REFUSED]) {
    static const int32_t starts[] = {0, 3}, falling[] = {0, 3, 2}, late[] = {1, 3};
    const struct attention_problem good = {.B = 1,
                                           .T = 3,
                                           .S = 3,
                                           .NH = 2,
                                           .KVH = 2,
                                           .HS = 4,
                                           .q_stride = 8,
                                           .kv_stride = 8,
                                           .out_stride = 8,
                                           .scale = 0.5f};
    for (int i = 0; i < REFUSED; i++) {
        bad[i] = good;
    }
    bad[0].HS = ATTENTION_MAX_HS + 1;
    bad[1].B = ATTENTION_MAX_SIZE + 1;
    bad[2].q_stride = 7;
    bad[3].kv_stride = 7;
    bad[4].out_stride = 7;
    bad[5].KVH = 0;
    bad[6].NH = 3, bad[6].q_stride = 12, bad[6].out_stride = 12;
    bad[7].T = 4, bad[7].causal = true;
    bad[8].scale = 0.0f;
    bad[9].starts = starts;
    bad[10].starts = starts, bad[10].host_starts = falling, bad[10].B = 2;
    bad[11].starts = starts, bad[11].host_starts = late;
}

/* Every step refuses them, with nothing launched. */
C_TEST(ladder, refuses) {
    struct attention_problem bad[REFUSED];
    size_t count;
    struct device_properties gpu;
    struct error error = {0};
    const struct attention_step *steps = attention_ladder(&count);
    make_refused(bad);
    bool open = ladder_gpu_open(&gpu);
    for (size_t i = 0; i < count && open; i++) {
        for (int j = 0; j < REFUSED; j++) {
            EXPECT_STATUS(STATUS_INVALID_ARGUMENT, steps[i].run(&bad[j], NULL, &error));
        }
    }
    if (open) {
        EXPECT_OK(device_synchronize(NULL, &error));
    }
}
