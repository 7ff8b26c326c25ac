/* One prompt, continued. */
#include <cjson/cJSON.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/grow.h"
#include "common/base/terminal.h"
#include "common/programs/decoder/generate_internal.h"
#include "common/programs/program.h"

/* A prompt's tokens while it is answered. */
struct work {
    struct generation *g;
    const struct answer_options *options;
    const int32_t *tokens; /* (count) */
    size_t count;
    size_t first; /* 1 if the first token is BOS, which is not printed; else 0 */
    struct answer *answer;
    struct error *error;
};

static enum status keep(struct work *w, int32_t token) {
    struct answer *a = w->answer;
    if (!array_grow(&a->tokens, &a->capacity, a->count + 1, sizeof *a->tokens)) {
        return error_set(w->error, STATUS_OUT_OF_MEMORY, "out of memory for %zu tokens", a->count);
    }
    a->tokens[a->count++] = token;
    return STATUS_OK;
}

/* Samples and prints up to @p most tokens, or until the model ends the text. */
static enum status write_tokens(struct work *w, size_t most, struct progress *progress) {
    struct generation *g = w->g;
    int32_t previous = w->tokens[w->count - 1];
    for (size_t i = 0; i < most; i++) {
        int32_t token;
        progress_update(progress, i);
        TRY(generation_next(g, &token, w->error));
        if (llama2_ends_has(&g->ends, token) || token == bpe_bos(g->tokenizer)) {
            w->answer->stop = ANSWER_END;
            g->generated.tokens--;
            return STATUS_OK;
        }
        TRY(keep(w, token));
        TRY(generation_print(g, previous, token, w->error));
        previous = token;
    }
    return STATUS_OK;
}

/* Shows progress of a text that does not appear token by token, and has a limit. */
static enum status time_tokens(struct work *w, size_t most) {
    struct progress progress = {.visible = false};
    if (!w->options->echo && most < SIZE_MAX) {
        progress = progress_create("writing, tokens", most);
    }
    double start = w->g->now();
    enum status status = write_tokens(w, most, &progress);
    progress_finish(&progress);
    w->answer->seconds = w->g->now() - start;
    w->g->generated.seconds += w->answer->seconds;
    return status;
}

/* Feeds the prompt before it prints it: progress is shown in the meantime. */
static enum status write_prompt(struct work *w, size_t shown, bool feeds) {
    struct generation *g = w->g;
    double before = g->prompt.seconds;
    if (feeds) {
        TRY(generation_prompt(g, w->tokens, w->count, w->error));
    }
    w->answer->prompt_seconds = g->prompt.seconds - before;
    for (size_t i = w->first; i < w->first + shown && w->options->echo; i++) {
        TRY(generation_print(g, i > 0 ? w->tokens[i - 1] : -1, w->tokens[i], w->error));
    }
    return STATUS_OK;
}

/* The limit of tokens is --steps, or the context if that ends earlier. */
static enum status write_all(struct work *w) {
    const struct generation *g = w->g;
    size_t steps = w->options->steps > 0 ? w->options->steps : SIZE_MAX;
    bool context = generation_ends(g) && steps > g->context;
    size_t most = context ? g->context : steps, text = w->count - w->first;
    size_t shown = text < most ? text : most;
    bool feeds = w->count <= most;
    w->answer->stop = context ? ANSWER_CONTEXT : ANSWER_LENGTH;
    TRY(write_prompt(w, shown, feeds));
    return feeds ? time_tokens(w, most - shown) : STATUS_OK;
}

static enum status check(const struct work *w) {
    const struct generation *g = w->g;
    if (w->count == 0) {
        return error_set(w->error, STATUS_UNSUPPORTED,
                         "the prompt is empty, and the tokenizer has no token that begins a text: "
                         "give a prompt");
    }
    if (w->count > g->longest && generation_ends(g)) {
        return error_set(w->error, STATUS_TOO_LONG,
                         "the prompt has %zu tokens, the model's context is %zu; --roll continues "
                         "beyond it",
                         w->count, g->longest);
    }
    return STATUS_OK;
}

enum status answer_write(struct generation *g, const struct answer_options *options,
                         const char *prompt, size_t length, struct answer *answer,
                         struct error *error) {
    const struct bpe_part part = {prompt, length, options->marked};
    int32_t *tokens;
    size_t count;
    *answer = (struct answer){.count = 0};
    enum status status = bpe_encode_parts(g->tokenizer, &part, 1, true, &tokens, &count, error);
    if (status != STATUS_OK) {
        return error_prefix(error, status, "prompt");
    }
    size_t first = count > 0 && bpe_bos(g->tokenizer) >= 0 ? 1 : 0;
    struct work work = {g, options, tokens, count, first, answer, error};
    answer->prompt_tokens = count;
    status = check(&work);
    status = status == STATUS_OK ? write_all(&work) : status;
    answer->stop = status == STATUS_INTERRUPTED ? ANSWER_INTERRUPTED : answer->stop;
    free(tokens);
    return status;
}

void answer_free(struct answer *answer) {
    free(answer->tokens);
    *answer = (struct answer){.count = 0};
}

/* ---- JSON ---- */

static bool add_numbers(cJSON *object, const struct answer *a) {
    static const int none;
    cJSON *tokens = cJSON_CreateIntArray(a->count > 0 ? a->tokens : &none, (int)a->count);
    return cJSON_AddItemToObject(object, "tokens", tokens) &&
           cJSON_AddNumberToObject(object, "prompt_tokens", (double)a->prompt_tokens) != NULL &&
           cJSON_AddNumberToObject(object, "generated_tokens", (double)a->count) != NULL &&
           cJSON_AddNumberToObject(object, "prompt_seconds", a->prompt_seconds) != NULL &&
           cJSON_AddNumberToObject(object, "seconds", a->seconds) != NULL;
}

static bool add_all(cJSON *object, const struct answer *a, const struct prompt *prompt,
                    const char *text, const char *stage, bool modelled) {
    static const char *const stops[] = {[ANSWER_END] = "end",
                                        [ANSWER_LENGTH] = "length",
                                        [ANSWER_CONTEXT] = "context",
                                        [ANSWER_INTERRUPTED] = "interrupted"};
    char *copy = strndup(prompt->text, prompt->length);
    bool added = copy != NULL && cJSON_AddStringToObject(object, "prompt", copy) != NULL &&
                 cJSON_AddStringToObject(object, "text", text) != NULL && add_numbers(object, a) &&
                 cJSON_AddStringToObject(object, "stop", stops[a->stop]) != NULL &&
                 cJSON_AddStringToObject(object, "stage", stage) != NULL &&
                 cJSON_AddBoolToObject(object, "modelled", modelled) != NULL;
    free(copy);
    return added && (prompt->id == NULL ||
                     cJSON_AddItemToObject(object, "id", cJSON_Duplicate(prompt->id, true)));
}

enum status answer_print_json(const struct answer *a, const struct prompt *prompt, const char *text,
                              const char *stage, bool modelled, struct error *error) {
    cJSON *object = cJSON_CreateObject();
    bool added = object != NULL && add_all(object, a, prompt, text, stage, modelled);
    char *line = added ? cJSON_PrintUnformatted(object) : NULL;
    cJSON_Delete(object);
    if (line == NULL) {
        return error_set(error, STATUS_OUT_OF_MEMORY, "out of memory for the answer");
    }
    puts(line);
    free(line);
    return program_output_end(error);
}
