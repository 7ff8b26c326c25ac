/* Chat mode, with Llama2's chat template as in llama2.c, run.c. */
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

/* Puts the user's text into the template; the caller frees the result. */
static char *render_turn(const char *system_prompt, const char *user) {
    size_t size = strlen(user) + strlen(system_prompt) + 64;
    char *text = malloc(size);
    if (text != NULL && system_prompt[0] != '\0') {
        snprintf(text, size, "[INST] <<SYS>>\n%s\n<</SYS>>\n\n%s [/INST]", system_prompt, user);
    } else if (text != NULL) {
        snprintf(text, size, "[INST] %s [/INST]", user);
    }
    return text;
}

static enum status feed_turn(struct generation *g, const char *text, struct error *error) {
    int32_t *tokens;
    size_t count;
    enum status status =
        bpe_encode(g->tokenizer, text, strlen(text), true, false, &tokens, &count, error);
    if (status != STATUS_OK) {
        return error_prefix(error, status, "prompt");
    }
    if (count > generation_room(g)) {
        status = error_set(error, STATUS_TOO_LONG,
                           "the turn has %zu tokens, %zu of the context's %zu are left; --roll "
                           "continues beyond them",
                           count, generation_room(g), g->context);
    } else {
        status = generation_prompt(g, tokens, count, error);
    }
    free(tokens);
    return status;
}

/* Writes until the context is full or the model ends its turn with EOS, which is also fed. */
static enum status write_answer(struct generation *g, size_t most, struct error *error) {
    int32_t previous = -1;
    bool room = true;
    for (size_t i = 0; room && i < most; i++) {
        int32_t token;
        room = generation_room(g) > 0;
        TRY(generation_next(g, &token, error));
        if (token == BPE_EOS) {
            break;
        }
        TRY(generation_print(g, previous, token, error));
        previous = token;
    }
    return STATUS_OK;
}

static enum status answer(struct generation *g, size_t most, struct error *error) {
    fputs("Assistant: ", stdout);
    double start = g->now();
    enum status status = write_answer(g, most, error);
    g->generated.seconds += g->now() - start;
    return generation_end_work(g, status, error);
}

static enum status turn(struct generation *g, size_t most_answer, const char *system_prompt,
                        const char *user, struct error *error) {
    char *text = render_turn(system_prompt, user);
    if (text == NULL) {
        return error_set(error, STATUS_OUT_OF_MEMORY, "out of memory for the prompt");
    }
    enum status status = feed_turn(g, text, error);
    free(text);
    return status == STATUS_OK ? answer(g, most_answer, error) : status;
}

enum status generation_chat(struct generation *g, size_t most_answer, const char *system_prompt,
                            const char *first_prompt, struct error *error) {
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
        status = turn(g, most_answer, system_prompt, user, error);
        free(line);
        first_prompt = NULL;
        system_prompt = ""; /* only the first turn contains it */
    }
    free(asked);
    return status == STATUS_OK && interrupt_seen() != 0 ? STATUS_INTERRUPTED : status;
}
