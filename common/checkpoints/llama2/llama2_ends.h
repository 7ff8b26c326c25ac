/**
 * @file llama2_ends.h
 * @brief The tokens with which a model ends a text or a turn, as a Hugging Face folder names them.
 */
#ifndef WARPBOOK_COMMON_CHECKPOINTS_LLAMA2_LLAMA2_ENDS_H_
#define WARPBOOK_COMMON_CHECKPOINTS_LLAMA2_LLAMA2_ENDS_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/status.h"

enum { LLAMA2_MOST_ENDS = 32 };

struct llama2_ends {
    int32_t ids[LLAMA2_MOST_ENDS];
    size_t count;
};

/**
 * @brief Reads "eos_token_id", a number or a list, from a folder's generation_config.json, or, if
 *        that is absent or says nothing, from its config.json.
 * @param ends receives the ids; none if neither file names one
 * @return STATUS_OK; STATUS_BAD_FORMAT for another value, with the path; STATUS_TOO_LONG for more
 *         than LLAMA2_MOST_ENDS; the status of json_object_parse() or file_read()
 */
MUST_CHECK enum status llama2_ends_open(struct llama2_ends *ends, const char *folder,
                                        struct error *error);

/** As llama2_ends_open() on the text of one file. */
MUST_CHECK enum status llama2_ends_parse(struct llama2_ends *ends, const char *json, size_t size,
                                         struct error *error);

/** Adds a token unless it is -1, is there already, or there is no room. */
void llama2_ends_add(struct llama2_ends *ends, int32_t token);

bool llama2_ends_has(const struct llama2_ends *ends, int32_t token);

#endif
