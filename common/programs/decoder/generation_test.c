#include <stdlib.h>
#include <string.h>

#include "common/bench/bench.h"
#include "common/models/llama2_random.h"
#include "common/programs/decoder/generate_internal.h"
#include "common/programs/decoder/reference_stages.h"
#include "common/programs/program.h"
#include "common/testing/testing.h"

enum { CONTEXT = 24, LONG = 4 * CONTEXT, PROMPT = 5 };

static const struct llama2_config small = {.C = 16,
                                           .hidden = 24,
                                           .L = 2,
                                           .NH = 4,
                                           .KVH = 2,
                                           .HS = 4,
                                           .V = 64,
                                           .T = CONTEXT,
                                           .rope_theta = 10000.0f,
                                           .norm_eps = 1e-5f};

static const int32_t prompt[PROMPT] = {1, 17, 4, 60, 33};

/* A small random model on an engine. */
struct bed {
    struct llama2_random random;
    struct engine engine;
    struct decoder_session session;
};

static enum status open_bed(struct bed *b, bool draws, size_t batch) {
    *b = (struct bed){.session.batch = batch};
    interrupt_watch();
    TRY(llama2_random_create(&b->random, &small, 11));
    TRY(draws ? engine_drawing_create(&b->engine) : engine_reference_create(&b->engine));
    b->session.checkpoint.config = small;
    b->session.context = CONTEXT;
    b->session.now = bench_now;
    return llama2_create(&b->session.model.llama2, &small, &b->random.weights, &b->engine, CONTEXT,
                         NULL);
}

static void close_bed(struct bed *b) {
    language_model_free(&b->session.model);
    engine_destroy(&b->engine);
    llama2_random_free(&b->random);
}

/* Rolling without a cache: computes every token from all tokens that are not forgotten. */
static enum status recompute(struct llama2 *model, const struct llama2_sampling *how,
                             const int32_t *fed, size_t count, int32_t *drawn, size_t most) {
    int32_t window[CONTEXT];
    size_t length = 0;
    float logits[64];
    struct sampler sampler;
    TRY(sampler_create(&sampler, small.V, how));
    for (size_t i = 0; i < count + most; i++) {
        if (i >= count) {
            drawn[i - count] = sampler_next(&sampler, logits);
        }
        if (length == CONTEXT) {
            size_t kept = CONTEXT / 2 - 1; /* with the first token: half of the context */
            memmove(window + 1, window + CONTEXT - kept, kept * sizeof *window);
            length = kept + 1;
        }
        window[length++] = i < count ? fed[i] : drawn[i - count];
        TRY(llama2_forward(model, window, length, 0, logits));
    }
    sampler_free(&sampler);
    return STATUS_OK;
}

static const struct llama2_sampling samplings[] = {
    {.temperature = 0.0f, .seed = 1},
    {.temperature = 1.0f, .top_p = 0.9f, .seed = 5},
    {.temperature = 1.5f, .top_k = 9, .seed = 6},
};

static void expect_rolled(bool draws, size_t batch, const struct llama2_sampling *how,
                          const int32_t *fed, size_t count) {
    int32_t want[LONG], got[LONG];
    struct bed b;
    struct generation g;
    ASSERT_OK(open_bed(&b, draws, batch));
    ASSERT_OK(recompute(b.session.model.llama2, how, fed, count, want, LONG));
    ASSERT_OK(generation_create(&g, &b.session, CONTEXT, true, how, NULL));
    EXPECT_TRUE(g.draws == draws);
    EXPECT_OK(generation_prompt(&g, fed, count, NULL));
    for (size_t i = 0; i < LONG; i++) {
        EXPECT_OK(generation_next(&g, &got[i], NULL));
        if (got[i] != want[i]) {
            TEST_FAIL("token %zu is %d, recomputed %d (draws %d, batch %zu)", i, got[i], want[i],
                      draws, batch);
            break;
        }
    }
    EXPECT_TRUE(g.rolls >= 7);
    EXPECT_INT_EQ(count, g.prompt.tokens);
    EXPECT_INT_EQ(LONG, g.generated.tokens);
    generation_free(&g);
    close_bed(&b);
}

C_TEST(generation, rolls_as_recomputed) {
    for (size_t w = 0; w < sizeof samplings / sizeof *samplings; w++) {
        for (size_t batch = 1; batch <= CONTEXT; batch += 7) {
            expect_rolled(false, batch, &samplings[w], prompt, PROMPT);
            expect_rolled(true, batch, &samplings[w], prompt, PROMPT);
        }
    }
}

C_TEST(generation, rolls_within_a_long_prompt) {
    int32_t fed[3 * CONTEXT];
    for (size_t i = 0; i < 3 * CONTEXT; i++) {
        fed[i] = i == 0 ? 1 : (int32_t)(3 + i * 7 % 61);
    }
    for (size_t count = CONTEXT - 1; count <= 3 * CONTEXT; count += 7) {
        expect_rolled(false, 4, &samplings[0], fed, count);
        expect_rolled(true, 9, &samplings[1], fed, count);
    }
}

/* Without rolling, the last token is sampled from a full context, by engines of both kinds. */
static void expect_end(bool draws, const struct llama2_sampling *how) {
    enum { ROOM = CONTEXT - PROMPT };
    int32_t want[ROOM + 1], token;
    struct bed b;
    struct generation g;
    ASSERT_OK(open_bed(&b, draws, CONTEXT));
    ASSERT_OK(recompute(b.session.model.llama2, how, prompt, PROMPT, want, ROOM + 1));
    ASSERT_OK(generation_create(&g, &b.session, CONTEXT, false, how, NULL));
    EXPECT_INT_EQ(CONTEXT, generation_room(&g));
    EXPECT_OK(generation_prompt(&g, prompt, PROMPT, NULL));
    for (size_t i = 0; i <= ROOM; i++) {
        EXPECT_OK(generation_next(&g, &token, NULL));
        EXPECT_INT_EQ(want[i], token);
    }
    EXPECT_INT_EQ(0, generation_room(&g));
    EXPECT_STATUS(STATUS_TOO_LONG, generation_next(&g, &token, NULL));
    generation_free(&g);
    close_bed(&b);
}

C_TEST(generation, the_last_token_of_a_full_context) {
    for (size_t w = 0; w < sizeof samplings / sizeof *samplings; w++) {
        expect_end(false, &samplings[w]);
        expect_end(true, &samplings[w]);
    }
}

C_TEST(generation, prompts_and_answers_alternate) {
    int32_t tokens[2][12];
    for (int draws = 0; draws < 2; draws++) {
        struct bed b;
        struct generation g;
        ASSERT_OK(open_bed(&b, draws == 1, 3));
        ASSERT_OK(generation_create(&g, &b.session, CONTEXT, false, &samplings[1], NULL));
        for (size_t i = 0; i < 12; i++) {
            if (i % 4 == 0) {
                EXPECT_OK(generation_prompt(&g, prompt, 4, NULL));
            }
            EXPECT_OK(generation_next(&g, &tokens[draws][i], NULL));
        }
        EXPECT_INT_EQ(0, generation_room(&g));
        EXPECT_STATUS(STATUS_TOO_LONG, generation_prompt(&g, prompt, 4, NULL));
        generation_free(&g);
        close_bed(&b);
    }
    EXPECT_TRUE(memcmp(tokens[0], tokens[1], sizeof tokens[0]) == 0);
}

C_TEST(stages, names_and_numbers) {
    static const struct decoder_stage table[] = {
        {.name = "01_cpu_matmul"}, {.name = "02_gpu_matmul"}, {.name = "10_llama2_decoder"}};
    const struct decoder_stages stages = {.table = table, .count = 3};
    const struct {
        const char *name;
        const struct decoder_stage *want;
    } cases[] = {
        {"01_cpu_matmul", &table[0]},
        {"1", &table[0]},
        {"01", &table[0]},
        {"2", &table[1]},
        {"10", &table[2]},
        {"010", &table[2]},
        {"10_l", &table[2]},
        {"0", NULL},
        {"", NULL},
        {"3", NULL},
        {"11", NULL},
        {"cpu", NULL},
        {"01_cpu_matmul2", NULL},
        {"0x1", NULL},
        {"-1", NULL},
        {" 1", NULL},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        if (decoder_stage_find(&stages, cases[i].name) != cases[i].want) {
            TEST_FAIL("stage '%s' is found wrongly", cases[i].name);
        }
    }
}

/* ---- Text as it comes ---- */

/* Prints the pieces into memory and compares. */
static void expect_stream(const char *want, const char *const *pieces, size_t count) {
    char *text = NULL;
    size_t size = 0;
    FILE *file = open_memstream(&text, &size);
    ASSERT_TRUE(file != NULL);
    struct text_stream stream = {.out = file};
    for (size_t i = 0; i < count; i++) {
        text_stream_write(&stream, pieces[i], strlen(pieces[i]));
    }
    text_stream_finish(&stream);
    fclose(file);
    EXPECT_STR_EQ(want, text);
    free(text);
}

C_TEST(text_stream, passes_text_through) {
    const char *const pieces[] = {"Once", " upon", "\n\tcaf\xc3\xa9"};
    expect_stream("Once upon\n\tcaf\xc3\xa9", pieces, 3);
}

C_TEST(text_stream, joins_the_bytes_of_a_character) {
    const char *const pieces[] = {"a", "\xf0", "\x9f", "\x98", "\x80", "b"};
    expect_stream("a\xf0\x9f\x98\x80"
                  "b",
                  pieces, 6);
}

C_TEST(text_stream, replaces_invalid_bytes) {
    const char *const cut[] = {"\xe2\x82", "x"};
    expect_stream("\xef\xbf\xbdx", cut, 2);
    const char *const lone[] = {"\x80", "x"};
    expect_stream("\xef\xbf\xbdx", lone, 2);
    const char *const surrogate[] = {"\xed\xa0\x80"};
    expect_stream("\xef\xbf\xbd", surrogate, 1);
    const char *const unfinished[] = {"x", "\xf0\x9f"};
    expect_stream("x\xef\xbf\xbd", unfinished, 2);
}

C_TEST(text_stream, drops_control_characters) {
    const char *const pieces[] = {"a\033[2Jb", "\x01", "\x7f", "\a"};
    expect_stream("a[2Jb", pieces, 4);
}
