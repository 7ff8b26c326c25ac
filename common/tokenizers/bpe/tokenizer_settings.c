/* tokenizer.json: reads everything except the vocabulary and the pre-tokenizer of byte-level BPE.
 */
#include <string.h>

#include "common/base/json_object.h"
#include "common/tokenizers/bpe/pretokenizer.h"
#include "common/tokenizers/bpe/tokenizer_json.h"

/* The "type" of a part, "" when it has none. */
static const char *type_of(const cJSON *part) {
    const char *type = cJSON_GetStringValue(json_member(part, "type"));
    return type != NULL ? type : "";
}

static bool is_string(const cJSON *item, const char *want) {
    const char *value = cJSON_GetStringValue(item);
    return value != NULL && strcmp(value, want) == 0;
}

/* Refuses a part: "KEY of type TYPE ... is not supported". */
static enum status refuse(const char *key, const cJSON *part, struct error *error) {
    const char *type = type_of(part);
    return error_set(
        error, STATUS_UNSUPPORTED,
        "%s of type \"%.*s\" as given is not supported; only the settings of Llama2 and "
        "of byte-level BPE (Llama 3, Qwen2) are",
        key, json_shown(type), type);
}

/* Whether a Replace has the pattern {"String": FROM} and the content TO. */
static bool replaces(const cJSON *part, const char *from, const char *to) {
    return is_string(json_member(json_member(part, "pattern"), "String"), from) &&
           is_string(json_member(part, "content"), to);
}

typedef enum status part_reader(void *context, const cJSON *part, struct error *error);

/* Calls @p read for a part, or, if it is a Sequence, for each element of its array @p list. */
static enum status for_each_part(const cJSON *part, const char *list, part_reader *read,
                                 void *context, struct error *error) {
    if (part == NULL || strcmp(type_of(part), "Sequence") != 0) {
        return part == NULL ? STATUS_OK : read(context, part, error);
    }
    const cJSON *parts = json_member(part, list), *each;
    if (!cJSON_IsArray(parts)) {
        return error_set(error, STATUS_BAD_FORMAT, "\"%s\" of a Sequence is not an array", list);
    }
    cJSON_ArrayForEach(each, parts) {
        TRY(read(context, each, error));
    }
    return STATUS_OK;
}

struct normalizer {
    bool prepends, replaces;
};

static enum status read_normalizer(void *context, const cJSON *part, struct error *error) {
    struct normalizer *normalizer = context;
    const char *type = type_of(part);
    if (strcmp(type, "Prepend") == 0 && !normalizer->prepends &&
        is_string(json_member(part, "prepend"), TOKENIZER_BLANK)) {
        normalizer->prepends = true;
        return STATUS_OK;
    }
    if (strcmp(type, "Replace") == 0 && replaces(part, " ", TOKENIZER_BLANK)) {
        normalizer->replaces = true;
        return STATUS_OK;
    }
    return refuse("normalizer", part, error);
}

/* Reads a switch; its value is @p fallback if it is absent. */
static enum status read_switch(const cJSON *object, const char *key, bool fallback, bool *out,
                               struct error *error) {
    const cJSON *item = json_member(object, key);
    if (item != NULL && !cJSON_IsBool(item)) {
        return error_set(error, STATUS_BAD_FORMAT, "\"%s\" is neither true nor false", key);
    }
    *out = item != NULL ? cJSON_IsTrue(item) : fallback;
    return STATUS_OK;
}

/* Metaspace. "first" puts no blank before text after an added token. */
static enum status read_metaspace(struct tokenizer_settings *settings, const cJSON *part,
                                  struct error *error) {
    const cJSON *scheme = json_member(part, "prepend_scheme");
    bool prefix; /* "add_prefix_space": older files have it instead of a scheme */
    TRY(read_switch(part, "add_prefix_space", true, &prefix, error));
    TRY(read_switch(part, "split", true, &settings->split_words, error));
    bool known = scheme == NULL || is_string(scheme, "always") || is_string(scheme, "first") ||
                 is_string(scheme, "never");
    if (strcmp(type_of(part), "Metaspace") != 0 || !known ||
        !is_string(json_member(part, "replacement"), TOKENIZER_BLANK)) {
        return refuse("pre_tokenizer", part, error);
    }
    prefix = scheme != NULL ? !is_string(scheme, "never") : prefix;
    settings->prefix_first = is_string(scheme, "first");
    settings->prefix = prefix ? BPE_PREFIX_UNLESS_BLANK : BPE_PREFIX_NEVER;
    return STATUS_OK;
}

static enum status read_text_settings(struct tokenizer_settings *settings, const cJSON *root,
                                      struct error *error) {
    struct normalizer normalizer = {0};
    TRY(for_each_part(json_member(root, "normalizer"), "normalizers", read_normalizer, &normalizer,
                      error));
    const cJSON *splitter = json_member(root, "pre_tokenizer");
    if (splitter != NULL && (normalizer.prepends || normalizer.replaces)) {
        return refuse("pre_tokenizer", splitter, error);
    }
    if (splitter != NULL) {
        return read_metaspace(settings, splitter, error);
    }
    if (!normalizer.replaces) {
        return error_set(
            error, STATUS_UNSUPPORTED,
            "neither normalizer nor pre_tokenizer writes blanks as U+2581, as Llama2's "
            "does; others are not supported");
    }
    settings->prefix = normalizer.prepends ? BPE_PREFIX_ALWAYS : BPE_PREFIX_NEVER;
    return STATUS_OK;
}

/* bpe_decode() does the same as these decoders together. */
static enum status read_decoder(void *context, const cJSON *part, struct error *error) {
    (void)context;
    static const char *const known[] = {"ByteFallback", "Fuse", "Metaspace", "Strip"};
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        if (strcmp(type_of(part), known[i]) == 0) {
            return STATUS_OK;
        }
    }
    bool replace = strcmp(type_of(part), "Replace") == 0 && replaces(part, TOKENIZER_BLANK, " ");
    return replace ? STATUS_OK : refuse("decoder", part, error);
}

/* A key of the model that must be absent, null or "" (a string) or false (a switch). */
static enum status expect_unset(const cJSON *model, const char *key, struct error *error) {
    const cJSON *item = json_member(model, key);
    if (item == NULL || cJSON_IsFalse(item) || is_string(item, "")) {
        return STATUS_OK;
    }
    return error_set(error, STATUS_UNSUPPORTED, "\"%s\" of the model is not supported", key);
}

static enum status check_model(const cJSON *model, struct error *error) {
    static const char *const unset[] = {"dropout", "continuing_subword_prefix",
                                        "end_of_word_suffix"};
    if (!cJSON_IsObject(model)) {
        return error_set(error, STATUS_BAD_FORMAT, "\"model\" is missing or not an object");
    }
    if (strcmp(type_of(model), "BPE") != 0) {
        return error_set(error, STATUS_UNSUPPORTED,
                         "model of type \"%.*s\" is not supported, only \"BPE\"",
                         json_shown(type_of(model)), type_of(model));
    }
    for (size_t i = 0; i < sizeof unset / sizeof *unset; i++) {
        TRY(expect_unset(model, unset[i], error));
    }
    return STATUS_OK;
}

/* ---- As Llama2's ---- */

static enum status read_sentencepiece(struct tokenizer_settings *settings, const cJSON *root,
                                      struct error *error) {
    const cJSON *model = json_member(root, "model");
    bool bytes;
    TRY(expect_unset(model, "ignore_merges", error));
    TRY(read_switch(model, "byte_fallback", false, &bytes, error));
    if (!bytes) {
        return error_set(error, STATUS_UNSUPPORTED,
                         "\"byte_fallback\" of the model is not true, and the pre_tokenizer is not "
                         "\"ByteLevel\": vocabularies without bytes are not supported");
    }
    TRY(read_text_settings(settings, root, error));
    return for_each_part(json_member(root, "decoder"), "decoders", read_decoder, NULL, error);
}

/* ---- Byte-level BPE ---- */

static enum status read_composition(void *context, const cJSON *part, struct error *error) {
    bool *compose = context;
    if (strcmp(type_of(part), "NFC") != 0) {
        return refuse("normalizer", part, error);
    }
    *compose = true;
    return STATUS_OK;
}

static enum status read_byte_decoder(void *context, const cJSON *part, struct error *error) {
    (void)context;
    return strcmp(type_of(part), "ByteLevel") == 0 ? STATUS_OK : refuse("decoder", part, error);
}

/* Whether NFC keeps a text apart from what is around it: blanks compose with nothing. */
static bool is_blanks(const char *text) {
    return text[strspn(text, " ")] == '\0';
}

/* An added token is taken where its text is; these flags would take more or less. */
static enum status check_added(const cJSON *token, bool compose, struct error *error) {
    static const char *const unset[] = {"single_word", "lstrip", "rstrip", "normalized"};
    for (size_t i = 0; i < sizeof unset / sizeof *unset; i++) {
        const char *text = cJSON_GetStringValue(json_member(token, "content"));
        bool normalized = strcmp(unset[i], "normalized") == 0;
        text = text != NULL ? text : "";
        if (cJSON_IsTrue(json_member(token, unset[i])) &&
            (!normalized || (compose && !is_blanks(text)))) {
            return error_set(error, STATUS_UNSUPPORTED,
                             "added token \"%.*s\": \"%s\" is true, which is not supported",
                             json_shown(text), text, unset[i]);
        }
    }
    return STATUS_OK;
}

static enum status read_byte_level(struct tokenizer_settings *settings, const cJSON *root,
                                   struct error *error) {
    const cJSON *model = json_member(root, "model"), *token;
    TRY(expect_unset(model, "byte_fallback", error));
    TRY(read_switch(model, "ignore_merges", false, &settings->ignore_merges, error));
    TRY(for_each_part(json_member(root, "normalizer"), "normalizers", read_composition,
                      &settings->compose, error));
    cJSON_ArrayForEach(token, json_member(root, "added_tokens")) {
        TRY(check_added(token, settings->compose, error));
    }
    settings->prefix_space = pretokenizer_adds_blank(json_member(root, "pre_tokenizer"));
    return for_each_part(json_member(root, "decoder"), "decoders", read_byte_decoder, NULL, error);
}

enum status tokenizer_settings_read(struct tokenizer_settings *settings, const cJSON *root,
                                    struct error *error) {
    *settings = (struct tokenizer_settings){.prefix = BPE_PREFIX_NEVER};
    settings->byte_level = pretokenizer_is_byte_level(json_member(root, "pre_tokenizer"));
    TRY(check_model(json_member(root, "model"), error));
    return settings->byte_level ? read_byte_level(settings, root, error)
                                : read_sentencepiece(settings, root, error);
}

/* ---- The post-processor ---- */

/* What a template puts around a text. */
struct surroundings {
    const cJSON *tokens; /* "special_tokens" */
    size_t count;        /* of the vocabulary */
    int32_t bos, eos;
    bool text; /* the text's place has come */
};

static enum status read_special(struct surroundings *s, const cJSON *special, struct error *error) {
    const char *name = cJSON_GetStringValue(json_member(special, "id"));
    const cJSON *ids = json_member(name != NULL ? json_member(s->tokens, name) : NULL, "ids");
    int32_t *place = s->text ? &s->eos : &s->bos;
    size_t id;
    if (cJSON_GetArraySize(ids) != 1 || !json_size(ids->child, &id) || id >= s->count) {
        return error_set(error, STATUS_BAD_FORMAT,
                         "post_processor: a special token has not one id below %zu", s->count);
    }
    if (*place >= 0) {
        return error_set(error, STATUS_UNSUPPORTED,
                         "post_processor: several special tokens %s a text are not supported",
                         s->text ? "behind" : "before");
    }
    *place = (int32_t)id;
    return STATUS_OK;
}

static enum status read_post_processor(void *context, const cJSON *part, struct error *error) {
    struct surroundings *s = context;
    const cJSON *item;
    if (strcmp(type_of(part), "ByteLevel") == 0) {
        return STATUS_OK; /* changes offsets alone */
    }
    if (strcmp(type_of(part), "TemplateProcessing") != 0) {
        return refuse("post_processor", part, error);
    }
    s->tokens = json_member(part, "special_tokens");
    cJSON_ArrayForEach(item, json_member(part, "single")) {
        const cJSON *special = json_member(item, "SpecialToken");
        if (special != NULL) {
            TRY(read_special(s, special, error));
        }
        s->text = s->text || special == NULL;
    }
    return STATUS_OK;
}

enum status tokenizer_template_read(int32_t *bos, int32_t *eos, const cJSON *root, size_t count,
                                    struct error *error) {
    struct surroundings s = {.count = count, .bos = -1, .eos = -1};
    TRY(for_each_part(json_member(root, "post_processor"), "processors", read_post_processor, &s,
                      error));
    *bos = s.bos;
    *eos = s.eos;
    return STATUS_OK;
}
