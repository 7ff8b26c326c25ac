/**
 * @file bert_labels.h
 * @brief The names of a checkpoint's classes: "id2label" in config.json.
 */
#ifndef WARPBOOK_COMMON_CHECKPOINTS_BERT_BERT_LABELS_H_
#define WARPBOOK_COMMON_CHECKPOINTS_BERT_BERT_LABELS_H_

#include <stddef.h>

#include "common/base/status.h"

enum { BERT_LABEL_BYTES = 64 };

/** A name, NUL-terminated; longer ones are cut between characters. */
struct bert_label {
    char name[BERT_LABEL_BYTES];
};

/**
 * @brief Reads the names of the classes 0 to @p labels - 1.
 *
 * A class without a name in "id2label" is called LABEL_N; control characters become '?'.
 *
 * @param json   text of a config.json, @p size bytes; NULL: no names
 * @param names  receives an array of @p labels names, which the caller frees
 * @return STATUS_OK, STATUS_OUT_OF_MEMORY, or the status of json_object_parse()
 */
MUST_CHECK enum status bert_labels_parse(const char *json, size_t size, size_t labels,
                                         struct bert_label **names, struct error *error);

#endif
