#include "common/programs/decoder/chat_template.h"

#include <cjson/cJSON.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/file.h"
#include "common/base/folder.h"
#include "common/base/json_object.h"

enum { FILE_LIMIT = 16 << 20 };

/* Facts of the published checkpoints; llama2's is also llama2.c's. */
static const struct chat_template templates[] = {
    {
        .name = "llama2",
        .begins_each_turn = true,
        .system = "[INST] <<SYS>>\n",
        .behind = "\n<</SYS>>\n\n",
        .user = "[INST] ",
        .assistant = " [/INST]",
        .next = "",
    },
    {
        .name = "llama3",
        .system = "<|start_header_id|>system<|end_header_id|>\n\n",
        .behind = "<|eot_id|><|start_header_id|>user<|end_header_id|>\n\n",
        .user = "<|start_header_id|>user<|end_header_id|>\n\n",
        .assistant = "<|eot_id|><|start_header_id|>assistant<|end_header_id|>\n\n",
        .next = "",
        .end = "<|eot_id|>",
    },
    {
        .name = "chatml",
        .system = "<|im_start|>system\n",
        .behind = "<|im_end|>\n<|im_start|>user\n",
        .user = "<|im_start|>user\n",
        .assistant = "<|im_end|>\n<|im_start|>assistant\n",
        .next = "\n",
        .end = "<|im_end|>",
    },
    {
        .name = "mistral",
        .system = "[INST] ",
        .behind = "\n\n",
        .user = "[INST] ",
        .assistant = " [/INST]",
        .next = "",
        .end = "</s>",
    },
    {
        .name = "zephyr",
        .system = "<|system|>\n",
        .behind = "</s>\n<|user|>\n",
        .user = "<|user|>\n",
        .assistant = "</s>\n<|assistant|>\n",
        .next = "\n",
        .end = "</s>",
    },
};

enum { TEMPLATES = sizeof templates / sizeof *templates };

const char *chat_template_names(void) {
    return "llama2, llama3, chatml, mistral or zephyr";
}

const struct chat_template *chat_template_find(const char *name) {
    for (size_t i = 0; i < TEMPLATES; i++) {
        if (strcmp(templates[i].name, name) == 0) {
            return &templates[i];
        }
    }
    return NULL;
}

/* ---- Recognising ---- */

/* What is in a template's program; the first that fits counts. */
static const struct {
    const char *marker, *also, *not ; /* NULL: none */
    const char *name;
} marks[] = {
    {"<|start_header_id|>", "<|eot_id|>", NULL, "llama3"},
    {"<|im_start|>", "<|im_end|>", NULL, "chatml"},
    {"<<SYS>>", "[INST]", NULL, "llama2"},
    {"[INST]", "[/INST]", NULL, "mistral"},
    {"<|user|>", "<|assistant|>", "<|end|>", "zephyr"}, /* Phi's turns end by <|end|> */
};

static const struct chat_template *find_marks(const char *text) {
    for (size_t i = 0; i < sizeof marks / sizeof *marks; i++) {
        if (strstr(text, marks[i].marker) != NULL && strstr(text, marks[i].also) != NULL &&
            (marks[i].not == NULL || strstr(text, marks[i].not ) == NULL)) {
            return chat_template_find(marks[i].name);
        }
    }
    return NULL;
}

static enum status recognise_text(const struct chat_template **found, const char *text,
                                  struct error *error) {
    *found = find_marks(text);
    return *found != NULL ? STATUS_OK
                          : error_set(error, STATUS_UNSUPPORTED,
                                      "the chat template is none that is known; choose one with "
                                      "--chat-template: %s",
                                      chat_template_names());
}

/* "chat_template" is a program, or a list of them with names, of which the default one counts. */
static const char *template_text(const cJSON *item) {
    const cJSON *each;
    const char *text = cJSON_GetStringValue(item);
    cJSON_ArrayForEach(each, item) { /* a string has no elements */
        const char *name = cJSON_GetStringValue(json_member(each, "name"));
        if (text == NULL || (name != NULL && strcmp(name, "default") == 0)) {
            text = cJSON_GetStringValue(json_member(each, "template"));
        }
    }
    return text;
}

static enum status recognise_config(const struct chat_template **found, const char *text,
                                    size_t size, struct error *error) {
    cJSON *object;
    TRY(json_object_parse(&object, text, size, error));
    const char *program = template_text(json_member(object, "chat_template"));
    enum status status = program != NULL ? recognise_text(found, program, error) : STATUS_OK;
    cJSON_Delete(object);
    return status;
}

/* Looks at a file of the folder if it is there; *found stays NULL if it says nothing. */
static enum status recognise_file(const struct chat_template **found, const char *folder,
                                  const char *name, struct error *error) {
    char path[FOLDER_PATH_BYTES], *text;
    size_t size;
    TRY(folder_join(path, folder, name, "checkpoint", error));
    if (!path_exists(path)) {
        return STATUS_OK;
    }
    TRY(file_read(path, FILE_LIMIT, &text, &size, error)); /* ends in NUL */
    bool json = strcmp(name, "tokenizer_config.json") == 0;
    enum status status =
        json ? recognise_config(found, text, size, error) : recognise_text(found, text, error);
    free(text);
    return status == STATUS_OK ? STATUS_OK : error_prefix(error, status, path);
}

static const struct chat_template *recognise_tokens(const struct bpe *tokenizer) {
    for (size_t i = 0; i < TEMPLATES; i++) {
        const char *end = templates[i].end; /* EOS may be the end of any template */
        if (end != NULL && strcmp(end, "</s>") != 0 && bpe_added(tokenizer, end) >= 0) {
            return &templates[i];
        }
    }
    return chat_template_find("llama2");
}

enum status chat_template_recognise(const struct chat_template **found, const char *folder,
                                    const struct bpe *tokenizer, struct error *error) {
    *found = NULL;
    if (folder != NULL) {
        TRY(recognise_file(found, folder, "chat_template.jinja", error));
    }
    if (folder != NULL && *found == NULL) {
        TRY(recognise_file(found, folder, "tokenizer_config.json", error));
    }
    *found = *found != NULL ? *found : recognise_tokens(tokenizer);
    return STATUS_OK;
}

/* ---- Turns ---- */

static void add(struct bpe_part *parts, size_t *count, const char *text, bool marked) {
    if (text != NULL && text[0] != '\0') {
        parts[(*count)++] = (struct bpe_part){text, strlen(text), marked};
    }
}

size_t chat_template_turn(const struct chat_template *t, const char *system, const char *user,
                          bool first, bool cut, struct bpe_part parts[CHAT_PARTS]) {
    bool has_system = first && system != NULL && system[0] != '\0';
    size_t count = 0;
    add(parts, &count, cut ? t->end : NULL, true);
    add(parts, &count, first ? NULL : t->next, true);
    add(parts, &count, has_system ? t->system : t->user, true);
    if (has_system) {
        add(parts, &count, system, false);
        add(parts, &count, t->behind, true);
    }
    add(parts, &count, user, false);
    add(parts, &count, t->assistant, true);
    return count;
}
