/**
 * @file train_checkpoint.h
 * @brief The folder that a run writes to, and what is in it.
 *
 * checkpoint-STEP  the last checkpoint: model.safetensors (fp32), config.json, the vocabulary,
 *                  optimizer.safetensors, training.json; a run that goes on from it ends as one
 *                  that was never stopped, bit for bit
 * best, final      models: model.safetensors in --save-dtype, config.json, the vocabulary
 *
 * Each is there whole or not at all (whole_folder.h). One program at a time writes: it holds a
 * lock.
 */
#ifndef WARPBOOK_COMMON_TRAIN_PROGRAM_TRAIN_CHECKPOINT_H_
#define WARPBOOK_COMMON_TRAIN_PROGRAM_TRAIN_CHECKPOINT_H_

#include <stdbool.h>
#include <stdint.h>

#include "common/train/data/train_data.h"
#include "common/train/program/train_config.h"

#ifdef __cplusplus
extern "C" {
#endif

struct cJSON;

/** How far a run is. */
struct train_point {
    uint64_t step;         /**< updates done */
    uint64_t epoch, batch; /**< of the next update: epochs from 0 on, its first batch in it */
    bool has_best;
    double best; /**< the best evaluation's score; larger is better */
    uint64_t best_step;
    /** Since the curve's last line, so that the next one is of all its steps: */
    uint64_t loss_steps;
    double loss_sum;  /**< losses taken from the model */
    double loss_left; /**< what the model has added up since */
};

/** The folder of a run. */
struct train_store {
    char folder[FOLDER_PATH_BYTES];
    int lock; /**< descriptor */
    bool has_checkpoint;
    uint64_t step; /**< of the checkpoint */
};

/** What is stored. */
struct train_subject {
    struct train_model *model;
    const struct train_config *config;
    const char *const *label_names; /**< (labels); NULL: there are none */
    const struct train_vocabulary *vocabulary;
    enum train_type type;         /**< of the engine's weights */
    enum nn_dtype save_dtype;     /**< of best and final */
    const struct cJSON *settings; /**< see train_settings.h */
};

/**
 * @brief Makes the folder where it is missing, locks it, clears up what a program that was stopped
 *        has left, and looks for the checkpoint.
 * @return STATUS_OK; STATUS_IO with a line, also when another program is writing
 */
MUST_CHECK enum status train_store_open(struct train_store *store, const char *folder,
                                        struct error *error);

/** Unlocks. */
void train_store_close(struct train_store *store);

/** @return the path of a checkpoint. */
const char *train_store_path(const struct train_store *store, uint64_t step,
                             char path[FOLDER_PATH_BYTES]);

/** Writes a checkpoint, then removes the one before. A failure leaves the one before. */
MUST_CHECK enum status train_checkpoint_write(struct train_store *store,
                                              const struct train_subject *subject,
                                              const struct train_point *point, struct error *error);

/**
 * @brief Sets model and optimiser to what the checkpoint has.
 * @return STATUS_OK; STATUS_MISMATCH when settings are others; STATUS_BAD_FORMAT and more for files
 *         that are damaged, with their path
 */
MUST_CHECK enum status train_checkpoint_read(const struct train_store *store,
                                             const struct train_subject *subject,
                                             struct train_point *point, struct error *error);

/** Writes a model. @param name "best" or "final"; one that is there is replaced */
MUST_CHECK enum status train_model_save(const struct train_store *store,
                                        const struct train_subject *subject, const char *name,
                                        struct error *error);

#ifdef __cplusplus
}
#endif

#endif
