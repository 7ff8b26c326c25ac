#include "common/programs/decoder/decoder_stages.h"

const struct decoder_stage *decoder_stage_find(const struct decoder_stages *stages,
                                               const char *name) {
    size_t found = stage_find(stages->table, stages->count, sizeof *stages->table, name);
    return found < stages->count ? &stages->table[found] : NULL;
}
