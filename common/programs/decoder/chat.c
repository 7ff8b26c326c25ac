/* Chat mode. With the template llama2 it writes what llama2.c's run.c does. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/programs/decoder/generate_internal.h"
#include "common/programs/program.h"

/* Prints a question and reads one line. @return the line without line feed, which the caller frees;
   NULL at the end of input or after a signal */
static char *ask(const char *question) {
    fputs(question, stdout);
    fflush(stdout);
    char *line = NULL;
    size_t capacity = 0;
    ssize_t length = interrupt_seen() == 0 ? getline(&line, &capacity, stdin) : -1;
    if (length < 0) {
        free(line);
        fputc('\n', stdout);
        return NULL;
    }
    line[strcspn(line, "\r\n")] = '\0';
    return line;
}

/* A conversation. */
struct chat {
    struct generation *g;
    const struct chat_template *template;
    size_t most; /* tokens of an answer */
    bool begun;  /* there has been a turn */
    bool cut;    /* the last answer did not end by itself */
    struct error *error;
};

static enum status feed_turn(struct chat *c, const char *system_prompt, const char *user) {
    struct generation *g = c->g;
    struct bpe_part parts[CHAT_PARTS];
    int32_t *tokens;
    size_t count,
        part_count = chat_template_turn(c->template, system_prompt, user, !c->begun, c->cut, parts);
    bool bos = !c->begun || c->template->begins_each_turn;
    enum status status =
        bpe_encode_parts(g->tokenizer, parts, part_count, bos, &tokens, &count, c->error);
    if (status != STATUS_OK) {
        return error_prefix(c->error, status, "prompt");
    }
    if (count > generation_room(g)) {
        status = error_set(c->error, STATUS_TOO_LONG,
                           "the turn has %zu tokens, %zu of the context's %zu are left; --roll "
                           "continues beyond them",
                           count, generation_room(g), g->context);
    } else {
        status = generation_prompt(g, tokens, count, c->error);
    }
    free(tokens);
    c->begun = true;
    return status;
}

/* Whether a token ends an answer: the model's, or the template's own. */
static bool ends_answer(const struct chat *c, int32_t token) {
    const char *end = c->template->end;
    return llama2_ends_has(&c->g->ends, token) ||
           (end != NULL && bpe_added(c->g->tokenizer, end) == token);
}

/* Writes until the context is full or the model ends its turn with a token, which is also fed. */
static enum status write_answer(struct chat *c) {
    struct generation *g = c->g;
    int32_t previous = -1;
    bool room = true;
    c->cut = true;
    for (size_t i = 0; room && i < c->most; i++) {
        int32_t token;
        room = generation_room(g) > 0;
        TRY(generation_next(g, &token, c->error));
        if (ends_answer(c, token)) {
            c->cut = false;
            break;
        }
        TRY(generation_print(g, previous, token, c->error));
        previous = token;
    }
    return STATUS_OK;
}

static enum status answer(struct chat *c) {
    struct generation *g = c->g;
    fputs("Assistant: ", stdout);
    double start = g->now();
    enum status status = write_answer(c);
    g->generated.seconds += g->now() - start;
    return generation_end_work(g, status, c->error);
}

static enum status turn(struct chat *c, const char *system_prompt, const char *user) {
    TRY(feed_turn(c, system_prompt, user));
    return answer(c);
}

enum status generation_chat(struct generation *g, const struct chat_template *template,
                            size_t most_answer, const char *system_prompt, const char *first_prompt,
                            struct error *error) {
    struct chat chat = {.g = g, .template = template, .most = most_answer, .error = error};
    char *asked = NULL;
    if (system_prompt == NULL) {
        asked = ask("Enter system prompt (optional): ");
        system_prompt = asked != NULL ? asked : "";
    }
    enum status status = STATUS_OK;
    while (status == STATUS_OK && generation_room(g) > 0) {
        char *line = first_prompt == NULL ? ask("User: ") : NULL;
        const char *user = first_prompt != NULL ? first_prompt : line;
        if (user == NULL) {
            break;
        }
        status = turn(&chat, system_prompt, user);
        free(line);
        first_prompt = NULL;
    }
    free(asked);
    return status == STATUS_OK && interrupt_seen() != 0 ? STATUS_INTERRUPTED : status;
}
