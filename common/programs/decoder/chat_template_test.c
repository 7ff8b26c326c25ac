#include "common/programs/decoder/chat_template.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/base/file.h"
#include "common/testing/testing.h"
#include "common/tokenizers/bpe/tokenizer.h"
#include "common/tokenizers/bpe/tokenizer_testing.h"

/* Joins the parts of a turn; marked ones are in braces. */
static const char *join(const char *name, const char *system, const char *user, bool first,
                        bool cut) {
    static char text[1024];
    struct bpe_part parts[CHAT_PARTS];
    size_t count = chat_template_turn(chat_template_find(name), system, user, first, cut, parts),
           used = 0;
    EXPECT_TRUE(count <= CHAT_PARTS);
    text[0] = '\0';
    for (size_t i = 0; i < count; i++) {
        used +=
            (size_t)snprintf(text + used, sizeof text - used, parts[i].marked ? "{%.*s}" : "%.*s",
                             (int)parts[i].length, parts[i].text);
    }
    return text;
}

C_TEST(chat_template, turns) {
    EXPECT_STR_EQ("{[INST] <<SYS>>\n}be{\n<</SYS>>\n\n}hi{ [/INST]}",
                  join("llama2", "be", "hi", true, false));
    EXPECT_STR_EQ("{[INST] }hi{ [/INST]}", join("llama2", "", "hi", true, false));
    EXPECT_STR_EQ("{[INST] }hi{ [/INST]}", join("llama2", "be", "hi", false, true));
    EXPECT_STR_EQ("{<|start_header_id|>user<|end_header_id|>\n\n}hi{<|eot_id|><|start_header_id|>"
                  "assistant<|end_header_id|>\n\n}",
                  join("llama3", NULL, "hi", true, false));
    EXPECT_STR_EQ("{<|im_start|>system\n}be{<|im_end|>\n<|im_start|>user\n}hi{<|im_end|>\n"
                  "<|im_start|>assistant\n}",
                  join("chatml", "be", "hi", true, false));
    EXPECT_STR_EQ("{\n}{<|im_start|>user\n}hi{<|im_end|>\n<|im_start|>assistant\n}",
                  join("chatml", "be", "hi", false, false));
    EXPECT_STR_EQ("{<|im_end|>}{\n}{<|im_start|>user\n}hi{<|im_end|>\n<|im_start|>assistant\n}",
                  join("chatml", "be", "hi", false, true));
    EXPECT_STR_EQ("{[INST] }be{\n\n}hi{ [/INST]}", join("mistral", "be", "hi", true, false));
    EXPECT_STR_EQ("{<|system|>\n}be{</s>\n<|user|>\n}hi{</s>\n<|assistant|>\n}",
                  join("zephyr", "be", "hi", true, false));
    EXPECT_TRUE(chat_template_find("alpaca") == NULL);
}

static struct bpe *tokenizer_with(const char *added) {
    char *json =
        tokenizer_testing_byte_level(TOKENIZER_TESTING_BYTE_LEVEL, "\"ab\":256", "", added);
    struct bpe *bpe = NULL;
    EXPECT_TRUE(json != NULL);
    EXPECT_OK(tokenizer_json_parse(&bpe, json, strlen(json), 0, NULL));
    free(json);
    return bpe;
}

static void expect_recognised(const char *want, const char *folder, const struct bpe *bpe) {
    const struct chat_template *found;
    struct error error = {0};
    enum status status = chat_template_recognise(&found, folder, bpe, &error);
    EXPECT_STR_EQ(want, status == STATUS_OK ? found->name : error.message);
}

C_TEST(chat_template, added_tokens_tell) {
#define FIRST "{\"id\":257,\"content\":\"xx\"},{\"id\":258,\"content\":\"yy\"},"
    static const char *const cases[][2] = {
        {"{\"id\":259,\"content\":\"</s>\"}", "llama2"},
        {"{\"id\":259,\"content\":\"<|im_end|>\"}", "chatml"},
        {"{\"id\":259,\"content\":\"<|eot_id|>\"}", "llama3"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char added[256];
        snprintf(added, sizeof added, FIRST "%s", cases[i][0]);
        struct bpe *bpe = tokenizer_with(added);
        ASSERT_TRUE(bpe != NULL);
        expect_recognised(cases[i][1], NULL, bpe);
        bpe_free(bpe);
    }
}

static void write_text(const char *folder, const char *name, const char *text) {
    char path[8192];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    EXPECT_OK(file_write(path, text, strlen(text), NULL));
}

#define CONFIG "tokenizer_config.json"

C_TEST(chat_template, files_tell) {
    static const char *const cases[][2] = {
        {"{{ bos_token }}<|start_header_id|>{{ role }}<|end_header_id|>...<|eot_id|>", "llama3"},
        {"<|im_start|>{{ m.role }}<|im_end|>", "chatml"},
        {"[INST] <<SYS>> {{ content }} [/INST]", "llama2"},
        {"{{ bos_token }}[INST] {{ content }} [/INST]", "mistral"},
        {"<|user|>{{ eos_token }}<|assistant|>", "zephyr"},
    };
    char folder[4096], path[8192];
    struct bpe *bpe = tokenizer_with(FIRST "{\"id\":259,\"content\":\"<|im_end|>\"}");
    test_temporary_path("templates", folder, sizeof folder);
    EXPECT_INT_EQ(0, mkdir(folder, 0755));
    ASSERT_TRUE(bpe != NULL);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char json[512];
        snprintf(json, sizeof json, "{\"chat_template\":\"%s\"}", cases[i][0]);
        write_text(folder, CONFIG, json);
        expect_recognised(cases[i][1], folder, bpe);
        snprintf(json, sizeof json,
                 "{\"chat_template\":[{\"name\":\"tool\",\"template\":\"?\"},"
                 "{\"name\":\"default\",\"template\":\"%s\"}]}",
                 cases[i][0]);
        write_text(folder, CONFIG, json);
        expect_recognised(cases[i][1], folder, bpe);
    }
    write_text(folder, CONFIG, "{\"model_max_length\":5}");
    expect_recognised("chatml", folder, bpe);
    snprintf(path, sizeof path, "%s/" CONFIG, folder);
    write_text(folder, CONFIG, "{\"chat_template\":\"<|user|> <|assistant|> <|end|>\"}");
    const struct chat_template *found;
    EXPECT_ERROR_CONTAINS(STATUS_UNSUPPORTED,
                          CONFIG ": the chat template is none that is known; choose one with "
                                 "--chat-template: llama2, llama3, chatml, mistral or zephyr",
                          chat_template_recognise(&found, folder, bpe, &error));
    write_text(folder, "chat_template.jinja", cases[3][0]); /* comes first */
    expect_recognised("mistral", folder, bpe);
    bpe_free(bpe);
}
