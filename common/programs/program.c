#include "common/programs/program.h"

#include <stdio.h>
#include <string.h>

const char *program_where(const char *stage, enum nn_dtype dtype,
                          const struct program_device *device, char *text, size_t size) {
    char type[16] = "";
    if (dtype != NN_F32) {
        snprintf(type, sizeof type, " in %s", nn_dtype_name(dtype));
    }
    snprintf(text, size, "stage %s%s on %s%s", stage, type, device->name,
             device->modelled ? " (times are modelled)" : "");
    return text;
}

void stage_list_add(char *list, size_t room, const char *name) {
    size_t used = strlen(list);
    snprintf(list + used, room - used, "%s%s", used > 0 ? ", " : "", name);
}

enum status stage_flag_unknown(const char *value, const char *list, struct error *error) {
    return error_set(error, STATUS_INVALID_ARGUMENT,
                     "--stage '%s': unknown stage; choose one of %s", value, list);
}

enum status program_output_end(struct error *error) {
    return fflush(stdout) == 0 && !ferror(stdout)
               ? STATUS_OK
               : error_set(error, STATUS_IO, "cannot write to standard output");
}
