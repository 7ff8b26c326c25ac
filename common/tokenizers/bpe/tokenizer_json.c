/* tokenizer.json: reads the vocabulary and its merges. */
#include "common/tokenizers/bpe/tokenizer_json.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/checked.h"
#include "common/base/json_object.h"
#include "common/tokenizers/bpe/byte_level.h"
#include "common/tokenizers/bpe/pretokenizer.h"
#include "common/tokenizers/bpe/tokenizer.h"

enum { BYTES = 256 };

/* State while a file is read: its lists, and the vocabulary made from them. */
struct reader {
    const cJSON *vocab;  /* an object: piece to id */
    const cJSON *added;  /* an array of objects with "id" and "content", or NULL */
    const cJSON *merges; /* an array */
    struct bpe *bpe;
    bool byte_level;
    size_t longest;  /* bytes of the longest spelling in the file */
    char *scratch;   /* (2 * longest + 1) */
    char *free_text; /* where the next piece goes */
    struct error *error;
};

static enum status find_lists(struct reader *r, const cJSON *root) {
    const cJSON *model = json_member(root, "model");
    r->vocab = json_member(model, "vocab");
    r->merges = json_member(model, "merges");
    r->added = json_member(root, "added_tokens");
    if (!cJSON_IsObject(r->vocab)) {
        return error_set(r->error, STATUS_BAD_FORMAT, "\"vocab\" is missing or not an object");
    }
    if (!cJSON_IsArray(r->merges)) {
        return error_set(r->error, STATUS_BAD_FORMAT, "\"merges\" is missing or not an array");
    }
    if (r->added != NULL && !cJSON_IsArray(r->added)) {
        return error_set(r->error, STATUS_BAD_FORMAT, "\"added_tokens\" is not an array");
    }
    return STATUS_OK;
}

/* Counts a token: @p count becomes one more than the largest id. */
static enum status measure_token(struct reader *r, const cJSON *id, const char *piece,
                                 size_t *count, size_t *text_bytes) {
    size_t value;
    if (piece == NULL) {
        return error_set(r->error, STATUS_BAD_FORMAT, "\"content\" of an added token is missing");
    }
    if (!json_size(id, &value) || value >= INT32_MAX) {
        return error_set(r->error, STATUS_BAD_FORMAT,
                         "id of the token \"%.*s\" is not a whole number below %d",
                         json_shown(piece), piece, INT32_MAX);
    }
    *count = value >= *count ? value + 1 : *count;
    r->longest = strlen(piece) > r->longest ? strlen(piece) : r->longest;
    *text_bytes += strlen(piece) + 1; /* no more than the size of the file */
    return STATUS_OK;
}

static enum status measure(struct reader *r, size_t *count, size_t *text_bytes) {
    size_t entries = 0;
    const cJSON *token;
    *count = *text_bytes = 0;
    cJSON_ArrayForEach(token, r->vocab) {
        TRY(measure_token(r, token, token->string, count, text_bytes));
        entries++;
    }
    cJSON_ArrayForEach(token, r->added) {
        const char *piece = cJSON_GetStringValue(json_member(token, "content"));
        TRY(measure_token(r, json_member(token, "id"), piece, count, text_bytes));
        entries++;
    }
    if (*count > entries) {
        return error_set(r->error, STATUS_BAD_FORMAT,
                         "the largest id is %zu, but there are only %zu tokens", *count - 1,
                         entries);
    }
    return STATUS_OK;
}

/* Copies a text to r->free_text, as bytes if it is a piece of byte-level BPE. *found: text will be
   encoded to it. */
static size_t copy_piece(struct reader *r, const char *text, bool added, bool *found) {
    size_t length = strlen(text);
    *found = !added;
    if (r->byte_level && !added) {
        size_t bytes;
        *found = byte_level_decode(r->free_text, text, length, &bytes);
        length = *found ? bytes : length;
    }
    if (!r->byte_level || !*found) {
        memcpy(r->free_text, text, length);
    }
    r->free_text[length] = '\0';
    return length;
}

/* @param added it is not in the vocabulary, so that text is never encoded to it */
static enum status add_piece(struct reader *r, const cJSON *id, const char *text, bool added) {
    size_t index;
    bool found;
    if (!json_size(id, &index) || strlen(text) > UINT32_MAX) {
        return STATUS_BAD_FORMAT; /* measured before */
    }
    struct bpe_piece *piece = &r->bpe->pieces[index];
    if (piece->text != NULL) {
        return error_set(r->error, STATUS_BAD_FORMAT, "id %zu belongs to \"%.*s\" and to \"%.*s\"",
                         index, json_shown(piece->text), piece->text, json_shown(text), text);
    }
    size_t length = copy_piece(r, text, added, &found);
    *piece = (struct bpe_piece){.text = r->free_text, .length = (uint32_t)length};
    r->free_text += length + 1;
    r->bpe->longest = length > r->bpe->longest ? length : r->bpe->longest;
    if (found) {
        bpe_index_add(r->bpe, (int32_t)index);
    }
    return STATUS_OK;
}

/* The id of a piece as the file spells it, or -1. @param scratch room for it */
static int32_t find_piece(const struct reader *r, const char *text, size_t length, char *scratch) {
    size_t bytes = length;
    if (length > r->longest) {
        return -1;
    }
    if (!r->byte_level) {
        return bpe_find(r->bpe, text, length);
    }
    return byte_level_decode(scratch, text, length, &bytes) ? bpe_find(r->bpe, scratch, bytes) : -1;
}

static enum status add_vocabulary(struct reader *r) {
    const cJSON *token;
    cJSON_ArrayForEach(token, r->vocab) {
        TRY(add_piece(r, token, token->string, false));
    }
    return STATUS_OK;
}

/* An added token repeats one of the vocabulary or is new. Text never encodes to a new one. */
static enum status add_added_token(struct reader *r, const cJSON *token) {
    const cJSON *id = json_member(token, "id");
    const char *text = cJSON_GetStringValue(json_member(token, "content"));
    int32_t known = find_piece(r, text, strlen(text), r->scratch);
    if (known < 0) {
        TRY(add_piece(r, id, text, true));
    } else if (cJSON_GetNumberValue(id) != known) {
        return error_set(r->error, STATUS_BAD_FORMAT,
                         "added token \"%.*s\" has id %.0f, in the vocabulary %" PRId32,
                         json_shown(text), text, cJSON_GetNumberValue(id), known);
    }
    if (text[0] != '\0') { /* an empty one would be everywhere */
        char *kept = strcpy(r->free_text, text);
        r->free_text += strlen(text) + 1;
        bool always = r->byte_level && cJSON_IsTrue(json_member(token, "normalized")) &&
                      !cJSON_IsTrue(json_member(token, "special"));
        r->bpe->added[r->bpe->added_count++] =
            (struct bpe_added){kept, strlen(text), (int32_t)cJSON_GetNumberValue(id), always};
        r->bpe->adds_always = r->bpe->adds_always || always;
    }
    return STATUS_OK;
}

static int longest_first(const void *a, const void *b) {
    const struct bpe_added *x = a, *y = b;
    return x->length != y->length ? (x->length < y->length) - (x->length > y->length)
                                  : strcmp(x->text, y->text);
}

static enum status add_added_tokens(struct reader *r) {
    const cJSON *token;
    size_t most = (size_t)cJSON_GetArraySize(r->added);
    r->bpe->added = calloc(most > 0 ? most : 1, sizeof *r->bpe->added);
    if (r->bpe->added == NULL) {
        return error_set(r->error, STATUS_OUT_OF_MEMORY, "no memory for %zu added tokens", most);
    }
    cJSON_ArrayForEach(token, r->added) {
        TRY(add_added_token(r, token));
    }
    qsort(r->bpe->added, r->bpe->added_count, sizeof *r->bpe->added, longest_first);
    for (size_t i = 0; i < r->bpe->count; i++) {
        if (r->bpe->pieces[i].text == NULL) {
            return error_set(r->error, STATUS_BAD_FORMAT, "no token has the id %zu", i);
        }
    }
    return STATUS_OK;
}

static enum status check_piece(const struct reader *r, size_t id, const char *want) {
    const char *piece = id < r->bpe->count ? r->bpe->pieces[id].text : "";
    if (strcmp(piece, want) == 0) {
        return STATUS_OK;
    }
    return error_set(r->error, STATUS_UNSUPPORTED,
                     "token %zu is \"%.*s\", not \"%s\"; supported are vocabularies that begin as "
                     "Llama2's: <unk>, <s>, </s>, 256 bytes",
                     id, json_shown(piece), piece, want);
}

/* Checks the ids that bpe.h fixes, and that there is a piece for blanks. */
static enum status check_layout(const struct reader *r) {
    TRY(check_piece(r, BPE_UNK, "<unk>"));
    TRY(check_piece(r, BPE_BOS, "<s>"));
    TRY(check_piece(r, BPE_EOS, "</s>"));
    for (size_t byte = 0; byte < BYTES; byte++) {
        char want[8];
        snprintf(want, sizeof want, "<0x%02X>", (unsigned)byte);
        TRY(check_piece(r, BPE_FIRST_BYTE + byte, want));
    }
    if (bpe_find(r->bpe, TOKENIZER_BLANK, strlen(TOKENIZER_BLANK)) < 0) {
        return error_set(r->error, STATUS_UNSUPPORTED, "the vocabulary has no piece for a blank");
    }
    return STATUS_OK;
}

/* Checks that each byte is a piece. */
static enum status check_bytes(const struct reader *r) {
    for (int byte = 0; byte < BYTES; byte++) {
        if (bpe_find(r->bpe, &(char){(char)byte}, 1) < 0) {
            return error_set(r->error, STATUS_UNSUPPORTED,
                             "byte-level BPE: the vocabulary has no token for the byte 0x%02X",
                             (unsigned)byte);
        }
    }
    return STATUS_OK;
}

/* The two pieces of a merge: ["a", "b"], or "a b" with one blank. */
static bool split_merge(const cJSON *merge, const char *parts[2], size_t lengths[2]) {
    if (cJSON_IsArray(merge) && cJSON_GetArraySize(merge) == 2) {
        parts[0] = cJSON_GetStringValue(merge->child);
        parts[1] = cJSON_GetStringValue(merge->child->next);
    } else {
        parts[0] = cJSON_GetStringValue(merge);
        const char *blank = parts[0] != NULL ? strchr(parts[0], ' ') : NULL;
        if (blank == NULL || strchr(blank + 1, ' ') != NULL) {
            return false;
        }
        parts[1] = blank + 1;
        lengths[0] = (size_t)(blank - parts[0]);
        lengths[1] = strlen(parts[1]);
        return true;
    }
    if (parts[0] == NULL || parts[1] == NULL) {
        return false;
    }
    lengths[0] = strlen(parts[0]);
    lengths[1] = strlen(parts[1]);
    return true;
}

/* Adds one merge rule. */
static enum status add_merge(struct reader *r, const cJSON *merge, size_t rank) {
    const char *parts[2];
    size_t lengths[2];
    if (!split_merge(merge, parts, lengths)) {
        return error_set(r->error, STATUS_BAD_FORMAT,
                         "merge %zu is neither \"a b\" nor [\"a\", \"b\"]", rank);
    }
    struct bpe_rule rule = {
        .left = find_piece(r, parts[0], lengths[0], r->scratch),
        .right = find_piece(r, parts[1], lengths[1], r->scratch),
        .merged = -1,
        .rank = (uint32_t)rank,
    };
    if (lengths[0] + lengths[1] <= r->longest) {
        char *joined = r->scratch + r->longest;
        memcpy(joined, parts[0], lengths[0]);
        memcpy(joined + lengths[0], parts[1], lengths[1]);
        rule.merged = find_piece(r, joined, lengths[0] + lengths[1], r->scratch);
    }
    if (rule.left < 0 || rule.right < 0 || rule.merged < 0) {
        return error_set(r->error, STATUS_BAD_FORMAT,
                         "merge %zu, \"%.*s\" and \"%.*s\": the vocabulary lacks %s", rank,
                         json_shown(parts[0]), parts[0], json_shown(parts[1]), parts[1],
                         rule.left < 0    ? "the first"
                         : rule.right < 0 ? "the second"
                                          : "both as one piece");
    }
    bpe_rules_add(r->bpe, &rule);
    return STATUS_OK;
}

static enum status add_merges(struct reader *r) {
    size_t count = (size_t)cJSON_GetArraySize(r->merges);
    if (count >= BPE_MOST_RULES) {
        return error_set(r->error, STATUS_TOO_LONG, "there are %zu merges, at most %d are allowed",
                         count, BPE_MOST_RULES - 1);
    }
    if (bpe_rules_create(r->bpe, count) != STATUS_OK) {
        return error_set(r->error, STATUS_OUT_OF_MEMORY, "no memory for %zu merges", count);
    }
    size_t rank = 0;
    const cJSON *merge;
    cJSON_ArrayForEach(merge, r->merges) {
        TRY(add_merge(r, merge, rank++));
    }
    return STATUS_OK;
}

/* Makes the spelling for decoding, with blanks; it follows the other spelling in `text`. */
static enum status make_shown_pieces(struct reader *r) {
    struct bpe *bpe = r->bpe;
    struct bpe_piece *shown = calloc(bpe->count, sizeof *shown);
    if (shown == NULL) {
        return error_set(r->error, STATUS_OUT_OF_MEMORY, "no memory for a tokenizer of %zu tokens",
                         bpe->count);
    }
    bpe->shown = shown;
    for (size_t id = 0; id < bpe->count; id++) {
        char *out = r->free_text;
        shown[id].text = out;
        for (const char *in = bpe->pieces[id].text; *in != '\0'; out++) {
            bool blank = strncmp(in, TOKENIZER_BLANK, strlen(TOKENIZER_BLANK)) == 0;
            *out = blank ? ' ' : *in;
            in += blank ? strlen(TOKENIZER_BLANK) : 1;
        }
        shown[id].length = (uint32_t)(out - r->free_text);
        *out = '\0';
        r->free_text = out + 1;
    }
    return STATUS_OK;
}

/* The model may have more tokens than a byte-level vocabulary: it pads its table. */
static enum status check_count(const struct reader *r, size_t count, size_t expected) {
    bool padded = r->byte_level && count < expected;
    return bpe_check_count(count, padded ? 0 : expected, r->error);
}

/* What the settings do not say is in the vocabulary. */
static enum status read_tokens(struct reader *r, size_t expected_tokens) {
    size_t count, text_bytes;
    TRY(measure(r, &count, &text_bytes));
    TRY(check_count(r, count, expected_tokens));
    /* Spellings for encoding, of added tokens, and for decoding. */
    TRY(bpe_create(&r->bpe, count, 3 * text_bytes, r->error));
    r->free_text = r->bpe->text;
    r->scratch = malloc(2 * r->longest + 1);
    if (r->scratch == NULL) {
        return error_set(r->error, STATUS_OUT_OF_MEMORY, "no memory for a piece");
    }
    TRY(add_vocabulary(r));
    TRY(add_added_tokens(r));
    TRY(r->byte_level ? check_bytes(r) : check_layout(r));
    TRY(add_merges(r));
    return r->byte_level ? STATUS_OK : make_shown_pieces(r);
}

static enum status read_root(struct reader *r, const cJSON *root, size_t expected_tokens) {
    struct tokenizer_settings settings;
    TRY(tokenizer_settings_read(&settings, root, r->error));
    TRY(find_lists(r, root));
    r->byte_level = settings.byte_level;
    TRY(read_tokens(r, expected_tokens));
    struct bpe *bpe = r->bpe;
    bpe->blank = TOKENIZER_BLANK;
    bpe->prefix = settings.prefix;
    bpe->prefix_first = settings.prefix_first;
    bpe->split_words = settings.split_words;
    bpe->compose = settings.compose;
    bpe->prefix_space = settings.prefix_space;
    bpe->ignore_merges = settings.ignore_merges;
    if (!settings.byte_level) {
        return STATUS_OK;
    }
    TRY(tokenizer_template_read(&bpe->bos, &bpe->eos, root, bpe->count, r->error));
    return pretokenizer_create(&bpe->pretokenizer, json_member(root, "pre_tokenizer"), r->error);
}

enum status tokenizer_json_parse(struct bpe **bpe, const char *text, size_t size,
                                 size_t expected_tokens, struct error *error) {
    *bpe = NULL;
    cJSON *root;
    TRY(json_object_parse(&root, text, size, error));
    struct reader reader = {.error = error};
    enum status status = read_root(&reader, root, expected_tokens);
    cJSON_Delete(root);
    free(reader.scratch);
    if (status != STATUS_OK) {
        bpe_free(reader.bpe);
        return status;
    }
    *bpe = reader.bpe;
    return STATUS_OK;
}
