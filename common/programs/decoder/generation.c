/* A model that writes a text: feeding, sampling, and rolling when the context is full. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/terminal.h"
#include "common/programs/decoder/generate_internal.h"
#include "common/programs/program.h"

enum status generation_create(struct generation *g, const struct decoder_session *session,
                              size_t context, bool roll, const struct llama2_sampling *sampling,
                              struct error *error) {
    size_t V = language_model_vocabulary(&session->model);
    *g = (struct generation){
        .model = session->model,
        .ranks = session->ranks,
        .tokenizer = session->tokenizer,
        .ends = session->ends,
        .now = session->now,
        .stream = {.out = stdout},
        .batch = session->batch,
        .context = context,
        .longest = decoder_session_longest(session),
        .roll = roll,
        .endless = session->endless,
        .pending = -1,
        .draws = !session->endless && language_model_draws(&session->model),
        .tokens = calloc(context, sizeof(int32_t)),
        .logits = calloc(V, sizeof(float)),
    };
    enum status status = g->tokens != NULL && g->logits != NULL
                             ? sampler_create(&g->sampler, V, sampling)
                             : STATUS_OUT_OF_MEMORY;
    return status == STATUS_OK
               ? STATUS_OK
               : error_set(error, status, "cannot make the sampler: %s", status_message(status));
}

void generation_free(struct generation *g) {
    sampler_free(&g->sampler);
    free(g->tokens);
    free(g->logits);
    *g = (struct generation){0};
}

void generation_restart(struct generation *g, uint64_t seed) {
    g->sampler.state = seed;
    g->position = 0;
    g->pending = -1;
    g->has_logits = g->begun = false;
}

bool generation_ends(const struct generation *g) {
    return !g->roll && !g->endless;
}

size_t generation_room(const struct generation *g) {
    if (!generation_ends(g)) {
        return SIZE_MAX;
    }
    size_t used = g->position + (g->pending >= 0 ? 1 : 0);
    return used < g->context ? g->context - used : 0;
}

/* ---- Feeding ---- */

static enum status failed(const struct generation *g, enum status status, struct error *error) {
    if (status == STATUS_BAD_FORMAT) { /* of language_model_next(), and below */
        return error_set(error, status,
                         "the model's logits at position %zu are not finite: its weights are not "
                         "usable",
                         g->position);
    }
    return error_set(error, status, "the model failed at position %zu: %s", g->position,
                     status_message(status));
}

/* One forward call; the tokens fit the context. They may be g->tokens + g->position. */
static enum status feed_batch(struct generation *g, const int32_t *tokens, size_t count,
                              bool wants_logits, struct error *error) {
    enum status status = language_model_forward(&g->model, tokens, count, g->position,
                                                wants_logits ? g->logits : NULL);
    if (status != STATUS_OK) {
        return failed(g, status, error);
    }
    if (!g->endless) {
        memmove(g->tokens + g->position, tokens, count * sizeof *tokens);
    }
    g->position += count;
    g->has_logits = wants_logits;
    g->begun = false;
    return STATUS_OK;
}

/* A signal has come, to any of the ranks: all stop before the same token. */
static bool is_stopped(const struct generation *g) {
    uint32_t seen = interrupt_seen() != 0;
    return ranks_largest(g->ranks, &seen, NULL) == STATUS_OK && seen != 0;
}

static size_t smaller(size_t a, size_t b) {
    return a < b ? a : b;
}

/* Keeps the first token, which is BOS, and the last ones, together half of the context. All are fed
   again, because their positions change. */
static enum status roll(struct generation *g, struct error *error) {
    size_t last = (g->context - 1) / 2;
    memmove(g->tokens + 1, g->tokens + g->context - last, last * sizeof *g->tokens);
    g->position = 0;
    g->rolls++;
    while (g->position < last + 1) {
        if (is_stopped(g)) {
            return STATUS_INTERRUPTED;
        }
        size_t count = smaller(last + 1 - g->position, g->batch);
        TRY(feed_batch(g, g->tokens + g->position, count, false, error));
    }
    return STATUS_OK;
}

/* Feeds up to one batch of the tokens; *fed receives their number. */
static enum status feed_some(struct generation *g, const int32_t *tokens, size_t count, size_t *fed,
                             struct error *error) {
    if (is_stopped(g)) {
        return STATUS_INTERRUPTED;
    }
    if (g->endless) {
        *fed = smaller(count, g->batch);
        return feed_batch(g, tokens, *fed, *fed == count, error);
    }
    if (g->position == g->context) {
        if (!g->roll) {
            return failed(g, STATUS_TOO_LONG, error);
        }
        TRY(roll(g, error));
    }
    *fed = smaller(smaller(count, g->batch), g->context - g->position);
    return feed_batch(g, tokens, *fed, *fed == count, error);
}

static enum status feed_pending(struct generation *g, struct error *error) {
    if (g->pending < 0) {
        return STATUS_OK;
    }
    int32_t token = g->pending;
    size_t fed;
    g->pending = -1;
    return feed_some(g, &token, 1, &fed, error);
}

/* *done counts the tokens fed, also on failure. */
static enum status feed_all(struct generation *g, const int32_t *tokens, size_t count, size_t *done,
                            struct progress *progress, struct error *error) {
    size_t fed;
    TRY(feed_pending(g, error));
    while (*done < count) {
        TRY(feed_some(g, tokens + *done, count - *done, &fed, error));
        *done += fed;
        progress_update(progress, *done);
    }
    return STATUS_OK;
}

enum status generation_prompt(struct generation *g, const int32_t *tokens, size_t count,
                              struct error *error) {
    struct progress progress = progress_create("reading the prompt, tokens", count);
    double start = g->now();
    size_t done = 0;
    enum status status = feed_all(g, tokens, count, &done, &progress, error);
    g->prompt.tokens += done;
    g->prompt.seconds += g->now() - start;
    progress_finish(&progress);
    return status;
}

/* ---- Sampling ---- */

static enum status next_from_engine(struct generation *g, int32_t *token) {
    const struct llama2_sampling sampling = {.temperature = g->sampler.temperature,
                                             .top_p = g->sampler.top_p,
                                             .top_k = g->sampler.top_k,
                                             .seed = g->sampler.state};
    if (!g->begun) {
        TRY(language_model_begin(&g->model, &sampling));
    }
    return language_model_next(&g->model, g->position, token);
}

/* Also advances the host's generator, so that host and engine can continue for each other. */
static enum status draw_on_engine(struct generation *g, int32_t *token, struct error *error) {
    enum status status = next_from_engine(g, token);
    if (status != STATUS_OK) {
        return failed(g, status, error);
    }
    sampler_skip(&g->sampler);
    g->begun = true;
    g->has_logits = false;
    g->tokens[g->position++] = *token;
    return STATUS_OK;
}

/* An engine that samples returns no logits. To get them, feeds the last token once more. */
static enum status fetch_logits(struct generation *g, struct error *error) {
    if (g->has_logits) {
        return STATUS_OK;
    }
    g->position--;
    return feed_batch(g, g->tokens + g->position, 1, true, error);
}

enum status generation_next(struct generation *g, int32_t *token, struct error *error) {
    if (is_stopped(g)) {
        return STATUS_INTERRUPTED;
    }
    TRY(feed_pending(g, error));
    if (g->draws && g->position < g->context) {
        TRY(draw_on_engine(g, token, error));
    } else {
        TRY(fetch_logits(g, error));
        *token = sampler_next(&g->sampler, g->logits);
        if (g->sampler.state == 0) {
            return failed(g, STATUS_BAD_FORMAT, error);
        }
        g->has_logits = false;
        g->pending = *token;
    }
    g->generated.tokens++;
    return STATUS_OK;
}

/* ---- Printing ---- */

static enum status check_output(const struct generation *g, struct error *error) {
    if (!ferror(g->stream.out)) {
        return STATUS_OK;
    }
    return error_set(error, STATUS_IO, "cannot write to standard output: %s",
                     errno != 0 ? strerror(errno) : status_message(STATUS_IO));
}

enum status generation_print(struct generation *g, int32_t previous, int32_t token,
                             struct error *error) {
    size_t length;
    const char *piece = bpe_decode(g->tokenizer, previous, token, &length);
    errno = 0;
    text_stream_write(&g->stream, piece, length);
    return check_output(g, error);
}

enum status generation_end_text(struct generation *g, struct error *error) {
    errno = 0;
    text_stream_finish(&g->stream);
    fputc('\n', g->stream.out);
    fflush(g->stream.out);
    return check_output(g, error);
}

enum status generation_end_work(struct generation *g, enum status status, struct error *error) {
    if (status == STATUS_OK || status == STATUS_INTERRUPTED) {
        enum status ended = generation_end_text(g, error);
        return ended == STATUS_OK ? status : ended;
    }
    /* The line that says what failed is a line of its own. */
    return g->stream.begun && generation_end_text(g, NULL) != STATUS_OK ? STATUS_IO : status;
}
