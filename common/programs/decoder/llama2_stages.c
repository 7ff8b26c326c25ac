#include "common/programs/decoder/llama2_stages.h"

#include <stdlib.h>
#include <string.h>

/* A name of digits is a number: "1" and "01" mean 01_cpu_matmul only, not 10_llama2_decoder. */
static bool fits(const char *stage, const char *name) {
    size_t length = strlen(name);
    if (length > 0 && strspn(name, "0123456789") == length) {
        return strtoul(stage, NULL, 10) == strtoul(name, NULL, 10);
    }
    return length > 0 && strncmp(stage, name, length) == 0;
}

const struct llama2_stage *llama2_stage_find(const struct llama2_stages *stages, const char *name) {
    const struct llama2_stage *found = NULL;
    size_t fitting = 0;
    for (size_t i = 0; i < stages->count; i++) {
        const struct llama2_stage *stage = &stages->table[i];
        if (strcmp(stage->name, name) == 0) {
            return stage;
        }
        if (fits(stage->name, name)) {
            found = stage;
            fitting++;
        }
    }
    return fitting == 1 ? found : NULL;
}
