#include "common/programs/decoder/perplexity.h"

#include <cjson/cJSON.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/file.h"
#include "common/base/terminal.h"
#include "common/programs/decoder/decoder_session.h"
#include "common/programs/program.h"

static size_t largest_of(const float *logits, size_t V) {
    size_t largest = 0;
    for (size_t i = 1; i < V; i++) {
        largest = logits[i] > logits[largest] ? i : largest;
    }
    return largest;
}

/* log of the sum of exp of all logits */
static double log_sum(const float *logits, size_t V) {
    double largest = (double)logits[0];
    for (size_t i = 1; i < V; i++) {
        largest = fmax(largest, (double)logits[i]);
    }
    double sum = 0.0;
    for (size_t i = 0; i < V; i++) {
        sum += exp((double)logits[i] - largest);
    }
    return log(sum) + largest;
}

double perplexity_nats(const float *logits, size_t V, int32_t token) {
    return log_sum(logits, V) - (double)logits[token];
}

double perplexity_divergence(const float *p, const float *q, size_t V) {
    double sum_p = log_sum(p, V), sum_q = log_sum(q, V), divergence = 0.0;
    for (size_t i = 0; i < V; i++) {
        double log_p = (double)p[i] - sum_p;
        divergence += exp(log_p) * (log_p - ((double)q[i] - sum_q));
    }
    return divergence;
}

/* Predicts `token` from the `count` tokens before it, which are fed at `position`. */
static enum status add_token(struct perplexity *sum, const struct language_model *model,
                             const int32_t *before, size_t count, int32_t token, size_t position,
                             float *logits, struct error *error) {
    enum status status = language_model_forward(model, before, count, position, logits);
    if (status != STATUS_OK) {
        return error_set(error, status, "the model failed at token %zu: %s", sum->tokens,
                         status_message(status));
    }
    double nats = perplexity_nats(logits, language_model_vocabulary(model), token);
    if (!isfinite(nats)) {
        return error_set(error, STATUS_BAD_FORMAT,
                         "the model's logits for token %zu are not finite: its weights are not "
                         "usable",
                         sum->tokens);
    }
    sum->nats += nats;
    sum->tokens++;
    return STATUS_OK;
}

/* Whether token i is predicted: of a window without BOS the first one is not. */
static bool is_predicted(size_t i, size_t window, int32_t bos) {
    return bos >= 0 || i % window > 0;
}

/* The same token by the peer; compares both. */
static enum status add_to_peer(struct perplexity_peer *peer, const struct language_model *model,
                               const float *logits, const int32_t *before, int32_t token,
                               size_t position, struct error *error) {
    size_t V = language_model_vocabulary(model);
    TRY(add_token(&peer->sum, peer->model, before, 1, token, position, peer->logits, error));
    peer->divergence += perplexity_divergence(peer->logits, logits, V);
    peer->same += largest_of(peer->logits, V) == largest_of(logits, V);
    return STATUS_OK;
}

static enum status add_all(struct perplexity *sum, struct perplexity_peer *peer,
                           const struct language_model *model, int32_t bos, const int32_t *tokens,
                           size_t count, size_t window, float *logits, struct error *error) {
    struct progress progress = progress_create("tokens", count);
    enum status status = STATUS_OK;
    for (size_t i = 0; i < count && status == STATUS_OK; i++) {
        size_t position = i % window;
        sum->windows += position == 0 ? 1 : 0;
        if (interrupt_seen() != 0) {
            status = STATUS_INTERRUPTED;
        } else if (is_predicted(i, window, bos)) {
            const int32_t *before = position == 0 ? &bos : &tokens[i - 1];
            position -= bos >= 0 ? 0 : 1;
            status = add_token(sum, model, before, 1, tokens[i], position, logits, error);
            if (status == STATUS_OK && peer != NULL) {
                status = add_to_peer(peer, model, logits, before, tokens[i], position, error);
            }
        }
        progress_update(&progress, i + 1);
    }
    progress_finish(&progress);
    return status;
}

enum status perplexity_add(struct perplexity *sum, const struct language_model *model, int32_t bos,
                           const int32_t *tokens, size_t count, size_t window, float *logits,
                           struct error *error) {
    return add_all(sum, NULL, model, bos, tokens, count, window, logits, error);
}

enum status perplexity_add_compared(struct perplexity *sum, struct perplexity_peer *peer,
                                    const struct language_model *model, int32_t bos,
                                    const int32_t *tokens, size_t count, size_t window,
                                    float *logits, struct error *error) {
    return add_all(sum, peer, model, bos, tokens, count, window, logits, error);
}

enum status perplexity_add_recomputed(struct perplexity *sum, const struct language_model *model,
                                      int32_t bos, const int32_t *tokens, size_t count,
                                      size_t window, float *logits, struct error *error) {
    struct progress progress = progress_create("tokens", count);
    int32_t *seen = malloc(window * sizeof *seen); /* what token i is predicted from */
    size_t length = 0;
    enum status status = seen != NULL ? STATUS_OK : STATUS_OUT_OF_MEMORY;
    for (size_t i = 0; i < count && status == STATUS_OK; i++) {
        int32_t before = i == 0 ? bos : tokens[i - 1];
        if (length == window) {
            memmove(seen, seen + 1, (window - 1) * sizeof *seen);
            length--;
        }
        if (before >= 0) {
            seen[length++] = before;
        }
        if (interrupt_seen() != 0) {
            status = STATUS_INTERRUPTED;
        } else if (length > 0) {
            status = add_token(sum, model, seen, length, tokens[i], 0, logits, error);
        }
        progress_update(&progress, i + 1);
    }
    sum->windows += count;
    free(seen);
    progress_finish(&progress);
    return status;
}

/* ---- The program ---- */

static const size_t longest_text = (size_t)1 << 30;

static const char program[] = "perplexity";

struct options {
    struct decoder_options shared;
    const char *file, *json, *compare;
    int context, limit;
    bool recompute;
};

/* One measurement. */
struct measurement {
    struct decoder_session session;
    struct decoder_session reference; /* open with --compare */
    struct perplexity_peer peer;
    char *text;
    size_t size;
    int32_t *tokens; /* (count) */
    size_t count, window;
    float *logits; /* (V) */
    struct perplexity sum;
    double seconds; /* of the model, by the session's clock */
};

/* ---- Preparing ---- */

static enum status read_text(struct measurement *m, const struct options *o, struct error *error) {
    const char *name = strcmp(o->file, "-") == 0 ? "standard input" : o->file;
    TRY(file_read(o->file, longest_text, &m->text, &m->size, error));
    if (m->size == 0) {
        return error_set(error, STATUS_BAD_FORMAT, "%s: there is no text", name);
    }
    enum status status = bpe_encode(m->session.tokenizer, m->text, m->size, false, false,
                                    &m->tokens, &m->count, error);
    if (status != STATUS_OK) {
        return error_prefix(error, status, name);
    }
    if (o->limit > 0 && (size_t)o->limit < m->count) {
        m->count = (size_t)o->limit;
    }
    return STATUS_OK;
}

static enum status prepare(struct measurement *m, const struct options *o,
                           const struct decoder_stages *stages, struct error *error) {
    struct decoder_options shared = o->shared;
    shared.positions = (size_t)o->context;
    if (o->recompute) {
        shared.positions = (size_t)o->shared.window;
        shared.window = 0;
    }
    size_t batch = o->recompute ? shared.positions : 1;
    TRY(decoder_session_open(&m->session, &shared, stages, batch, error));
    size_t longest = decoder_session_longest(&m->session);
    m->window = o->context > 0 ? (size_t)o->context : longest;
    m->window = o->recompute ? shared.positions : m->window;
    if (m->window > longest) {
        return error_set(error, STATUS_TOO_LONG, "--%s %zu: the model has %zu positions",
                         o->recompute ? "window" : "context", m->window, longest);
    }
    TRY(read_text(m, o, error));
    if (m->session.endless) {
        m->window = m->count; /* one text, from its first token to its last */
    }
    m->logits = calloc(language_model_vocabulary(&m->session.model), sizeof *m->logits);
    return m->logits != NULL ? STATUS_OK
                             : error_set(error, STATUS_OUT_OF_MEMORY, "out of memory for logits");
}

/* Both tokenizers must give the text the same tokens. */
static enum status check_tokens(const struct measurement *m, const struct options *o,
                                struct error *error) {
    int32_t *tokens;
    size_t count;
    TRY(bpe_encode(m->reference.tokenizer, m->text, m->size, false, false, &tokens, &count, error));
    bool same = count >= m->count && memcmp(tokens, m->tokens, m->count * sizeof *tokens) == 0 &&
                bpe_bos(m->reference.tokenizer) == bpe_bos(m->session.tokenizer) &&
                language_model_vocabulary(&m->reference.model) ==
                    language_model_vocabulary(&m->session.model);
    free(tokens);
    return same ? STATUS_OK
                : error_set(error, STATUS_MISMATCH,
                            "--compare %s: its tokens for the text are not those of %s", o->compare,
                            o->shared.checkpoint);
}

static enum status prepare_reference(struct measurement *m, const struct options *o,
                                     const struct decoder_stages *stages, struct error *error) {
    struct decoder_options shared = o->shared;
    shared.checkpoint = o->compare;
    shared.positions = (size_t)o->context;
    TRY(decoder_session_open(&m->reference, &shared, stages, 1, error));
    size_t longest = decoder_session_longest(&m->reference);
    if (!m->session.endless && longest < m->window) {
        return error_set(error, STATUS_TOO_LONG, "--compare %s: it has %zu positions, not %zu",
                         o->compare, longest, m->window);
    }
    m->peer.model = &m->reference.model;
    m->peer.logits = calloc(language_model_vocabulary(&m->reference.model), sizeof *m->peer.logits);
    if (m->peer.logits == NULL) {
        return error_set(error, STATUS_OUT_OF_MEMORY, "out of memory for logits");
    }
    return check_tokens(m, o, error);
}

/* ---- Reporting ---- */

/* Bytes of the predicted tokens; if they are the whole text, the bytes of the file. */
static size_t text_bytes(const struct measurement *m, bool whole) {
    size_t bytes = 0, length;
    int32_t bos = bpe_bos(m->session.tokenizer), previous = bos;
    size_t left = m->sum.tokens;
    for (size_t i = 0; left > 0 && !whole; i++) {
        if (is_predicted(i, m->window, bos)) {
            (void)bpe_decode(m->session.tokenizer, previous, m->tokens[i], &length);
            bytes += length;
            left--;
        }
        previous = m->tokens[i];
    }
    return whole ? m->size : bytes;
}

/* The figures that are printed and written. */
struct figures {
    double nats, perplexity, bits_per_byte, speed; /* speed 0: the clock did not move */
    double reference_bits, divergence, same;       /* with --compare; same: a share */
    size_t bytes;
};

static struct figures figures_of(const struct measurement *m, const struct options *o) {
    const struct perplexity *sum = &m->sum;
    bool whole = o->limit == 0 && sum->tokens == m->count;
    struct figures f = {.bytes = text_bytes(m, whole)};
    f.nats = sum->nats / (double)sum->tokens;
    f.perplexity = exp(f.nats);
    f.bits_per_byte = f.bytes > 0 ? sum->nats / log(2.0) / (double)f.bytes : 0.0;
    f.reference_bits = f.bytes > 0 ? m->peer.sum.nats / log(2.0) / (double)f.bytes : 0.0;
    f.divergence = m->peer.divergence / (double)sum->tokens;
    f.same = (double)m->peer.same / (double)sum->tokens;
    f.speed = m->seconds > 0.0 ? (double)sum->tokens / m->seconds : 0.0;
    return f;
}

static void print(const struct measurement *m, const struct figures *f) {
    char where[400];
    printf("tokens          %zu (%zu bytes), windows of %zu: %zu\n", m->sum.tokens, f->bytes,
           m->window, m->sum.windows);
    printf("nats per token  %.6f\n", f->nats);
    printf("perplexity      %.6f\n", f->perplexity);
    printf("bits per byte   %.6f\n", f->bits_per_byte);
    if (m->peer.model != NULL) {
        printf("  reference     %.6f (%+.3f %%)\n", f->reference_bits,
               100.0 * (f->bits_per_byte / f->reference_bits - 1.0));
        printf("KL divergence   %.6f nats per token\n", f->divergence);
        printf("same first      %.2f %% of the tokens\n", 100.0 * f->same);
    }
    printf("tokens/s        %.1f%s\n", f->speed, decoder_session_modelled(&m->session));
    printf("%s\n", decoder_session_where(&m->session, where, sizeof where));
}

static enum status write_json(const struct measurement *m, const struct figures *f,
                              const struct options *o, struct error *error) {
    const struct decoder_session *s = &m->session;
    struct cJSON *object = cJSON_CreateObject();
    const struct {
        const char *name;
        double value;
    } numbers[] = {
        {"context", (double)m->window},
        {"tokens", (double)m->sum.tokens},
        {"bytes", (double)f->bytes},
        {"windows", (double)m->sum.windows},
        {"nats_per_token", f->nats},
        {"perplexity", f->perplexity},
        {"bits_per_byte", f->bits_per_byte},
        {"tokens_per_second", f->speed},
        {"reference_bits_per_byte", f->reference_bits},
        {"kl_divergence", f->divergence},
        {"same_first", f->same},
    };
    const size_t compared = 3; /* the last ones are with --compare alone */
    size_t count = sizeof numbers / sizeof *numbers - (m->peer.model != NULL ? 0 : compared);
    bool made = cJSON_AddStringToObject(object, "checkpoint", o->shared.checkpoint) != NULL &&
                cJSON_AddStringToObject(object, "file", o->file) != NULL &&
                cJSON_AddStringToObject(object, "stage", s->stage->name) != NULL &&
                cJSON_AddStringToObject(object, "dtype", nn_dtype_name(s->dtype)) != NULL &&
                cJSON_AddStringToObject(object, "device", s->device.name) != NULL &&
                cJSON_AddBoolToObject(object, "modelled", s->device.modelled) != NULL;
    if (made && o->compare != NULL) {
        made = cJSON_AddStringToObject(object, "reference", o->compare) != NULL;
    }
    for (size_t i = 0; i < count; i++) {
        made = made && cJSON_AddNumberToObject(object, numbers[i].name, numbers[i].value) != NULL;
    }
    char *text = made ? cJSON_Print(object) : NULL;
    cJSON_Delete(object);
    if (text == NULL) {
        return error_set(error, STATUS_OUT_OF_MEMORY, "out of memory for %s", o->json);
    }
    size_t length = strlen(text);
    text[length] = '\n'; /* in place of the NUL */
    enum status status = file_write(o->json, text, length + 1, error);
    free(text);
    return status;
}

/* ---- Running ---- */

static enum status check_options(const struct options *o, struct error *error) {
    if (o->file == NULL) {
        return error_set(error, STATUS_INVALID_ARGUMENT,
                         "no text: give --file FILE, or --file - for standard input");
    }
    if (o->context < 0 || o->limit < 0) {
        return error_set(error, STATUS_INVALID_ARGUMENT,
                         "--context %d, --limit %d: must be at least 0", o->context, o->limit);
    }
    if (o->shared.window > 0 && o->context > 0) {
        return error_set(error, STATUS_INVALID_ARGUMENT,
                         "--context is of windows that do not know of each other, --window of one "
                         "that moves through the text: choose one");
    }
    if (o->recompute && (o->shared.window == 0 || o->shared.sinks > 0)) {
        return error_set(
            error, STATUS_INVALID_ARGUMENT,
            "--recompute wants --window, and no --sinks: it computes the window anew for "
            "each token");
    }
    if (o->recompute && o->compare != NULL) {
        return error_set(error, STATUS_INVALID_ARGUMENT, "--recompute or --compare, not both");
    }
    return o->json != NULL ? file_check_writable(o->json, error) : STATUS_OK;
}

static enum status add_text(struct measurement *m, const struct options *o, struct error *error) {
    int32_t bos = bpe_bos(m->session.tokenizer);
    const struct language_model *model = &m->session.model;
    if (o->compare != NULL) {
        return perplexity_add_compared(&m->sum, &m->peer, model, bos, m->tokens, m->count,
                                       m->window, m->logits, error);
    }
    return (o->recompute ? perplexity_add_recomputed : perplexity_add)(
        &m->sum, model, bos, m->tokens, m->count, m->window, m->logits, error);
}

static enum status measure(struct measurement *m, const struct options *o, struct error *error) {
    interrupt_watch();
    double start = m->session.now();
    enum status status = add_text(m, o, error);
    m->seconds = m->session.now() - start;
    bool interrupted = status == STATUS_INTERRUPTED;
    if (interrupted) {
        fprintf(stderr, "%s: interrupted after %zu of %zu tokens\n", program, m->sum.tokens,
                m->count);
    }
    if (status == STATUS_OK && m->sum.tokens == 0) {
        return error_set(error, STATUS_UNSUPPORTED,
                         "the tokenizer has no token that begins a text, and a window of one token "
                         "predicts none");
    }
    if ((status != STATUS_OK && !interrupted) || m->sum.tokens == 0) {
        return status;
    }
    struct figures f = figures_of(m, o);
    print(m, &f);
    TRY(program_output_end(error));
    return o->json != NULL && !interrupted ? write_json(m, &f, o, error) : status;
}

static enum status prepare_and_measure(struct measurement *m, const struct options *o,
                                       const struct decoder_stages *stages, struct error *error) {
    TRY(prepare(m, o, stages, error));
    TRY(o->compare != NULL ? prepare_reference(m, o, stages, error) : STATUS_OK);
    return measure(m, o, error);
}

static enum status run(void *options, const struct decoder_stages *stages, struct error *error) {
    struct measurement m = {.seconds = 0.0};
    TRY(check_options(options, error));
    enum status status = prepare_and_measure(&m, options, stages, error);
    free(m.peer.logits);
    decoder_session_close(&m.reference);
    free(m.logits);
    free(m.tokens);
    free(m.text);
    decoder_session_close(&m.session);
    return status;
}

static const char epilogue[] =
    "The text's tokens are split into windows of --context tokens. Each window begins\n"
    "with BOS and is independent of the others: every token is predicted once, from BOS\n"
    "and the earlier tokens of its window. If the tokenizer has no BOS, the first token\n"
    "of a window is not predicted. The program prints the mean of -log p per\n"
    "token (nats), the perplexity, which is exp of that mean, and the sum of -log2 p\n"
    "divided by the bytes of the text, which compares models with different tokenizers.\n"
    "\n"
    "With --window the text is one: every token is predicted from the last ones and the\n"
    "first --sinks ones, as `generate --window` writes.\n"
    "\n"
    "--compare runs a second checkpoint on the same tokens, such as the one that CHECKPOINT\n"
    "was rounded from: its bits per byte, the mean KL divergence from its distribution of\n"
    "the next token to CHECKPOINT's, and for how many tokens both have the same first one.\n"
    "\n"
    "examples:\n"
    "  perplexity stories260K.bin -z tok512.bin --file story.txt\n"
    "  perplexity --compare datasets/tiny_llama tiny_llama_int4 --file reviews.txt";

int perplexity_main(int argc, char **argv, const struct decoder_stages *stages) {
    struct options o = {.shared = decoder_options_defaults()};
    const struct flag own[] = {
        {"file", 'f', FLAG_STRING, &o.file, "FILE", "the text, in UTF-8; -: standard input"},
        {"context", 'c', FLAG_INT, &o.context, "N", "tokens of a window; 0: the model's context"},
        {"limit", 'n', FLAG_INT, &o.limit, "TOKENS", "most tokens of the text; 0: all"},
        {"recompute", 0, FLAG_SWITCH, &o.recompute, NULL,
         "with --window: compute it anew for each token, without a cache; slow"},
        {"compare", 0, FLAG_STRING, &o.compare, "REFERENCE",
         "also run this checkpoint, and print how far CHECKPOINT is from it"},
        {"json", 0, FLAG_STRING, &o.json, "FILE", "also write the figures as JSON"},
    };
    const struct decoder_command command = {
        .program = program,
        .summary =
            "measures the perplexity of a Llama2 or GPT-NeoX checkpoint on a text. CHECKPOINT:\n"
            "a file of llama2.c, a GGUF file of a Llama, or a Hugging Face folder with\n"
            "config.json, safetensors and tokenizer.json",
        .options = &o.shared,
        .own = own,
        .own_count = sizeof own / sizeof *own,
        .epilogue = epilogue,
    };
    return decoder_command_main(&command, stages, argc, argv, run, &o);
}
