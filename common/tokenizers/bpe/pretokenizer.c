#include "common/tokenizers/bpe/pretokenizer.h"

#include <cjson/cJSON.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/json_object.h"

static const char *type_of(const cJSON *part) {
    const char *type = cJSON_GetStringValue(json_member(part, "type"));
    return type != NULL ? type : "";
}

static bool is_type(const cJSON *part, const char *type) {
    return strcmp(type_of(part), type) == 0;
}

bool pretokenizer_is_byte_level(const cJSON *part) {
    bool found = is_type(part, "ByteLevel");
    const cJSON *each;
    cJSON_ArrayForEach(each, json_member(part, "pretokenizers")) {
        found = found || (is_type(part, "Sequence") && is_type(each, "ByteLevel"));
    }
    return found;
}

bool pretokenizer_adds_blank(const cJSON *part) {
    return is_type(part, "ByteLevel") && cJSON_IsTrue(json_member(part, "add_prefix_space"));
}

#ifdef WARPBOOK_NO_PCRE2

enum status pretokenizer_create(struct pretokenizer **pretokenizer, const cJSON *part,
                                struct error *error) {
    (void)part;
    *pretokenizer = NULL;
    return error_set(error, STATUS_UNSUPPORTED,
                     "byte-level BPE needs PCRE2, which was not installed when this was built: run "
                     "./setup.sh and build again");
}

void pretokenizer_free(struct pretokenizer *p) {
    (void)p;
}

enum status pretokenizer_split(const struct pretokenizer *p, const char *text, size_t length,
                               pretokenizer_visitor *visit, void *context, struct error *error) {
    (void)p;
    (void)error;
    return visit(context, text, length);
}

#else

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

/* Real files have one or two expressions of less than 300 bytes. One match of them takes some ten
   steps, unless white space goes on for long. */
enum {
    MOST_STEPS = 8,
    MOST_PATTERN = 8192,
    MOST_MATCH_STEPS = 2000000,
    MOST_DEPTH = 200000,
    MOST_HEAP_KIB = 65536,
    MESSAGE_BYTES = 160
};

struct pretokenizer {
    size_t count;
    pcre2_code *steps[MOST_STEPS];
    pcre2_match_context *limits;
};

/* GPT-2's expression, which ByteLevel has without a Split before it (Radford et al. 2019). */
static const char gpt2[] =
    "'s|'t|'re|'ve|'m|'ll|'d| ?\\p{L}+| ?\\p{N}+| ?[^\\s\\p{L}\\p{N}]+|\\s+(?!\\S)|\\s+";

/* Unicode's White_Space. PCRE2's \s has U+180E, too, and older versions lack the property's name.
 */
static const char white_space[] = "\\x{9}-\\x{d}\\x{20}\\x{85}\\x{a0}\\x{1680}\\x{2000}-\\x{200a}"
                                  "\\x{2028}\\x{2029}\\x{202f}\\x{205f}\\x{3000}";

/* ---- Expressions ---- */

/* Whether a bracket at `in` opens or closes a class, given whether one is open. */
static bool class_after(const char *in, bool open) {
    return open ? *in != ']' : *in == '[';
}

/* Writes a copy of `pattern` with \s and \S spelled out; a \S within a class stays. The expression
   is at most MOST_PATTERN long. */
static void spell_out(char *out, const char *pattern) {
    bool open = false; /* within a class */
    for (const char *in = pattern; *in != '\0'; in++) {
        if (*in != '\\') {
            open = class_after(in, open);
            *out++ = *in;
            continue;
        }
        in++;
        if (*in == 's' || (*in == 'S' && !open)) {
            const char *begin = open ? "" : *in == 's' ? "[" : "[^";
            out += sprintf(out, "%s%s%s", begin, white_space, open ? "" : "]");
        } else {
            *out++ = '\\';
            *out++ = *in;
            in -= *in == '\0'; /* a backslash at the end: PCRE2 says so */
        }
    }
    *out = '\0';
}

static enum status compile(pcre2_code **code, const char *pattern, struct error *error) {
    if (strlen(pattern) > MOST_PATTERN) {
        return error_set(error, STATUS_TOO_LONG,
                         "pre_tokenizer: a regular expression has %zu bytes, at most %d are "
                         "allowed",
                         strlen(pattern), MOST_PATTERN);
    }
    char *spelled = malloc(strlen(pattern) * (sizeof white_space + 3) + 1);
    if (spelled == NULL) {
        return error_set(error, STATUS_OUT_OF_MEMORY, "out of memory for a regular expression");
    }
    spell_out(spelled, pattern);
    int number;
    PCRE2_SIZE offset;
    const uint32_t options = PCRE2_UTF | PCRE2_UCP | PCRE2_NEVER_BACKSLASH_C;
    *code =
        pcre2_compile((PCRE2_SPTR)spelled, PCRE2_ZERO_TERMINATED, options, &number, &offset, NULL);
    free(spelled);
    if (*code != NULL) {
        return STATUS_OK;
    }
    char reason[MESSAGE_BYTES];
    pcre2_get_error_message(number, (PCRE2_UCHAR *)reason, sizeof reason);
    return error_set(error, STATUS_UNSUPPORTED,
                     "pre_tokenizer: the regular expression \"%.*s\" is not valid: %s",
                     json_shown(pattern), pattern, reason);
}

static enum status add_step(struct pretokenizer *p, const char *pattern, struct error *error) {
    if (p->count == MOST_STEPS) {
        return error_set(error, STATUS_UNSUPPORTED, "pre_tokenizer: has more than %d parts",
                         MOST_STEPS);
    }
    TRY(compile(&p->steps[p->count], pattern, error));
    p->count++;
    return STATUS_OK;
}

/* ---- Parts ---- */

static enum status refuse(const cJSON *part, const char *why, struct error *error) {
    return error_set(error, STATUS_UNSUPPORTED,
                     "pre_tokenizer of type \"%.*s\"%s is not supported beside byte-level BPE",
                     json_shown(type_of(part)), type_of(part), why);
}

/* Split: each match is a piece, and so is what lies between two. */
static enum status add_split(struct pretokenizer *p, const cJSON *part, struct error *error) {
    const cJSON *pattern = json_member(part, "pattern");
    const char *behavior = cJSON_GetStringValue(json_member(part, "behavior"));
    const char *expression = cJSON_GetStringValue(json_member(pattern, "Regex"));
    if (behavior == NULL || strcmp(behavior, "Isolated") != 0 ||
        cJSON_IsTrue(json_member(part, "invert"))) {
        return refuse(part, " that is not \"Isolated\", or inverted,", error);
    }
    if (expression == NULL) {
        return refuse(part, " without a \"Regex\"", error);
    }
    return add_step(p, expression, error);
}

/* @param alone not behind other parts, whose pieces would each get a blank */
static enum status add_byte_level(struct pretokenizer *p, const cJSON *part, bool alone,
                                  struct error *error) {
    const cJSON *prefix = json_member(part, "add_prefix_space");
    if (!cJSON_IsFalse(prefix) && !(alone && cJSON_IsTrue(prefix))) {
        return refuse(part,
                      alone ? " without \"add_prefix_space\""
                            : " behind others, with \"add_prefix_space\",",
                      error);
    }
    return cJSON_IsFalse(json_member(part, "use_regex")) ? STATUS_OK : add_step(p, gpt2, error);
}

static enum status add_part(struct pretokenizer *p, const cJSON *part, bool last, bool alone,
                            struct error *error) {
    if (is_type(part, "ByteLevel") != last) {
        return refuse(part, last ? " at the end" : " before others", error);
    }
    if (last) {
        return add_byte_level(p, part, alone, error);
    }
    if (is_type(part, "Digits")) {
        bool each = cJSON_IsTrue(json_member(part, "individual_digits"));
        return add_step(p, each ? "\\p{N}" : "\\p{N}+", error);
    }
    return is_type(part, "Split") ? add_split(p, part, error) : refuse(part, "", error);
}

static enum status add_parts(struct pretokenizer *p, const cJSON *part, struct error *error) {
    if (!is_type(part, "Sequence")) {
        return add_part(p, part, true, true, error);
    }
    const cJSON *each;
    cJSON_ArrayForEach(each, json_member(part, "pretokenizers")) {
        TRY(add_part(p, each, each->next == NULL, false, error));
    }
    return STATUS_OK;
}

enum status pretokenizer_create(struct pretokenizer **pretokenizer, const cJSON *part,
                                struct error *error) {
    *pretokenizer = NULL;
    struct pretokenizer *p = calloc(1, sizeof *p);
    pcre2_match_context *limits = pcre2_match_context_create(NULL);
    if (p == NULL || limits == NULL) {
        free(p);
        pcre2_match_context_free(limits);
        return error_set(error, STATUS_OUT_OF_MEMORY, "out of memory for a pre_tokenizer");
    }
    pcre2_set_match_limit(limits, MOST_MATCH_STEPS);
    pcre2_set_depth_limit(limits, MOST_DEPTH);
    pcre2_set_heap_limit(limits, MOST_HEAP_KIB);
    p->limits = limits;
    enum status status = add_parts(p, part, error);
    if (status != STATUS_OK) {
        pretokenizer_free(p);
        return status;
    }
    *pretokenizer = p;
    return STATUS_OK;
}

void pretokenizer_free(struct pretokenizer *p) {
    if (p == NULL) {
        return;
    }
    for (size_t i = 0; i < p->count; i++) {
        pcre2_code_free(p->steps[i]);
    }
    pcre2_match_context_free(p->limits);
    free(p);
}

/* ---- Splitting ---- */

struct splitting {
    const struct pretokenizer *p;
    pcre2_match_data *matches[MOST_STEPS];
    pretokenizer_visitor *visit;
    void *context;
    struct error *error;
};

static enum status explain(const struct splitting *s, int number) {
    char reason[MESSAGE_BYTES];
    if (number == PCRE2_ERROR_NOMEMORY) {
        return error_set(s->error, STATUS_OUT_OF_MEMORY, "out of memory to split the text");
    }
    pcre2_get_error_message(number, (PCRE2_UCHAR *)reason, sizeof reason);
    return error_set(s->error, STATUS_UNSUPPORTED,
                     "the tokenizer's regular expression cannot split the text: %s", reason);
}

/* Finds the first match of step `step` from `from` on; none: *begin is the length. */
static enum status find(const struct splitting *s, size_t step, const char *text, size_t length,
                        size_t from, size_t *begin, size_t *end) {
    const uint32_t options = PCRE2_NO_UTF_CHECK | PCRE2_NOTEMPTY;
    int found = pcre2_match(s->p->steps[step], (PCRE2_SPTR)text, length, from, options,
                            s->matches[step], s->p->limits);
    *begin = *end = length;
    if (found == PCRE2_ERROR_NOMATCH) {
        return STATUS_OK;
    }
    if (found < 0) {
        return explain(s, found);
    }
    const PCRE2_SIZE *range = pcre2_get_ovector_pointer(s->matches[step]);
    if (range[0] < from || range[1] <= range[0]) { /* \K may do so */
        return error_set(s->error, STATUS_UNSUPPORTED,
                         "the tokenizer's regular expression matches backwards");
    }
    *begin = range[0];
    *end = range[1];
    return STATUS_OK;
}

/* NOLINTNEXTLINE(misc-no-recursion): as deep as there are steps */
static enum status split(const struct splitting *s, size_t step, const char *text, size_t length) {
    if (length == 0 || step == s->p->count) {
        return length == 0 ? STATUS_OK : s->visit(s->context, text, length);
    }
    for (size_t done = 0; done < length;) {
        size_t begin, end;
        TRY(find(s, step, text, length, done, &begin, &end));
        TRY(split(s, step + 1, text + done, begin - done));
        TRY(split(s, step + 1, text + begin, end - begin));
        done = end;
    }
    return STATUS_OK;
}

enum status pretokenizer_split(const struct pretokenizer *p, const char *text, size_t length,
                               pretokenizer_visitor *visit, void *context, struct error *error) {
    struct splitting s = {.p = p, .visit = visit, .context = context, .error = error};
    bool complete = true;
    for (size_t i = 0; i < p->count; i++) {
        s.matches[i] = pcre2_match_data_create(1, NULL);
        complete = complete && s.matches[i] != NULL;
    }
    enum status status = complete ? split(&s, 0, text, length) : explain(&s, PCRE2_ERROR_NOMEMORY);
    for (size_t i = 0; i < p->count; i++) {
        pcre2_match_data_free(s.matches[i]);
    }
    return status;
}

#endif
