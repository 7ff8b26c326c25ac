/**
 * @file train_checkpoint.h
 * @brief The folder that a run writes, and its contents.
 *
 * checkpoint-STEP  the last checkpoint: model.safetensors (fp32), config.json, the vocabulary,
 *                  optimizer.safetensors, training.json, which has checksums of both tensor
 *                  files (those of earlier versions do not). A run resumed from it gives the same
 *                  result as an uninterrupted run, bit for bit
 * best, final      models: model.safetensors in --save-dtype, config.json, the vocabulary
 *
 * Each folder is complete or does not exist (whole_folder.h). Only one program at a time writes,
 * the one that holds the lock.
 */
#ifndef WARPBOOK_COMMON_TRAIN_PROGRAM_TRAIN_CHECKPOINT_H_
#define WARPBOOK_COMMON_TRAIN_PROGRAM_TRAIN_CHECKPOINT_H_

#include <stdbool.h>
#include <stdint.h>

#include "common/train/data/train_data.h"
#include "common/train/program/train_config.h"
#include "common/train/train_peers.h"

struct cJSON;

/** The position of a run. */
struct train_point {
    uint64_t step;         /**< updates done */
    uint64_t epoch, batch; /**< of the next update: its epoch and its first batch, from 0 */
    bool has_best;
    double best; /**< the best evaluation's score; larger is better */
    uint64_t best_step;
    bool evaluates; /**< a signal came in the evaluation after this step, which is to be repeated */
    /** Since the last line of the curve, so that the next line covers all its steps: */
    uint64_t loss_steps;
    double loss_sum;  /**< losses taken from the model */
    double loss_left; /**< loss accumulated in the model and not taken yet; of all ranks */
    size_t ranks;     /**< of a run on several GPUs; else 0 */
    double of_rank[TRAIN_MOST_RANKS]; /**< (ranks): each one's part of loss_left */
};

/** The folder of a run. */
struct train_store {
    char folder[FOLDER_PATH_BYTES];
    int lock;  /**< descriptor */
    bool made; /**< the folder was not there before */
    bool has_checkpoint;
    uint64_t step; /**< of the checkpoint */
};

/** The model and settings to store. */
struct train_subject {
    struct train_model *model;
    const struct train_config *config;
    const char *const *label_names; /**< (labels); NULL: there are none */
    const struct train_vocabulary *vocabulary;
    enum train_type type;         /**< of the engine's weights */
    enum nn_dtype save_dtype;     /**< of best and final */
    const struct cJSON *settings; /**< of train_settings() */
};

/**
 * @brief Makes the folder if it is missing, locks it, removes what an interrupted program left, and
 *        finds the checkpoint.
 * @return STATUS_OK; STATUS_IO with a message, also when another program is writing
 */
MUST_CHECK enum status train_store_open(struct train_store *store, const char *folder,
                                        struct error *error);

/** Removes a folder that train_store_open() made if nothing but an empty log.jsonl is in it. */
void train_store_discard(struct train_store *store);

/** Unlocks. */
void train_store_close(struct train_store *store);

/** @return the path of a checkpoint. */
const char *train_store_path(const struct train_store *store, uint64_t step,
                             char path[FOLDER_PATH_BYTES]);

/** Writes a checkpoint, then removes the previous one. After a failure the previous one stays. */
MUST_CHECK enum status train_checkpoint_write(struct train_store *store,
                                              const struct train_subject *subject,
                                              const struct train_point *point, struct error *error);

/**
 * @brief Loads model and optimiser from the checkpoint.
 * @return STATUS_OK; STATUS_MISMATCH when settings differ; STATUS_BAD_FORMAT and other failures for
 *         damaged files, with their path
 */
MUST_CHECK enum status train_checkpoint_read(const struct train_store *store,
                                             const struct train_subject *subject,
                                             struct train_point *point, struct error *error);

/** Writes a model. @param name "best" or "final"; one that is there is replaced */
MUST_CHECK enum status train_model_save(const struct train_store *store,
                                        const struct train_subject *subject, const char *name,
                                        struct error *error);

/** @name Settings that a resumed run must share with the original run: flags, sizes, data
 * @{ */
/**
 * @brief The settings as a JSON object of texts, to free with cJSON_Delete().
 * @param type how the engine stores weights
 * @param part the training texts
 * @return NULL when there is no memory
 */
struct cJSON *train_settings(const struct train_options *options, const struct train_config *config,
                             enum train_type type, const struct train_part *part);

/**
 * @brief Compares settings with those of a checkpoint.
 * @return STATUS_OK, or STATUS_MISMATCH with the first setting that differs
 */
MUST_CHECK enum status train_settings_compare(const struct cJSON *settings,
                                              const struct cJSON *saved, struct error *error);
/** @} */

#endif
