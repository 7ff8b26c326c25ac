/**
 * @file chat_template.h
 * @brief How chat checkpoints want a conversation to be written: the common templates, by name.
 *
 * Files give a template as a program (Jinja), which is not run. It is recognised by the markers in
 * it, or else by the tokenizer's added tokens.
 */
#ifndef WARPBOOK_COMMON_PROGRAMS_DECODER_CHAT_TEMPLATE_H_
#define WARPBOOK_COMMON_PROGRAMS_DECODER_CHAT_TEMPLATE_H_

#include <stdbool.h>
#include <stddef.h>

#include "common/base/status.h"
#include "common/tokenizers/bpe/bpe.h"

/** The texts around what is said. Markers that are added tokens are encoded as such. */
struct chat_template {
    const char *name;      /**< "llama3" */
    bool begins_each_turn; /**< BOS comes before each turn, not only before the first */
    const char *system;    /**< before the system prompt */
    const char *behind;    /**< between the system prompt and the first line of the user */
    const char *user;      /**< before a line of the user, if there is no system prompt */
    const char *assistant; /**< behind it, before the answer */
    const char *next;      /**< behind an answer and its end, before the next turn */
    const char *end;       /**< marker that ends an answer; NULL: EOS, which a cut answer lacks */
};

enum { CHAT_PARTS = 6 };

/** @return the names, for messages: "llama2, llama3, ...". */
const char *chat_template_names(void);

/** @return the template of that name, or NULL. */
const struct chat_template *chat_template_find(const char *name);

/**
 * @brief Recognises a folder's template: chat_template.jinja, or "chat_template" in
 *        tokenizer_config.json, or the added tokens; without any of these llama2.
 * @param folder    NULL: a file of llama2.c
 * @param tokenizer the checkpoint's
 * @return STATUS_OK; STATUS_UNSUPPORTED for a template without known markers; the status of
 *         file_read() or json_object_parse()
 */
MUST_CHECK enum status chat_template_recognise(const struct chat_template **found,
                                               const char *folder, const struct bpe *tokenizer,
                                               struct error *error);

/**
 * @brief Lists the parts of a turn, from the end of the answer before it to the next answer.
 * @param system NULL or "": none
 * @param first  it is the first turn
 * @param cut    the answer before it has not ended by itself
 * @param parts  receives the parts, which point to the arguments and the template
 * @return their number, at most CHAT_PARTS
 */
size_t chat_template_turn(const struct chat_template *template, const char *system,
                          const char *user, bool first, bool cut,
                          struct bpe_part parts[CHAT_PARTS]);

#endif
