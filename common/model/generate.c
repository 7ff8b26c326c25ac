#include "common/model/generate.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "common/base/file.h"
#include "common/base/flags.h"
#include "common/base/terminal.h"
#include "common/bench/bench.h"
#include "common/formats/llama2_checkpoint.h"
#include "common/formats/tokenizer.h"
#include "common/model/generate_internal.h"
#include "common/model/profile.h"

enum { PREFILL_BATCH = 64 };

static const char program[] = "generate";

struct options {
    const char *checkpoint;
    const char *tokenizer;
    const char *prompt;
    const char *mode;
    const char *system_prompt;
    float temperature;
    float top_p;
    uint64_t seed;
    int steps;
    int threads;
    bool profile;
};

/* Everything the program holds, so that one function can free it. */
struct session {
    struct llama2_checkpoint checkpoint;
    struct llama2_fp32 fp32;
    struct engine engine;
    struct engine timed; /* around engine, with --profile */
    struct profile profile;
    struct generation generation;
};

/* llama2.c takes a value it does not like for another; so does this, and says so. */
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
        options->steps = 0;
    }
    if (options->seed == 0) {
        options->seed = (uint64_t)time(NULL);
    }
}

static enum status check_options(const struct options *options, const struct arguments *arguments,
                                 struct error *error) {
    if (arguments->count != 1) {
        return error_set(error, STATUS_INVALID_ARGUMENT,
                         "wants one CHECKPOINT, got %zu; --help shows how", arguments->count);
    }
    if (strcmp(options->mode, "generate") != 0 && strcmp(options->mode, "chat") != 0) {
        return error_set(error, STATUS_INVALID_ARGUMENT, "--mode is 'generate' or 'chat', not '%s'",
                         options->mode);
    }
    if (options->threads < 1) {
        return error_set(error, STATUS_INVALID_ARGUMENT, "--threads %d: at least 1",
                         options->threads);
    }
    return STATUS_OK;
}

/* Reads the command line. *done: --help was printed. */
static enum status read_options(int argc, char **argv, struct options *options, bool *done,
                                struct error *error) {
    const struct flag table[] = {
        {"temperature", 't', FLAG_FLOAT, &options->temperature, "X",
         "0 picks the most likely token, 1 samples as trained"},
        {"top-p", 'p', FLAG_FLOAT, &options->top_p, "X",
         "sample from the most likely tokens that make up X; 0 or 1: off"},
        {"seed", 's', FLAG_U64, &options->seed, "N", "seed of the sampler; 0: the time"},
        {"steps", 'n', FLAG_INT, &options->steps, "N",
         "tokens in all, prompt included; 0: the whole context"},
        {"prompt", 'i', FLAG_STRING, &options->prompt, "TEXT", "text to go on from"},
        {"tokenizer", 'z', FLAG_STRING, &options->tokenizer, "FILE",
         "llama2.c's file or a tokenizer.json; without: tokenizer.bin, or the folder's own"},
        {"mode", 'm', FLAG_STRING, &options->mode, "MODE", "generate or chat"},
        {"system-prompt", 'y', FLAG_STRING, &options->system_prompt, "TEXT",
         "chat: the system prompt"},
        {"threads", 0, FLAG_INT, &options->threads, "N", "most CPU threads"},
        {"profile", 0, FLAG_SWITCH, &options->profile, NULL,
         "print time by operator to stderr at the end"},
    };
    const struct flags flags = {
        .program = program,
        .positional = "CHECKPOINT",
        .summary = "writes text with a Llama2 checkpoint: a file of llama2.c, or a Hugging Face\n"
                   "folder with config.json, safetensors and tokenizer.json",
        .table = table,
        .count = sizeof table / sizeof *table,
        .epilogue = "example:\n"
                    "  generate stories260K.bin -z tok512.bin -t 0 -n 200 -i \"Once upon a time\"",
    };
    const char **positional = calloc((size_t)argc + 1, sizeof *positional);
    if (positional == NULL) {
        return STATUS_OUT_OF_MEMORY;
    }
    struct arguments arguments = {.values = positional};
    enum status status = flags_parse(&flags, argc, argv, &arguments, error);
    if (status == STATUS_OK && arguments.help) {
        flags_help(&flags, stdout);
        *done = true;
    } else if (status == STATUS_OK) {
        status = check_options(options, &arguments, error);
        options->checkpoint = positional[0];
        adjust(options);
    }
    free(positional);
    return status;
}

enum status generation_feed(struct generation *g, const int32_t *tokens, size_t count,
                            struct error *error) {
    while (count > 0) {
        size_t part = count < g->batch ? count : g->batch;
        enum status status =
            llama2_forward(g->model, tokens, part, g->position, part == count ? g->logits : NULL);
        if (status != STATUS_OK) {
            return error_set(error, status, "the model failed at position %zu: %s", g->position,
                             status_message(status));
        }
        g->position += part;
        tokens += part;
        count -= part;
    }
    return STATUS_OK;
}

void generation_print(struct generation *g, int32_t previous, int32_t token) {
    size_t length;
    const char *piece = bpe_decode(g->tokenizer, previous, token, &length);
    text_stream_write(&g->stream, piece, length);
}

static void report_speed(size_t prompt, double prompt_seconds, size_t generated, double seconds) {
    fprintf(stderr, "prompt %zu tokens", prompt);
    if (prompt_seconds > 0.0) {
        fprintf(stderr, ", %.1f tokens/s", (double)prompt / prompt_seconds);
    }
    if (generated > 0 && seconds > 0.0) {
        fprintf(stderr, "; generated %zu tokens, %.1f tokens/s", generated,
                (double)generated / seconds);
    }
    fputc('\n', stderr);
}

/* Samples and feeds until the context is used up or the model begins a new text (BOS). */
static enum status go_on(struct generation *g, int32_t previous, size_t *generated,
                         struct error *error) {
    for (;;) {
        int32_t token = sampler_next(&g->sampler, g->logits);
        if (token == BPE_BOS) {
            return STATUS_OK;
        }
        generation_print(g, previous, token);
        ++*generated;
        if (g->position == g->context) {
            return STATUS_OK;
        }
        enum status status = generation_feed(g, &token, 1, error);
        if (status != STATUS_OK) {
            return status;
        }
        previous = token;
    }
}

/* Prints the prompt, then what the model makes of it: context pieces in all. */
static enum status continue_prompt(struct generation *g, const int32_t *tokens, size_t count,
                                   struct error *error) {
    size_t shown = count - 1 < g->context ? count - 1 : g->context;
    for (size_t i = 0; i < shown; i++) {
        generation_print(g, tokens[i], tokens[i + 1]);
    }
    enum status status = STATUS_OK;
    if (count <= g->context) {
        size_t generated = 0;
        double start = bench_now();
        status = generation_feed(g, tokens, count, error);
        double fed = bench_now();
        if (status == STATUS_OK) {
            status = go_on(g, tokens[count - 1], &generated, error);
        }
        double end = bench_now();
        text_stream_finish(&g->stream);
        fputc('\n', stdout);
        fflush(stdout);
        report_speed(count, fed - start, generated, end - fed);
        return status;
    }
    text_stream_finish(&g->stream);
    fputc('\n', stdout);
    return status;
}

static enum status generate(struct generation *g, const char *prompt, struct error *error) {
    int32_t *tokens;
    size_t count;
    enum status status =
        bpe_encode(g->tokenizer, prompt, strlen(prompt), true, false, &tokens, &count, error);
    if (status != STATUS_OK) {
        return error_prefix(error, status, "prompt");
    }
    size_t longest = llama2_config(g->model)->T;
    if (count > longest) {
        status = error_set(error, STATUS_TOO_LONG,
                           "the prompt has %zu tokens, the model's context is %zu", count, longest);
    } else {
        status = continue_prompt(g, tokens, count, error);
    }
    free(tokens);
    return status;
}

static enum status start_engine(struct session *s, const struct options *options,
                                const struct llama2_stages *stages, struct error *error) {
    struct error cause = {0};
    const struct llama2_stage *stage = &stages->table[stages->count - 1];
    enum status status = stage->create(&s->engine, options->threads, &cause);
    if (status == STATUS_OK) {
        status = engine_profile_create(&s->timed, &s->engine, &s->profile);
    }
    return status == STATUS_OK ? STATUS_OK
                               : error_set(error, status, "cannot start the engine: %s",
                                           error_text(&cause, status));
}

/* Weights and tokenizer. A folder has its own tokenizer, if no other is named. */
static enum status open_files(struct session *s, const struct options *options,
                              struct error *error) {
    struct llama2_checkpoint *checkpoint = &s->checkpoint;
    TRY(llama2_checkpoint_open(checkpoint, options->checkpoint, error));
    const char *tokenizer = options->tokenizer != NULL                   ? options->tokenizer
                            : checkpoint->llama2c.weights.layers == NULL ? options->checkpoint
                                                                         : "tokenizer.bin";
    TRY(tokenizer_open(&s->generation.tokenizer, tokenizer, checkpoint->config.V, error));
    return llama2_checkpoint_convert(checkpoint, 0, &s->fp32, error);
}

static enum status open_model(struct session *s, const struct options *options,
                              const struct llama2_stages *stages, struct error *error) {
    TRY(open_files(s, options, error));
    TRY(start_engine(s, options, stages, error));
    const struct llama2_config *config = &s->checkpoint.config;
    s->generation.batch = config->T < PREFILL_BATCH ? config->T : PREFILL_BATCH;
    return llama2_create(&s->generation.model, config, &s->fp32.weights,
                         options->profile ? &s->timed : &s->engine, s->generation.batch, error);
}

static enum status open_session(struct session *s, const struct options *options,
                                const struct llama2_stages *stages, struct error *error) {
    enum status status = open_model(s, options, stages, error);
    if (status != STATUS_OK) {
        return status;
    }
    const struct llama2_config *config = &s->checkpoint.config;
    size_t steps = (size_t)options->steps;
    s->generation.context = steps == 0 || steps > config->T ? config->T : steps;
    s->generation.stream.out = stdout;
    s->generation.logits = malloc(config->V * sizeof(float));
    const struct llama2_sampling how = {
        .temperature = options->temperature, .top_p = options->top_p, .seed = options->seed};
    status = s->generation.logits == NULL
                 ? STATUS_OUT_OF_MEMORY
                 : sampler_create(&s->generation.sampler, config->V, &how);
    if (status != STATUS_OK) {
        return error_set(error, status, "cannot make the sampler: %s", status_message(status));
    }
    return STATUS_OK;
}

static void close_session(struct session *s) {
    sampler_free(&s->generation.sampler);
    free(s->generation.logits);
    llama2_free(s->generation.model);
    engine_destroy(&s->timed);
    engine_destroy(&s->engine);
    bpe_free(s->generation.tokenizer);
    llama2_fp32_free(&s->fp32);
    llama2_checkpoint_close(&s->checkpoint);
}

static enum status run(const struct options *options, const struct llama2_stages *stages,
                       struct error *error) {
    struct session session = {0};
    enum status status = open_session(&session, options, stages, error);
    if (status == STATUS_OK && strcmp(options->mode, "chat") == 0) {
        const char *first = options->prompt[0] != '\0' ? options->prompt : NULL;
        status = generation_chat(&session.generation, options->system_prompt, first, error);
    } else if (status == STATUS_OK) {
        status = generate(&session.generation, options->prompt, error);
    }
    if (status == STATUS_OK && options->profile) {
        profile_print(&session.profile, stderr);
    }
    close_session(&session);
    if (status == STATUS_OK && (fflush(stdout) != 0 || ferror(stdout))) {
        status = error_set(error, STATUS_IO, "cannot write to standard output");
    }
    return status;
}

int generate_main(int argc, char **argv, const struct llama2_stages *stages) {
    struct options options = {
        .prompt = "",
        .mode = "generate",
        .temperature = 1.0f,
        .top_p = 0.9f,
        .steps = 256,
        .threads = bench_cpu_count(),
    };
    struct error error = {0};
    bool done = false;
    file_enter_working_directory();
    enum status status = read_options(argc, argv, &options, &done, &error);
    if (status == STATUS_OK && !done) {
        status = run(&options, stages, &error);
    }
    return status == STATUS_OK ? 0 : report_failure(program, &error, status);
}
