#include "common/programs/decoder/generate.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "common/programs/decoder/generate_internal.h"
#include "common/programs/program.h"

static const char program[] = "generate";

struct options {
    struct llama2_options shared;
    const char *prompt;
    const char *mode;
    const char *system_prompt;
    float temperature;
    float top_p;
    int top_k;
    uint64_t seed;
    int steps;
    bool roll;
};

/* ---- The command line ---- */

/* Replaces invalid values as llama2.c does, with a warning. */
static void adjust(struct options *options) {
    if (options->temperature < 0.0f) {
        fprintf(stderr, "%s: --temperature %g is below 0: using 0\n", program,
                (double)options->temperature);
        options->temperature = 0.0f;
    }
    if (options->top_p < 0.0f || options->top_p > 1.0f) {
        fprintf(stderr, "%s: --top-p %g is outside 0..1: using 0.9\n", program,
                (double)options->top_p);
        options->top_p = 0.9f;
    }
    if (options->steps < 0) {
        fprintf(stderr, "%s: --steps %d is below 0: using 0\n", program, options->steps);
        options->steps = 0;
    }
    if (options->seed == 0) {
        options->seed = (uint64_t)time(NULL);
    }
}

static enum status check_options(const struct options *options, struct error *error) {
    if (strcmp(options->mode, "generate") != 0 && strcmp(options->mode, "chat") != 0) {
        return error_set(error, STATUS_INVALID_ARGUMENT, "--mode is 'generate' or 'chat', not '%s'",
                         options->mode);
    }
    bool system = options->system_prompt != NULL && options->system_prompt[0] != '\0';
    if (system && strcmp(options->mode, "chat") != 0) {
        return error_set(error, STATUS_INVALID_ARGUMENT,
                         "--system-prompt has no effect without --mode chat");
    }
    if (options->top_k < 0) {
        return error_set(error, STATUS_INVALID_ARGUMENT, "--top-k %d: must be at least 0",
                         options->top_k);
    }
    return STATUS_OK;
}

static const char epilogue[] =
    "The text goes to standard output token by token, the speed to standard error. The\n"
    "text ends after --steps tokens, at the end of the context, or when the model ends\n"
    "it (</s> or <s>). Ctrl-C stops after the current token (exit status 130), a second\n"
    "Ctrl-C stops at once. A prompt is plain text: \"</s>\" in it is four characters, not\n"
    "a token. --mode chat puts your lines between [INST] and [/INST], as Llama2's chat\n"
    "checkpoints expect; there --steps limits the whole chat, with --roll each answer.\n"
    "\n"
    "example:\n"
    "  generate stories260K.bin -z tok512.bin -t 0 -n 200 -i \"Once upon a time\"";

/* ---- Writing ---- */

/* Samples and prints up to @p most tokens, or until the model ends the text, which sets *ended. */
static enum status write_tokens(struct generation *g, int32_t previous, size_t most, bool *ended,
                                struct error *error) {
    *ended = false;
    for (size_t i = 0; i < most; i++) {
        int32_t token;
        TRY(generation_next(g, &token, error));
        if (token == BPE_BOS || token == BPE_EOS) {
            *ended = true;
            g->generated.tokens--;
            return STATUS_OK;
        }
        TRY(generation_print(g, previous, token, error));
        previous = token;
    }
    return STATUS_OK;
}

static enum status time_tokens(struct generation *g, int32_t previous, size_t most, bool *ended,
                               struct error *error) {
    double start = g->now();
    enum status status = write_tokens(g, previous, most, ended, error);
    g->generated.seconds += g->now() - start;
    return status;
}

/* @return limit of the tokens written, including the prompt. *cut: the context is shorter than
   --steps */
static size_t most_tokens(const struct options *options, size_t context, bool *cut) {
    size_t steps = options->steps > 0 ? (size_t)options->steps : SIZE_MAX;
    *cut = !options->roll && options->steps > 0 && steps > context;
    return options->roll || steps < context ? steps : context;
}

/* Prints the prompt, then up to most - count tokens of the model. */
static enum status write_prompt(struct generation *g, const int32_t *tokens, size_t count,
                                size_t most, bool *ended, struct error *error) {
    size_t shown = count - 1 < most ? count - 1 : most;
    if (count <= most) {
        TRY(generation_prompt(g, tokens, count, error));
    }
    for (size_t i = 0; i < shown; i++) {
        TRY(generation_print(g, tokens[i], tokens[i + 1], error));
    }
    return count <= most ? time_tokens(g, tokens[count - 1], most - shown, ended, error)
                         : STATUS_OK;
}

static enum status continue_prompt(struct generation *g, const struct options *options,
                                   const int32_t *tokens, size_t count, struct error *error) {
    bool cut, ended = true;
    size_t most = most_tokens(options, g->context, &cut);
    enum status status = write_prompt(g, tokens, count, most, &ended, error);
    TRY(generation_end_work(g, status, error));
    if (cut && !ended) {
        fprintf(stderr,
                "%s: stopped at the model's context of %zu tokens, --steps asks for %d; --roll "
                "continues beyond it\n",
                program, g->context, options->steps);
    }
    return STATUS_OK;
}

static enum status generate(struct generation *g, const struct options *options,
                            struct error *error) {
    const char *prompt = options->prompt != NULL ? options->prompt : "";
    int32_t *tokens;
    size_t count;
    enum status status =
        bpe_encode(g->tokenizer, prompt, strlen(prompt), true, false, &tokens, &count, error);
    if (status != STATUS_OK) {
        return error_prefix(error, status, "prompt");
    }
    if (count > g->context && !g->roll) {
        status = error_set(error, STATUS_TOO_LONG,
                           "the prompt has %zu tokens, the model's context is %zu; --roll "
                           "continues beyond it",
                           count, g->context);
    } else {
        status = continue_prompt(g, options, tokens, count, error);
    }
    free(tokens);
    return status;
}

static enum status chat(struct generation *g, const struct options *options, struct error *error) {
    bool given = options->prompt != NULL && options->prompt[0] != '\0';
    size_t most = options->roll && options->steps > 0 ? (size_t)options->steps : SIZE_MAX;
    TRY(generation_chat(g, most, options->system_prompt, given ? options->prompt : NULL, error));
    if (generation_room(g) == 0) {
        fprintf(stderr, "%s: the chat has used its %zu tokens%s; --roll continues beyond them\n",
                program, g->context,
                g->context < llama2_config(g->model)->T ? " (--steps)" : ", the model's context");
    }
    return STATUS_OK;
}

/* ---- The program ---- */

static void report_speed(const char *phase, const struct generation_speed *speed,
                         const char *modelled) {
    fprintf(stderr, "%s %zu tokens", phase, speed->tokens);
    if (speed->tokens > 0 && speed->seconds > 0.0) {
        fprintf(stderr, ", %.1f tokens/s%s", (double)speed->tokens / speed->seconds, modelled);
    }
    fputs("; ", stderr);
}

static void report(const struct llama2_session *session, const struct generation *g) {
    char where[400];
    const char *modelled = llama2_session_modelled(session);
    report_speed("prompt", &g->prompt, modelled);
    report_speed("generated", &g->generated, modelled);
    if (g->rolls > 0) {
        fprintf(stderr, "rolls: %zu; ", g->rolls);
    }
    fprintf(stderr, "%s\n", llama2_session_where(session, where, sizeof where));
}

static enum status open_generation(struct generation *g, const struct llama2_session *session,
                                   const struct options *options, struct error *error) {
    size_t context = session->checkpoint.config.T;
    size_t steps = (size_t)options->steps;
    bool limited = strcmp(options->mode, "chat") == 0 && !options->roll;
    if (options->roll && context < 2) {
        return error_set(error, STATUS_UNSUPPORTED,
                         "--roll: a model with a context of %zu token cannot roll", context);
    }
    if (limited && steps > 0 && steps < context) {
        context = steps;
    }
    const struct llama2_sampling sampling = {.temperature = options->temperature,
                                             .top_p = options->top_p,
                                             .top_k = (size_t)options->top_k,
                                             .seed = options->seed};
    return generation_create(g, session, context, options->roll, &sampling, error);
}

static enum status write_text(struct generation *g, const struct llama2_session *session,
                              const struct options *options, struct error *error) {
    TRY(open_generation(g, session, options, error));
    interrupt_watch();
    enum status status =
        strcmp(options->mode, "chat") == 0 ? chat(g, options, error) : generate(g, options, error);
    if (status == STATUS_OK || status == STATUS_INTERRUPTED) {
        report(session, g);
        if (options->shared.profile) {
            profile_print(&session->profile, stderr);
        }
    }
    return status;
}

static enum status run(void *work_options, const struct llama2_stages *stages,
                       struct error *error) {
    struct options *options = work_options;
    struct llama2_session session;
    struct generation generation = {0};
    TRY(check_options(options, error));
    adjust(options);
    TRY(llama2_session_open(&session, &options->shared, stages, 0, error));
    enum status status = write_text(&generation, &session, options, error);
    generation_free(&generation);
    llama2_session_close(&session);
    return status == STATUS_OK ? program_output_end(error) : status;
}

static struct options options_defaults(void) {
    return (struct options){
        .shared = llama2_options_defaults(),
        .mode = "generate",
        .temperature = 1.0f,
        .top_p = 0.9f,
        .steps = 256,
    };
}

int generate_main(int argc, char **argv, const struct llama2_stages *stages) {
    struct options options = options_defaults();
    const struct flag table[] = {
        {"temperature", 't', FLAG_FLOAT, &options.temperature, "X",
         "0: the most likely token; 1: sample with the model's probabilities"},
        {"top-p", 'p', FLAG_FLOAT, &options.top_p, "X",
         "sample from the most likely tokens that make up X; 0 or 1: off"},
        {"top-k", 'k', FLAG_INT, &options.top_k, "N",
         "sample from the N most likely tokens, before --top-p; 0: off"},
        {"seed", 's', FLAG_U64, &options.seed, "N", "seed of the sampler; 0: the time"},
        {"steps", 'n', FLAG_INT, &options.steps, "N",
         "number of tokens, including the prompt; 0: the whole context, with --roll no limit"},
        {"roll", 0, FLAG_SWITCH, &options.roll, NULL,
         "when the context is full, forget its older half and continue"},
        {"prompt", 'i', FLAG_STRING, &options.prompt, "TEXT", "text to continue; default: none"},
        {"mode", 'm', FLAG_STRING, &options.mode, "MODE", "generate or chat"},
        {"system-prompt", 'y', FLAG_STRING, &options.system_prompt, "TEXT",
         "chat: the system prompt"},
        {"profile", 0, FLAG_SWITCH, &options.shared.profile, NULL,
         "print time by operator to stderr at the end"},
    };
    const struct llama2_command command = {
        .program = program,
        .summary = "writes text with a Llama2 checkpoint: a file of llama2.c, or a Hugging Face\n"
                   "folder with config.json, safetensors and tokenizer.json",
        .options = &options.shared,
        .own = table,
        .own_count = sizeof table / sizeof *table,
        .epilogue = epilogue,
    };
    return llama2_command_main(&command, stages, argc, argv, run, &options);
}
