#include "common/programs/stage_flag.h"

#include <stdio.h>
#include <string.h>

void stage_list_add(char *list, size_t room, const char *name) {
    size_t used = strlen(list);
    snprintf(list + used, room - used, "%s%s", used > 0 ? ", " : "", name);
}

enum status stage_flag_unknown(const char *value, const char *list, struct error *error) {
    return error_set(error, STATUS_INVALID_ARGUMENT,
                     "--stage '%s': unknown stage; choose one of %s", value, list);
}
