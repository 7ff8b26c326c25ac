/**
 * @file answering.h
 * @brief What classify prints and writes: answers in batches, as lines or JSON, and logits.
 */
#ifndef WARPBOOK_COMMON_PROGRAMS_CLASSIFIER_ANSWERING_H_
#define WARPBOOK_COMMON_PROGRAMS_CLASSIFIER_ANSWERING_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "common/base/status.h"
#include "common/programs/classifier/classifier_session.h"

/** A text to answer; the pointers are the caller's. */
struct answering_text {
    const char *bytes; /**< (length), valid UTF-8 */
    size_t length;
    const struct classifier_text *encoded;
};

/** The file of --logits: ids and logits of each text, the logits with all digits. */
struct logits_file {
    FILE *stream; /**< into memory; NULL: no file is wanted */
    char *text;
    size_t size;
    bool begun; /**< there is a text */
};

/** What is needed to answer texts. */
struct answering {
    bool json;               /**< print a JSON object a text */
    const char *logits_path; /**< file of --logits, or NULL */
    const struct classifier_session *session;
    struct classifier classifier;
    struct answering_text *texts;         /**< (batch): the next ones, for answering_run() */
    float *logits;                        /**< (batch, labels) */
    double *probabilities;                /**< (labels) */
    const struct classifier_text **batch; /**< (batch) */
    struct logits_file file;
};

/**
 * @brief Makes the model resident, and the buffers of a batch.
 * @param answering json and logits_path are set, the rest is zero; answering_end() frees it, also
 *                  after a failure
 * @param session   must outlive it
 * @param batch     most texts at a time
 */
MUST_CHECK enum status answering_create(struct answering *answering,
                                        const struct classifier_session *session, size_t batch,
                                        struct error *error);

/**
 * @brief Answers texts[0] .. texts[count - 1], and flushes standard output.
 * @return STATUS_OK; the failures of classifier_run() and program_output_end();
 *         STATUS_OUT_OF_MEMORY
 */
MUST_CHECK enum status answering_run(struct answering *answering, size_t count,
                                     struct error *error);

/**
 * @brief Writes the file of the logits if @p status, the status so far, is STATUS_OK, and frees
 *        all; a zero-initialised one is allowed.
 * @return @p status, or the failure of file_write()
 */
MUST_CHECK enum status answering_end(struct answering *answering, enum status status,
                                     struct error *error);

#endif
