#include "common/programs/dtype_flag.h"

#include <stddef.h>
#include <string.h>

enum status dtype_flag_parse(const char *name, enum nn_dtype *dtype, struct error *error) {
    static const enum nn_dtype all[] = {NN_F32, NN_F16, NN_BF16};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        if (strcmp(name, nn_dtype_name(all[i])) == 0) {
            *dtype = all[i];
            return STATUS_OK;
        }
    }
    return error_set(error, STATUS_INVALID_ARGUMENT,
                     "--dtype is 'fp32', 'fp16' or 'bf16', not '%s'", name);
}
