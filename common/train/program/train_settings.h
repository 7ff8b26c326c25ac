/**
 * @file train_settings.h
 * @brief The settings that a resumed run must share with the original run: flags, sizes, data.
 */
#ifndef WARPBOOK_COMMON_TRAIN_PROGRAM_TRAIN_SETTINGS_H_
#define WARPBOOK_COMMON_TRAIN_PROGRAM_TRAIN_SETTINGS_H_

#include "common/train/data/train_data.h"
#include "common/train/program/train_options.h"

struct cJSON;

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

#endif
