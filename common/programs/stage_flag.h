/**
 * @file stage_flag.h
 * @brief Lists of stages in messages about --stage.
 */
#ifndef WARPBOOK_COMMON_PROGRAMS_STAGE_FLAG_H_
#define WARPBOOK_COMMON_PROGRAMS_STAGE_FLAG_H_

#include <stddef.h>

#include "common/base/status.h"

/** Appends a name to a list "01_a, 02_b". @param list text of @p room bytes, "" at first */
void stage_list_add(char *list, size_t room, const char *name);

/** @return STATUS_INVALID_ARGUMENT, with a message that names the stages in @p list. */
enum status stage_flag_unknown(const char *value, const char *list, struct error *error);

#endif
