#include "common/checkpoints/gguf/gguf_vocabulary.h"

#include <cjson/cJSON.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/tokenizers/bpe/tokenizer.h"

/* U+2581, with which files spell a blank. */
#define BLANK "\xe2\x96\x81"

/* Types of tokens that are not recognised in a text; others are pieces, bytes, added by the user.
 */
enum { NORMAL = 1, UNKNOWN = 2, CONTROL = 3, USER_DEFINED = 4, UNUSED = 5 };

enum { BYTES = 256 };

/* What both kinds have. */
struct vocabulary {
    const struct gguf *file;
    const struct gguf_value *tokens, *scores, *types, *merges;
    size_t count;
    struct error *error;
};

static const char advice[] = "give the model's tokenizer.json with --tokenizer";

static enum status find_array(struct vocabulary *v, const char *key, bool strings, bool needed,
                              const struct gguf_value **out) {
    *out = gguf_value(v->file, key);
    if (*out == NULL && !needed) {
        return STATUS_OK;
    }
    bool right = *out != NULL && (*out)->is_array && ((*out)->type == GGUF_STRING) == strings;
    return right ? STATUS_OK
                 : error_set(v->error, STATUS_BAD_FORMAT, "\"%s\" is %s; %s", key,
                             *out == NULL ? "missing"
                             : strings    ? "not an array of strings"
                                          : "not an array of numbers",
                             advice);
}

static enum status find_token_array(struct vocabulary *v, const char *key, bool needed,
                                    const struct gguf_value **out) {
    TRY(find_array(v, key, false, needed, out));
    return *out == NULL || (*out)->count == v->count
               ? STATUS_OK
               : error_set(v->error, STATUS_MISMATCH, "\"%s\" has %zu elements for %zu tokens", key,
                           (*out)->count, v->count);
}

static int token_type(const struct vocabulary *v, size_t id) {
    return v->types != NULL ? (int)gguf_element(v->types, id) : NORMAL;
}

/* Checks an id that need not be there. */
static enum status read_id(const struct vocabulary *v, const char *key, int32_t *id) {
    size_t value;
    if (gguf_value(v->file, key) == NULL) {
        return STATUS_OK;
    }
    if (!gguf_size(v->file, key, &value) || value >= v->count) {
        return error_set(v->error, STATUS_BAD_FORMAT, "\"%s\" is no token of %zu", key, v->count);
    }
    *id = (int32_t)value;
    return STATUS_OK;
}

/* ---- Pieces with scores ---- */

/* Copies a piece to *out, which advances: blanks as " ". What no text is encoded to stands between
   line feeds, as in llama2.c's files: no merge makes that. */
static const char *copy_piece(char **out, struct gguf_string in, bool hidden) {
    char *copy = *out, *to = copy;
    *to = '\n';
    to += hidden;
    for (size_t i = 0; i < in.length;) {
        bool blank = !hidden && in.length - i >= strlen(BLANK) &&
                     memcmp(in.text + i, BLANK, strlen(BLANK)) == 0;
        *to++ = blank ? ' ' : in.text[i];
        i += blank ? strlen(BLANK) : 1;
    }
    *to = '\n';
    to += hidden;
    *to++ = '\0';
    *out = to;
    return copy;
}

static enum status check_string(const struct vocabulary *v, const char *what, size_t id,
                                struct gguf_string string) {
    return string.length == 0 || memchr(string.text, '\0', string.length) == NULL
               ? STATUS_OK
               : error_set(v->error, STATUS_BAD_FORMAT, "%s %zu has a NUL byte in its text", what,
                           id);
}

/* The ids that bpe.h fixes. */
static enum status check_layout(const struct vocabulary *v, const char *const *pieces) {
    int32_t bos = BPE_BOS;
    bool adds = true;
    TRY(read_id(v, "tokenizer.ggml.bos_token_id", &bos));
    if (bos != BPE_BOS || (gguf_bool(v->file, "tokenizer.ggml.add_space_prefix", &adds) && !adds)) {
        return error_set(v->error, STATUS_UNSUPPORTED,
                         "a vocabulary with scores whose BOS is token %d, %s a blank before the "
                         "text, is not supported, only Llama2's: BOS 1, with a blank; %s",
                         bos, adds ? "with" : "without", advice);
    }
    for (size_t byte = 0; byte < BYTES && v->count >= BPE_FIRST_BYTE + BYTES; byte++) {
        char want[8];
        snprintf(want, sizeof want, "<0x%02X>", (unsigned)byte);
        if (strcmp(pieces[BPE_FIRST_BYTE + byte], want) != 0) {
            return error_set(v->error, STATUS_UNSUPPORTED,
                             "token %zu is not \"%s\"; supported are vocabularies that begin as "
                             "Llama2's: <unk>, <s>, </s>, 256 bytes; %s",
                             BPE_FIRST_BYTE + byte, want, advice);
        }
    }
    return STATUS_OK;
}

/* Memory for a vocabulary in llama2.c's form. */
struct pieces {
    const char **texts;
    float *scores;
    char *text;
    unsigned char *file;
    size_t size;
};

static enum status make_pieces(const struct vocabulary *v, struct pieces *p) {
    const unsigned char *next = v->tokens->data;
    char *out = p->text;
    for (size_t id = 0; id < v->count; id++) {
        struct gguf_string token = gguf_next_string(&next);
        int type = token_type(v, id);
        TRY(check_string(v, "token", id, token));
        p->texts[id] =
            copy_piece(&out, token, type == UNKNOWN || type == CONTROL || type == UNUSED);
        p->scores[id] = (float)gguf_element(v->scores, id);
    }
    TRY(check_layout(v, p->texts));
    enum status status = bpe_serialize(p->texts, p->scores, v->count, &p->file, &p->size);
    return status == STATUS_OK
               ? STATUS_OK
               : error_set(v->error, status, "the vocabulary: %s", status_message(status));
}

static size_t text_bytes(const struct gguf_value *strings) {
    const unsigned char *next = strings->data;
    size_t bytes = 0;
    for (size_t i = 0; i < strings->count; i++) {
        bytes += gguf_next_string(&next).length + 3; /* two line feeds and a NUL */
    }
    return bytes;
}

static enum status make_scored(struct vocabulary *v, struct gguf_tokenizer *out) {
    TRY(find_token_array(v, "tokenizer.ggml.scores", true, &v->scores));
    struct pieces p = {.texts = calloc(v->count, sizeof *p.texts),
                       .scores = calloc(v->count, sizeof *p.scores),
                       .text = malloc(text_bytes(v->tokens))};
    enum status status =
        p.texts != NULL && p.scores != NULL && p.text != NULL
            ? make_pieces(v, &p)
            : error_set(v->error, STATUS_OUT_OF_MEMORY, "no memory for %zu tokens", v->count);
    free(p.texts);
    free(p.scores);
    free(p.text);
    *out = (struct gguf_tokenizer){"tokenizer.bin", (char *)p.file, p.size};
    return status;
}

/* ---- Byte-level BPE ---- */

static const char llama3[] =
    "(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}{1,3}| "
    "?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+";
static const char qwen2[] = "(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}| "
                            "?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+";

/* How "tokenizer.ggml.pre" splits a text: by an expression, or as GPT-2 does. */
static const struct splitter {
    const char *name, *expression;
    bool digits; /* each digit is a piece */
    bool bos, ignore_merges;
} splitters[] = {
    {"llama-bpe", llama3, false, true, true}, {"llama3", llama3, false, true, true},
    {"llama-v3", llama3, false, true, true},  {"qwen2", qwen2, false, false, false},
    {"gpt-2", NULL, false, false, false},     {"smollm", NULL, true, false, false},
};

static enum status find_splitter(const struct vocabulary *v, const struct splitter **out) {
    struct gguf_string name = {.text = ""};
    for (size_t i = 0; i < sizeof splitters / sizeof *splitters; i++) {
        if (gguf_text_is(v->file, "tokenizer.ggml.pre", splitters[i].name)) {
            *out = &splitters[i];
            return STATUS_OK;
        }
    }
    (void)gguf_text(v->file, "tokenizer.ggml.pre", &name);
    return error_set(v->error, STATUS_UNSUPPORTED,
                     "\"tokenizer.ggml.pre\" \"%.*s\" is not supported, only llama-bpe, qwen2, "
                     "gpt-2 and smollm; %s",
                     gguf_shown(name), name.text, advice);
}

/* A copy of a string as JSON's; NULL without memory. */
static cJSON *json_string(struct gguf_string string) {
    char *copy = malloc(string.length + 1);
    if (copy == NULL) {
        return NULL;
    }
    memcpy(copy, string.text, string.length);
    copy[string.length] = '\0';
    cJSON *item = cJSON_CreateString(copy);
    free(copy);
    return item;
}

/* Adds an item that was made to an object or, without a key, an array. */
static cJSON *put(cJSON *to, const char *key, cJSON *item) {
    bool added =
        to != NULL && item != NULL &&
        (key != NULL ? cJSON_AddItemToObject(to, key, item) : cJSON_AddItemToArray(to, item));
    if (!added) {
        cJSON_Delete(item);
    }
    return added ? item : NULL;
}

static bool add_added(cJSON *added, cJSON *content, size_t id, int type) {
    cJSON *token = put(added, NULL, cJSON_CreateObject());
    return put(token, "content", content) != NULL &&
           put(token, "id", cJSON_CreateNumber((double)id)) != NULL &&
           put(token, "special", cJSON_CreateBool(type != USER_DEFINED)) != NULL;
}

static enum status add_tokens(const struct vocabulary *v, cJSON *vocab, cJSON *added) {
    const unsigned char *next = v->tokens->data;
    for (size_t id = 0; id < v->count; id++) {
        struct gguf_string token = gguf_next_string(&next);
        TRY(check_string(v, "token", id, token));
        cJSON *text = json_string(token);
        int type = token_type(v, id);
        bool done = text != NULL;
        if (done && type == NORMAL) {
            done = put(vocab, text->valuestring, cJSON_CreateNumber((double)id)) != NULL;
            cJSON_Delete(text);
        } else if (done) {
            done = add_added(added, text, id, type);
        }
        if (!done) {
            return STATUS_OUT_OF_MEMORY;
        }
    }
    return STATUS_OK;
}

static enum status add_merges(const struct vocabulary *v, cJSON *merges) {
    const unsigned char *next = v->merges->data;
    for (size_t i = 0; i < v->merges->count; i++) {
        struct gguf_string merge = gguf_next_string(&next);
        TRY(check_string(v, "merge", i, merge));
        if (put(merges, NULL, json_string(merge)) == NULL) {
            return STATUS_OUT_OF_MEMORY;
        }
    }
    return STATUS_OK;
}

static enum status add_model(const struct vocabulary *v, cJSON *root, bool ignore_merges) {
    cJSON *added = put(root, "added_tokens", cJSON_CreateArray());
    cJSON *model = put(root, "model", cJSON_CreateObject());
    cJSON *vocab = put(model, "vocab", cJSON_CreateObject());
    cJSON *merges = put(model, "merges", cJSON_CreateArray());
    if (added == NULL || vocab == NULL || merges == NULL ||
        put(model, "type", cJSON_CreateString("BPE")) == NULL ||
        put(model, "ignore_merges", cJSON_CreateBool(ignore_merges)) == NULL) {
        return STATUS_OUT_OF_MEMORY;
    }
    TRY(add_tokens(v, vocab, added));
    return add_merges(v, merges);
}

static bool add_splitter(cJSON *root, const struct splitter *s) {
    cJSON *parts = cJSON_CreateArray();
    cJSON *sequence = put(root, "pre_tokenizer", cJSON_CreateObject());
    bool made = put(sequence, "type", cJSON_CreateString("Sequence")) != NULL;
    parts = put(sequence, "pretokenizers", parts);
    if (s->expression != NULL) {
        cJSON *split = put(parts, NULL, cJSON_CreateObject());
        cJSON *pattern = put(split, "pattern", cJSON_CreateObject());
        made = made && put(split, "type", cJSON_CreateString("Split")) != NULL &&
               put(pattern, "Regex", cJSON_CreateString(s->expression)) != NULL &&
               put(split, "behavior", cJSON_CreateString("Isolated")) != NULL &&
               put(split, "invert", cJSON_CreateFalse()) != NULL;
    }
    if (s->digits) {
        cJSON *digits = put(parts, NULL, cJSON_CreateObject());
        made = made && put(digits, "type", cJSON_CreateString("Digits")) != NULL &&
               put(digits, "individual_digits", cJSON_CreateTrue()) != NULL;
    }
    cJSON *bytes = put(parts, NULL, cJSON_CreateObject());
    return made && put(bytes, "type", cJSON_CreateString("ByteLevel")) != NULL &&
           put(bytes, "add_prefix_space", cJSON_CreateFalse()) != NULL &&
           put(bytes, "use_regex", cJSON_CreateBool(s->expression == NULL)) != NULL;
}

/* Puts a token before each text. */
static bool add_template(cJSON *root, int32_t bos) {
    cJSON *template = put(root, "post_processor", cJSON_CreateObject());
    cJSON *single = put(template, "single", cJSON_CreateArray());
    cJSON *before = put(single, NULL, cJSON_CreateObject());
    cJSON *special = put(before, "SpecialToken", cJSON_CreateObject());
    cJSON *text = put(single, NULL, cJSON_CreateObject());
    cJSON *tokens = put(template, "special_tokens", cJSON_CreateObject());
    cJSON *token = put(tokens, "bos", cJSON_CreateObject());
    cJSON *ids = put(token, "ids", cJSON_CreateArray());
    return put(template, "type", cJSON_CreateString("TemplateProcessing")) != NULL &&
           put(special, "id", cJSON_CreateString("bos")) != NULL &&
           put(text, "Sequence", cJSON_CreateObject()) != NULL &&
           put(ids, NULL, cJSON_CreateNumber(bos)) != NULL;
}

static enum status make_json(struct vocabulary *v, cJSON *root) {
    const struct splitter *splitter = NULL;
    int32_t bos = -1;
    TRY(find_splitter(v, &splitter));
    bool adds = splitter->bos;
    TRY(find_array(v, "tokenizer.ggml.merges", true, true, &v->merges));
    TRY(read_id(v, "tokenizer.ggml.bos_token_id", &bos));
    (void)gguf_bool(v->file, "tokenizer.ggml.add_bos_token", &adds);
    TRY(add_model(v, root, splitter->ignore_merges));
    return add_splitter(root, splitter) && (!adds || bos < 0 || add_template(root, bos))
               ? STATUS_OK
               : STATUS_OUT_OF_MEMORY;
}

static enum status make_byte_level(struct vocabulary *v, struct gguf_tokenizer *out) {
    cJSON *root = cJSON_CreateObject();
    enum status status = root != NULL ? make_json(v, root) : STATUS_OUT_OF_MEMORY;
    char *text = status == STATUS_OK ? cJSON_PrintUnformatted(root) : NULL;
    cJSON_Delete(root);
    if (status == STATUS_OUT_OF_MEMORY || (status == STATUS_OK && text == NULL)) {
        return error_set(v->error, STATUS_OUT_OF_MEMORY, "no memory for %zu tokens", v->count);
    }
    *out = (struct gguf_tokenizer){"tokenizer.json", text, text != NULL ? strlen(text) : 0};
    return status;
}

/* ---- Both ---- */

enum status gguf_vocabulary_file(const struct gguf *file, struct gguf_tokenizer *tokenizer,
                                 int32_t *eos, struct error *error) {
    struct vocabulary v = {.file = file, .error = error};
    struct gguf_string model = {.text = ""};
    *tokenizer = (struct gguf_tokenizer){0};
    *eos = -1;
    TRY(find_array(&v, "tokenizer.ggml.tokens", true, true, &v.tokens));
    v.count = v.tokens->count;
    if (v.count == 0 || v.count > INT32_MAX) {
        return error_set(error, STATUS_BAD_FORMAT, "there are %zu tokens", v.count);
    }
    TRY(find_token_array(&v, "tokenizer.ggml.token_type", false, &v.types));
    TRY(read_id(&v, "tokenizer.ggml.eos_token_id", eos));
    if (gguf_text_is(file, "tokenizer.ggml.model", "llama")) {
        return make_scored(&v, tokenizer);
    }
    if (gguf_text_is(file, "tokenizer.ggml.model", "gpt2")) {
        return make_byte_level(&v, tokenizer);
    }
    (void)gguf_text(file, "tokenizer.ggml.model", &model);
    return error_set(error, STATUS_UNSUPPORTED,
                     "\"tokenizer.ggml.model\" \"%.*s\" is not supported, only \"llama\" and "
                     "\"gpt2\"; %s",
                     gguf_shown(model), model.text, advice);
}

enum status gguf_vocabulary_read(const struct gguf *file, size_t expected_tokens, struct bpe **bpe,
                                 int32_t *eos, struct error *error) {
    struct gguf_tokenizer made;
    *bpe = NULL;
    enum status status = gguf_vocabulary_file(file, &made, eos, error);
    if (status == STATUS_OK) {
        status = strcmp(made.name, "tokenizer.bin") == 0
                     ? bpe_parse(bpe, made.data, made.size, expected_tokens, error)
                     : tokenizer_json_parse(bpe, made.data, made.size, expected_tokens, error);
    }
    free(made.data);
    return status;
}
