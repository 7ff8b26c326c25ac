/* tokenizer.json: reads everything except the vocabulary. Only Llama2's settings are supported. */
#include <string.h>

#include "common/base/json_object.h"
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
    bool bytes = strcmp(type, "ByteLevel") == 0;
    return error_set(error, STATUS_UNSUPPORTED,
                     "%s of type \"%.*s\" as given is not supported%s; only Llama2's settings are",
                     key, json_shown(type), type, bytes ? " (byte-level BPE, as GPT-2's)" : "");
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

/* Metaspace: "always" and "first" differ only for text after an added token. */
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
                                        "end_of_word_suffix", "ignore_merges"};
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
    bool bytes;
    TRY(read_switch(model, "byte_fallback", false, &bytes, error));
    if (!bytes) {
        return error_set(error, STATUS_UNSUPPORTED,
                         "\"byte_fallback\" of the model is not true: byte-level BPE (GPT-2, "
                         "Llama3) and vocabularies without bytes are not supported");
    }
    return STATUS_OK;
}

enum status tokenizer_settings_read(struct tokenizer_settings *settings, const cJSON *root,
                                    struct error *error) {
    *settings = (struct tokenizer_settings){.prefix = BPE_PREFIX_NEVER};
    TRY(check_model(json_member(root, "model"), error));
    TRY(read_text_settings(settings, root, error));
    return for_each_part(json_member(root, "decoder"), "decoders", read_decoder, NULL, error);
}
