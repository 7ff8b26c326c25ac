/**
 * @file bert_labels.h
 * @brief What a checkpoint calls its classes: "id2label" of config.json.
 */
#ifndef WARPBOOK_COMMON_CHECKPOINTS_BERT_BERT_LABELS_H_
#define WARPBOOK_COMMON_CHECKPOINTS_BERT_BERT_LABELS_H_

#include <stddef.h>

#include "common/base/status.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { BERT_LABEL_BYTES = 64 };

/** A name, NUL-terminated; longer ones are cut between characters. */
struct bert_label {
    char name[BERT_LABEL_BYTES];
};

/**
 * @brief Names of the classes 0 to @p labels - 1.
 *
 * A class that "id2label" does not name is LABEL_N; control characters become '?'.
 *
 * @param json   text of a config.json, or NULL: no names
 * @param names  receives an array that the caller frees
 */
MUST_CHECK enum status bert_labels_parse(const char *json, size_t size, size_t labels,
                                         struct bert_label **names, struct error *error);

#ifdef __cplusplus
}
#endif

#endif
