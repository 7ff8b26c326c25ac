/**
 * @file text_dataset.h
 * @brief Reads texts with labels, for training and evaluating a classifier, and texts without
 *        labels, for training a language model.
 *
 * - imdb: Large Movie Review Dataset (Maas et al., ACL 2011): ROOT/SPLIT/neg/NAME.txt and
 *   ROOT/SPLIT/pos/NAME.txt, in a folder (ROOT or ROOT/aclImdb) or in a .tar or .tar.xz, which is
 *   read without unpacking it first. Labels 0 neg, 1 pos. Splits train and test, and unsup, the
 *   reviews without labels in ROOT/train/unsup. Order: by file name, or as in the archive, with neg
 *   and pos alternating, so that the first N texts have both labels. The files' "<br />" ("<br/>",
 *   "<br>", in any case) become line breaks.
 * - agnews: AG News (Zhang et al., NIPS 2015): a CSV, each row class 1 to 4, title, description,
 *   all quoted; or a folder with SPLIT.csv or ag_news_SPLIT.csv. Labels 0 World, 1 Sports,
 *   2 Business, 3 Sci/Tech. A text is the title, a blank and the description. The file's
 *   backslashes become line breaks. A first row that begins with "Class Index" is a heading.
 * - text: a file without labels. Its texts are paragraphs, or lines if no blank line separates
 *   texts.
 * - sample: datasets/reviews_sample.tsv, or a file like it: one text a line, after "neg" or "pos"
 *   and a tab. Labels 0 neg, 1 pos. Both splits are the whole file.
 * - file: the user's own texts, with labels of any names (text_labels.h), in one of three formats.
 *   csv: RFC 4180, with a header line; tsv: fields between tabs, without quotes, with a header
 * line; jsonl: an object a line, whose labels are strings, whole numbers, true or false. Other
 * columns and keys are ignored, and so are empty lines. Both splits are the whole file.
 *
 * Texts are checked to be valid UTF-8 and not empty; a text is at most 16 MiB.
 */
#ifndef WARPBOOK_COMMON_TEXTS_TEXT_DATASET_H_
#define WARPBOOK_COMMON_TEXTS_TEXT_DATASET_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/status.h"
#include "common/texts/text_labels.h"

enum text_dataset_kind {
    TEXT_DATASET_IMDB,
    TEXT_DATASET_AGNEWS,
    TEXT_DATASET_TEXT,
    TEXT_DATASET_SAMPLE,
    TEXT_DATASET_FILE
};

/** The split of imdb that has no labels. */
#define TEXT_DATASET_UNLABELLED "unsup"

struct text_sample {
    char *text;    /**< NUL-terminated */
    size_t length; /**< bytes */
    int32_t label; /**< in [0, labels); -1 without a label */
};

struct text_dataset {
    const char *name; /**< "imdb" */
    struct text_sample *samples;
    size_t count;
    const char *const *label_names; /**< (labels); of file: those of the options' labels */
    size_t labels;                  /**< 0: the texts have none */
};

/** Format and columns of the kind file. */
struct text_columns {
    const char *format; /**< "tsv", "csv" or "jsonl"; NULL: by the ending of the file's name */
    const char *text;   /**< name of the texts' column; NULL: "text" */
    const char *label;  /**< name of the labels' column; NULL: "label" */
};

struct text_dataset_options {
    const char *split; /**< "test", "train" or "unsup"; ignored if the path is one CSV file */
    size_t skip;       /**< number of texts to skip at the beginning */
    size_t limit;      /**< most texts; 0: all */
    struct text_columns columns; /**< of file */
    /** Of file: empty, to collect the labels, or closed; must outlive the data set. NULL: labels
        are not read. */
    struct text_labels *labels;
};

/** @return STATUS_OK, or STATUS_INVALID_ARGUMENT with the known names. */
MUST_CHECK enum status text_dataset_kind_parse(const char *name, enum text_dataset_kind *kind,
                                               struct error *error);

/**
 * @brief Chooses the kind of a command line's data set.
 * @param name    of the kind; NULL: by the format or by the ending of the path: .tsv, .csv and
 *                .jsonl are file, .txt is text
 * @param columns as the command line has them: only file may have any
 * @return STATUS_OK, or STATUS_INVALID_ARGUMENT with a message that names the flag
 */
MUST_CHECK enum status text_dataset_choose(enum text_dataset_kind *kind, const char *name,
                                           const char *path, const struct text_columns *columns,
                                           struct error *error);

/** @return the name of a kind: "imdb". */
const char *text_dataset_name(enum text_dataset_kind kind);

/** @return number of labels of a kind; 0 if it has none, or (file) if they are the user's. */
size_t text_dataset_labels(enum text_dataset_kind kind);

/** @return whether the texts of a kind have labels. */
bool text_dataset_has_labels(enum text_dataset_kind kind);

/**
 * @brief Reads texts and labels; uses memory only for the texts that are returned. On a terminal it
 *        shows its progress after two seconds.
 *
 * The message of a failure names the file, and the entry or the line in it.
 *
 * @return STATUS_OK; STATUS_NOT_FOUND, STATUS_IO; STATUS_INVALID_ARGUMENT (split); STATUS_BAD_UTF8;
 *         STATUS_TOO_LONG; STATUS_TRUNCATED; STATUS_UNSUPPORTED; STATUS_OUT_OF_MEMORY;
 *         STATUS_BAD_FORMAT, also if there is no text, or if all texts were asked for and a label
 *         (not of file) has none; STATUS_MISMATCH (a label that is not in the closed set)
 */
MUST_CHECK enum status text_dataset_open(struct text_dataset *dataset, enum text_dataset_kind kind,
                                         const char *path,
                                         const struct text_dataset_options *options,
                                         struct error *error);

/** Frees; a zero-initialised one is allowed. */
void text_dataset_close(struct text_dataset *dataset);

#endif
