#include "common/programs/decoder/llama2_stages.h"

const struct llama2_stage *llama2_stage_find(const struct llama2_stages *stages, const char *name) {
    size_t found = stage_find(stages->table, stages->count, sizeof *stages->table, name);
    return found < stages->count ? &stages->table[found] : NULL;
}
