/*
 * Stage 10's engine works one step ahead. Whatever is asked of it, tokens are those of a plain loop
 * over decoder_prefill() and decoder_step().
 */
#include "labs/10_llama2_decoder/given/engine.h"

#include <stdlib.h>
#include <string.h>

#include "common/device/device.h"
#include "common/testing/testing.h"
#include "labs/10_llama2_decoder/problem/case.h"

enum { V = 97, T = 40, BATCH = 8, MOST_TOKENS = 64 };

/* What is asked for. */
enum kind { END, RUN, BEGIN, NEXT };

struct request {
    enum kind kind;
    int position;                           /* of the first token */
    int count;                              /* of tokens; NEXT: of as many calls */
    const struct llama2_sampling *sampling; /* BEGIN */
};

/* What came of it. */
struct result {
    int32_t tokens[MOST_TOKENS];
    size_t count;
    float logits[V]; /* of the last RUN */
};

static const struct llama2_sampling greedy = {0.0f, 0.9f, 0, 7}, warm = {0.9f, 0.9f, 0, 11},
                                    hot = {1.3f, 0.0f, 12, 5};

static int32_t prompt_token(size_t position, size_t request) {
    return (int32_t)((position * 31 + request * 17 + 3) % V);
}

static void fill_prompt(int32_t *tokens, const struct request *r, size_t number) {
    for (int i = 0; i < r->count; i++) {
        tokens[i] = prompt_token((size_t)(r->position + i), number);
    }
}

/* ---- The plain loop ---- */

struct plain {
    struct decoder *decoder;
    struct decoder_io io;
    device_stream stream;
};

static enum status plain_create(struct plain *p, const struct decoder_net *net,
                                struct error *error) {
    TRY(device_stream_create(&p->stream, error));
    TRY(device_alloc((void **)&p->io.logits, V * sizeof(float), error));
    TRY(device_alloc((void **)&p->io.token, sizeof *p->io.token, error));
    TRY(device_alloc((void **)&p->io.sampling, sizeof *p->io.sampling, error));
    return decoder_create(&p->decoder, &net->model, &p->io, BATCH, p->stream, error);
}

static void plain_free(struct plain *p) {
    decoder_free(p->decoder);
    device_free(p->io.logits);
    device_free(p->io.token);
    device_free(p->io.sampling);
    device_stream_destroy(p->stream);
}

static enum status plain_step(struct plain *p, size_t position, struct result *result,
                              struct error *error) {
    TRY(decoder_step(p->decoder, position, error));
    return device_read(&result->tokens[result->count++], p->io.token, sizeof(int32_t), p->stream,
                       error);
}

static enum status plain_answer(struct plain *p, const struct request *r, size_t number,
                                struct result *result, struct error *error) {
    int32_t tokens[BATCH];
    if (r->kind == RUN) {
        fill_prompt(tokens, r, number);
        TRY(decoder_prefill(p->decoder, tokens, (size_t)r->count, (size_t)r->position, error));
        return device_read(result->logits, p->io.logits, V * sizeof(float), p->stream, error);
    }
    if (r->kind == BEGIN) {
        const struct sampling s = {r->sampling->seed, r->sampling->temperature, r->sampling->top_p,
                                   (uint32_t)r->sampling->top_k};
        return device_write(p->io.sampling, &s, sizeof s, p->stream, error);
    }
    for (int i = 0; i < r->count; i++) {
        TRY(plain_step(p, (size_t)(r->position + i), result, error));
    }
    return STATUS_OK;
}

/* ---- The engine ---- */

static enum status engine_answer(const struct engine *engine, void *decoder,
                                 const struct request *r, size_t number, struct result *result) {
    int32_t tokens[BATCH];
    if (r->kind == RUN) {
        fill_prompt(tokens, r, number);
        const struct llama2_decoder_call call = {tokens, (size_t)r->count, (size_t)r->position,
                                                 number % 2 == 0 ? result->logits : NULL};
        return engine->decoder_run(engine->context, decoder, &call);
    }
    if (r->kind == BEGIN) {
        return engine->decoder_begin(engine->context, decoder, r->sampling);
    }
    for (int i = 0; i < r->count; i++) {
        TRY(engine->decoder_next(engine->context, decoder, (size_t)(r->position + i),
                                 &result->tokens[result->count++]));
    }
    return STATUS_OK;
}

/* ---- Both ---- */

static enum status answer_all(const struct decoder_net *net, const struct request *requests,
                              struct result *want, struct result *got, struct error *error) {
    struct plain plain = {0};
    struct engine engine = {0};
    void *decoder = NULL;
    const struct llama2_decoder_model model = decoder_net_for_engine(net, BATCH);
    enum status status = plain_create(&plain, net, error);
    for (size_t i = 0; requests[i].kind != END && status == STATUS_OK; i++) {
        status = plain_answer(&plain, &requests[i], i, want, error);
    }
    plain_free(&plain);
    TRY(status);
    TRY(engine_decoder_create(&engine, error));
    status = engine.decoder_create(engine.context, &model, &decoder, error);
    for (size_t i = 0; requests[i].kind != END && status == STATUS_OK; i++) {
        status = engine_answer(&engine, decoder, &requests[i], i, got);
    }
    engine.decoder_free(engine.context, decoder);
    engine_destroy(&engine);
    return status;
}

/* Logits are compared where the last request for some had an even number. */
static void check(const struct request *requests, bool logits) {
    static const struct decoder_size size = {4,    2, 8, 40, 2, V, T, NN_F32, NN_ROPE_INTERLEAVED,
                                             false};
    struct decoder_net net;
    struct result want = {0}, got = {0};
    struct error error = {0};
    ASSERT_OK(device_open(&error));
    enum status status = decoder_net_create(&net, &size, 5, true, &error);
    status = status == STATUS_OK ? answer_all(&net, requests, &want, &got, &error) : status;
    decoder_net_free(&net);
    if (status != STATUS_OK) {
        TEST_FAIL("%s", error_text(&error, status));
        return;
    }
    EXPECT_INT_EQ((int64_t)want.count, (int64_t)got.count);
    for (size_t i = 0; i < want.count; i++) {
        if (want.tokens[i] != got.tokens[i]) {
            TEST_FAIL("token %zu: got %d, want %d", i, (int)got.tokens[i], (int)want.tokens[i]);
            return;
        }
    }
    if (logits) {
        EXPECT_INT_EQ(0, memcmp(want.logits, got.logits, sizeof want.logits));
    }
}

C_TEST(engine, writes_what_a_plain_loop_writes) {
    const struct request requests[] = {
        {RUN, 0, 4, NULL}, {BEGIN, 0, 0, &greedy}, {NEXT, 4, 12, NULL}, {END, 0, 0, NULL}};
    check(requests, true);
}

C_TEST(engine, draws_what_a_plain_loop_draws) {
    const struct request requests[] = {
        {RUN, 0, 4, NULL}, {BEGIN, 0, 0, &warm}, {NEXT, 4, 12, NULL}, {END, 0, 0, NULL}};
    check(requests, true);
}

C_TEST(engine, writes_to_the_end_of_the_context) {
    const struct request requests[] = {{RUN, 0, 8, NULL},  {BEGIN, 0, 0, &hot}, {RUN, 8, 8, NULL},
                                       {RUN, 16, 8, NULL}, {RUN, 24, 8, NULL},  {NEXT, 32, 8, NULL},
                                       {RUN, 0, 2, NULL},  {NEXT, 2, 4, NULL},  {END, 0, 0, NULL}};
    check(requests, true);
}

/* A turn of a chat: the text that was written goes on with other tokens, the state with its own. */
C_TEST(engine, goes_on_behind_tokens_that_were_fed_between) {
    const struct request requests[] = {
        {RUN, 0, 3, NULL},   {BEGIN, 0, 0, &warm}, {NEXT, 3, 5, NULL},  {RUN, 8, 3, NULL},
        {NEXT, 11, 5, NULL}, {RUN, 16, 1, NULL},   {NEXT, 17, 3, NULL}, {END, 0, 0, NULL}};
    check(requests, false);
}

C_TEST(engine, gives_the_logits_of_tokens_fed_after_writing) {
    const struct request requests[] = {{RUN, 0, 3, NULL},  {BEGIN, 0, 0, &warm},
                                       {NEXT, 3, 5, NULL}, {BEGIN, 0, 0, &greedy},
                                       {RUN, 8, 3, NULL},  {END, 0, 0, NULL}};
    check(requests, true);
}

C_TEST(engine, draws_otherwise_from_the_same_logits) {
    const struct request requests[] = {
        {RUN, 0, 3, NULL},    {BEGIN, 0, 0, &greedy}, {NEXT, 3, 5, NULL},  {BEGIN, 0, 0, &warm},
        {NEXT, 8, 4, NULL},   {BEGIN, 0, 0, &hot},    {NEXT, 12, 6, NULL}, {BEGIN, 0, 0, &greedy},
        {BEGIN, 0, 0, &warm}, {NEXT, 18, 2, NULL},    {END, 0, 0, NULL}};
    check(requests, true);
}

C_TEST(engine, goes_back) {
    const struct request requests[] = {{RUN, 0, 3, NULL},  {BEGIN, 0, 0, &hot}, {NEXT, 3, 7, NULL},
                                       {RUN, 2, 2, NULL},  {NEXT, 4, 5, NULL},  {NEXT, 6, 4, NULL},
                                       {NEXT, 6, 1, NULL}, {NEXT, 6, 1, NULL},  {RUN, 7, 5, NULL},
                                       {END, 0, 0, NULL}};
    check(requests, true);
}
