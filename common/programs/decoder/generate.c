#include "common/programs/decoder/generate.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "common/programs/decoder/generate_internal.h"
#include "common/programs/program.h"

static const char program[] = "generate";

struct options {
    struct decoder_options shared;
    const char *prompt;
    const char *mode;
    const char *system_prompt;
    const char *chat_template;
    const char *prompt_file;
    bool json;
    bool special_tokens;
    float temperature;
    float top_p;
    int top_k;
    uint64_t seed;
    int steps;
    bool roll;
};

/* ---- The command line ---- */

/* Only rank 0 says it. @param format of the program and the value */
__attribute__((format(printf, 2, 0))) static void warn(bool says, const char *format,
                                                       double value) {
    if (says) {
        fprintf(stderr, format, program, value);
    }
}

/* Replaces invalid values as llama2.c does, with a warning. */
static void adjust(struct options *options) {
    bool says = ranks_rank(options->shared.ranks) == 0;
    if (options->temperature < 0.0f) {
        warn(says, "%s: --temperature %g is below 0: using 0\n", (double)options->temperature);
        options->temperature = 0.0f;
    }
    if (options->top_p < 0.0f || options->top_p > 1.0f) {
        warn(says, "%s: --top-p %g is outside 0..1: using 0.9\n", (double)options->top_p);
        options->top_p = 0.9f;
    }
    if (options->steps < 0) {
        warn(says, "%s: --steps %g is below 0: using 0\n", (double)options->steps);
        options->steps = 0;
    }
    if (options->seed == 0) {
        options->seed = (uint64_t)time(NULL);
    }
}

/* Flags of one mode have no effect in the other. */
static enum status check_modes(const struct options *options, struct error *error) {
    bool chat = strcmp(options->mode, "chat") == 0;
    if (chat && (options->json || options->prompt_file != NULL || options->special_tokens)) {
        return error_set(error, STATUS_INVALID_ARGUMENT, "%s is not for --mode chat",
                         options->json                  ? "--json"
                         : options->prompt_file != NULL ? "--prompt-file"
                                                        : "--special-tokens");
    }
    if (options->prompt != NULL && options->prompt_file != NULL) {
        return error_set(error, STATUS_INVALID_ARGUMENT,
                         "--prompt and --prompt-file: give one of them");
    }
    if (options->chat_template == NULL) {
        return STATUS_OK;
    }
    if (!chat) {
        return error_set(error, STATUS_INVALID_ARGUMENT,
                         "--chat-template has no effect without --mode chat");
    }
    return chat_template_find(options->chat_template) != NULL
               ? STATUS_OK
               : error_set(error, STATUS_INVALID_ARGUMENT, "--chat-template is %s, not '%s'",
                           chat_template_names(), options->chat_template);
}

static enum status check_options(const struct options *options, struct error *error) {
    if (options->shared.gpus > 1 &&
        (options->prompt_file != NULL || strcmp(options->mode, "generate") != 0)) {
        return error_set(
            error, STATUS_INVALID_ARGUMENT, "--gpus %d: for one prompt, --prompt TEXT; not for %s",
            options->shared.gpus, options->prompt_file != NULL ? "--prompt-file" : "--mode chat");
    }
    if (strcmp(options->mode, "generate") != 0 && strcmp(options->mode, "chat") != 0) {
        return error_set(error, STATUS_INVALID_ARGUMENT, "--mode is 'generate' or 'chat', not '%s'",
                         options->mode);
    }
    TRY(check_modes(options, error));
    bool system = options->system_prompt != NULL && options->system_prompt[0] != '\0';
    if (system && strcmp(options->mode, "chat") != 0) {
        return error_set(error, STATUS_INVALID_ARGUMENT,
                         "--system-prompt has no effect without --mode chat");
    }
    if (options->roll && options->shared.window > 0) {
        return error_set(error, STATUS_INVALID_ARGUMENT,
                         "--roll and --window are two ways to go on without end: choose one");
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
    "it (</s> or <s>, or what the folder's eos_token_id names). Ctrl-C stops after the\n"
    "current token (exit status 130), a second Ctrl-C stops at once. A prompt is plain\n"
    "text: \"</s>\" in it is four characters, not a token, without --special-tokens.\n"
    "\n"
    "The prompts of --prompt-file are answered one after the other, each with the same\n"
    "seed and as if it were alone; lines of standard input are answered as they arrive.\n"
    "An object of --json has prompt, text, tokens (ids), prompt_tokens, generated_tokens,\n"
    "prompt_seconds, seconds, stop (end, length, context or interrupted), stage, modelled\n"
    "(whether the seconds are), and the id that its line of --prompt-file had.\n"
    "\n"
    "--mode chat puts your lines into the template that the checkpoint was trained with.\n"
    "There --steps limits the whole chat, with --roll each answer.\n"
    "\n"
    "examples:\n"
    "  generate stories260K.bin -z tok512.bin -t 0 -n 200 -i \"Once upon a time\"\n"
    "  generate folder --prompt-file prompts.txt --json >answers.jsonl";

/* ---- Writing ---- */

/* What prompts are answered with. */
struct writing {
    struct generation *g;
    const struct decoder_session *session;
    const struct options *options;
};

static struct answer_options answer_options(const struct options *options) {
    return (struct answer_options){
        .steps = (size_t)options->steps, .echo = !options->json, .marked = options->special_tokens};
}

/* Prints the text as it comes. */
static enum status answer_as_text(const struct writing *w, const struct prompt *prompt,
                                  struct error *error) {
    const struct answer_options how = answer_options(w->options);
    struct generation *g = w->g;
    struct answer answer;
    enum status status = answer_write(g, &how, prompt->text, prompt->length, &answer, error);
    status = generation_end_work(g, status, error);
    if (status == STATUS_OK && answer.stop == ANSWER_CONTEXT && w->options->steps > 0 &&
        ranks_rank(g->ranks) == 0) {
        fprintf(stderr,
                "%s: stopped at the model's context of %zu tokens, --steps asks for %d; --roll "
                "continues beyond it\n",
                program, g->context, w->options->steps);
    }
    answer_free(&answer);
    return status;
}

/* Prints an object when the text is complete. */
static enum status answer_as_json(const struct writing *w, const struct prompt *prompt,
                                  struct error *error) {
    const struct answer_options how = answer_options(w->options);
    struct answer answer = {.count = 0};
    char *text = NULL;
    size_t size;
    w->g->stream.out = open_memstream(&text, &size);
    if (w->g->stream.out == NULL) {
        return error_set(error, STATUS_OUT_OF_MEMORY, "out of memory for the text");
    }
    enum status status = answer_write(w->g, &how, prompt->text, prompt->length, &answer, error);
    text_stream_finish(&w->g->stream);
    fclose(w->g->stream.out);
    w->g->stream.out = stdout;
    if (status == STATUS_OK || status == STATUS_INTERRUPTED) {
        enum status printed = answer_print_json(&answer, prompt, text, w->session->stage->name,
                                                w->session->device.modelled, error);
        status = printed == STATUS_OK ? status : printed;
    }
    free(text);
    answer_free(&answer);
    return status;
}

static enum status answer_prompt(void *context, const struct prompt *prompt, struct error *error) {
    const struct writing *w = context;
    generation_restart(w->g, w->options->seed);
    return w->options->json ? answer_as_json(w, prompt, error) : answer_as_text(w, prompt, error);
}

static enum status generate(struct generation *g, const struct decoder_session *session,
                            const struct options *options, struct error *error) {
    struct writing writing = {g, session, options};
    if (options->prompt_file != NULL) {
        return prompts_read(options->prompt_file, answer_prompt, &writing, error);
    }
    const char *text = options->prompt != NULL ? options->prompt : "";
    const struct prompt prompt = {.text = text, .length = strlen(text)};
    return answer_prompt(&writing, &prompt, error);
}

static enum status choose_template(const struct chat_template **template,
                                   const struct decoder_session *session,
                                   const struct options *options, struct error *error) {
    if (options->chat_template != NULL) {
        *template = chat_template_find(options->chat_template); /* checked */
        return STATUS_OK;
    }
    return chat_template_recognise(template, session->folder ? options->shared.checkpoint : NULL,
                                   session->tokenizer, error);
}

static enum status chat(struct generation *g, const struct decoder_session *session,
                        const struct options *options, struct error *error) {
    const struct chat_template *template;
    TRY(choose_template(&template, session, options, error));
    bool given = options->prompt != NULL && options->prompt[0] != '\0';
    size_t most = options->roll && options->steps > 0 ? (size_t)options->steps : SIZE_MAX;
    TRY(generation_chat(g, template, most, options->system_prompt, given ? options->prompt : NULL,
                        error));
    if (generation_room(g) == 0) {
        fprintf(stderr, "%s: the chat has used its %zu tokens%s; --roll continues beyond them\n",
                program, g->context,
                g->context < g->longest ? " (--steps)" : ", the model's context");
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

static void report(const struct decoder_session *session, const struct generation *g) {
    char where[400];
    const char *modelled = decoder_session_modelled(session);
    report_speed("prompt", &g->prompt, modelled);
    report_speed("generated", &g->generated, modelled);
    if (g->rolls > 0) {
        fprintf(stderr, "rolls: %zu; ", g->rolls);
    }
    fprintf(stderr, "%s\n", decoder_session_where(session, where, sizeof where));
}

static enum status open_generation(struct generation *g, const struct decoder_session *session,
                                   const struct options *options, struct error *error) {
    size_t context = session->context;
    if (options->roll && context < 2) {
        return error_set(error, STATUS_UNSUPPORTED,
                         "--roll: a model with a context of %zu token cannot roll", context);
    }
    const struct llama2_sampling sampling = {.temperature = options->temperature,
                                             .top_p = options->top_p,
                                             .top_k = (size_t)options->top_k,
                                             .seed = options->seed};
    return generation_create(g, session, context, options->roll, &sampling, error);
}

static enum status write_text(struct generation *g, const struct decoder_session *session,
                              const struct options *options, struct error *error) {
    TRY(open_generation(g, session, options, error));
    interrupt_watch();
    enum status status = strcmp(options->mode, "chat") == 0 ? chat(g, session, options, error)
                                                            : generate(g, session, options, error);
    bool well = status == STATUS_OK || status == STATUS_INTERRUPTED;
    if (well && ranks_rank(session->ranks) == 0) {
        report(session, g);
        if (options->shared.profile) {
            profile_print(&session->profile, stderr);
        }
    }
    return status;
}

/* What --steps leaves of the context: a chat's tokens, or a text's and BOS. */
static size_t most_positions(const struct options *options) {
    bool chat = strcmp(options->mode, "chat") == 0;
    bool endless = options->roll || options->shared.window > 0;
    bool limited = !endless && options->steps > 0;
    return limited ? (size_t)options->steps + (chat ? 0 : 1) : 0;
}

/* All ranks draw with the seed of rank 0, which may be the time. */
static enum status share_seed(struct options *options, struct error *error) {
    uint64_t seeds[RANKS_MOST];
    adjust(options);
    TRY(ranks_all_gather(options->shared.ranks, &options->seed, sizeof options->seed, seeds,
                         error));
    options->seed = seeds[0];
    return STATUS_OK;
}

static enum status run(void *work_options, const struct decoder_stages *stages,
                       struct error *error) {
    struct options *options = work_options;
    struct decoder_session session;
    struct generation generation = {0};
    TRY(check_options(options, error));
    TRY(share_seed(options, error));
    options->shared.positions = most_positions(options);
    TRY(decoder_session_open(&session, &options->shared, stages, 0, error));
    enum status status = write_text(&generation, &session, options, error);
    if (session.ranks == NULL || status == STATUS_OK || status == STATUS_INTERRUPTED) {
        generation_free(&generation); /* collective: others do not come when one has failed */
        decoder_session_close(&session);
    }
    return status == STATUS_OK ? program_output_end(error) : status;
}

static struct options options_defaults(void) {
    return (struct options){
        .shared = decoder_options_defaults(),
        .mode = "generate",
        .temperature = 1.0f,
        .top_p = 0.9f,
        .steps = 256,
    };
}

int generate_main(int argc, char **argv, const struct decoder_stages *stages) {
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
         "number of tokens, including the prompt; 0: the whole context, with --roll or --window no "
         "limit"},
        {"roll", 0, FLAG_SWITCH, &options.roll, NULL,
         "when the context is full, forget its older half and continue"},
        {"prompt", 'i', FLAG_STRING, &options.prompt, "TEXT", "text to continue; default: none"},
        {"prompt-file", 0, FLAG_STRING, &options.prompt_file, "FILE",
         "texts to continue, one a line, plain or as JSON; -: standard input"},
        {"json", 0, FLAG_SWITCH, &options.json, NULL,
         "print one JSON object for each prompt, when its text is complete"},
        {"special-tokens", 0, FLAG_SWITCH, &options.special_tokens, NULL,
         "text in a prompt that spells an added token, as <|eot_id|>, is that token"},
        {"mode", 'm', FLAG_STRING, &options.mode, "MODE", "generate or chat"},
        {"system-prompt", 'y', FLAG_STRING, &options.system_prompt, "TEXT",
         "chat: the system prompt"},
        {"chat-template", 0, FLAG_STRING, &options.chat_template, "NAME",
         "llama2, llama3, chatml, mistral or zephyr; default: what the checkpoint's files ask for"},
        {"gpus", 0, FLAG_INT, &options.shared.gpus, "N",
         "cut the model into parts for N GPUs of this host, a process each; for one prompt (-i)"},
        {"profile", 0, FLAG_SWITCH, &options.shared.profile, NULL,
         "print time by operator to stderr at the end"},
    };
    const struct decoder_command command = {
        .program = program,
        .summary =
            "writes text with a checkpoint of Llama 1 to 3, Mistral, Qwen2 or GPT-NeoX: a\n"
            "file of llama2.c, a GGUF file of a Llama (F32, F16, BF16, Q8_0, Q4_0, Q4_K, Q6_K;\n"
            "fewer than 16 bits become fp32 when loaded), or a Hugging Face folder with\n"
            "config.json, safetensors and tokenizer.json",
        .options = &options.shared,
        .own = table,
        .own_count = sizeof table / sizeof *table,
        .epilogue = epilogue,
    };
    return decoder_command_main(&command, stages, argc, argv, run, &options);
}
