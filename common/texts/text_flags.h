/**
 * @file text_flags.h
 * @brief Rows of a program's flag table about the user's own texts, the same in every program.
 */
#ifndef WARPBOOK_COMMON_TEXTS_TEXT_FLAGS_H_
#define WARPBOOK_COMMON_TEXTS_TEXT_FLAGS_H_

#include "common/base/flags.h"
#include "common/texts/text_dataset.h"

/** Format and column of the texts. @param columns a struct text_columns * */
#define TEXT_FLAGS_TEXT(columns)                                                              \
    {"format",                                                                                \
     0,                                                                                       \
     FLAG_STRING,                                                                             \
     &(columns)->format,                                                                      \
     "NAME",                                                                                  \
     "your own file: tsv, csv (both with a header) or jsonl; default: by the file's ending"}, \
    {                                                                                         \
        "text-column", 0, FLAG_STRING, &(columns)->text, "NAME",                              \
            "your own file: column or key of the texts; default: text"                        \
    }

/** Column of the labels. @param columns a struct text_columns * */
#define TEXT_FLAGS_LABEL(columns)                                                   \
    {                                                                               \
        "label-column", 0, FLAG_STRING, &(columns)->label, "NAME",                  \
            "your own file: column or key of the labels, any names; default: label" \
    }

#endif
