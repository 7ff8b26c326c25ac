#include "common/simt/memory/race/shadow.h"

#include <stdlib.h>

struct simt_global_shadow {
    struct simt_memory *memory;
    struct simt_watch alone;                            /* of a single host thread */
    struct simt_watch together[SIMT_MOST_HOST_THREADS]; /* made when they are needed */
    struct simt_undo *undo;
    uint32_t host_threads; /* of this launch */
};

static enum status create_watch(struct simt_watch *watch, const struct simt_memory *memory,
                                enum simt_agents blocks) {
    const struct simt_extent window = simt_memory_window(memory);
    size_t bytes = window.end - window.begin;
    if (watch->blocks != NULL) {
        return STATUS_OK;
    }
    watch->begin = window.begin;
    enum status status = simt_history_create(&watch->blocks, blocks, bytes);
    if (status == STATUS_OK) {
        status = simt_history_create(&watch->warps, SIMT_WARPS_OF_GLOBAL, bytes);
    }
    if (status != STATUS_OK) {
        simt_history_free(watch->blocks);
        watch->blocks = NULL;
    }
    return status;
}

static void free_watch(struct simt_watch *watch) {
    simt_history_free(watch->blocks);
    simt_history_free(watch->warps);
}

enum status simt_global_shadow_create(struct simt_global_shadow **shadow,
                                      struct simt_memory *memory) {
    struct simt_global_shadow *made = calloc(1, sizeof *made);
    *shadow = NULL;
    if (made == NULL) {
        return STATUS_OUT_OF_MEMORY;
    }
    made->memory = memory;
    made->host_threads = 1;
    if (create_watch(&made->alone, memory, SIMT_BLOCKS) != STATUS_OK) {
        simt_global_shadow_free(made);
        return STATUS_OUT_OF_MEMORY;
    }
    *shadow = made;
    return STATUS_OK;
}

void simt_global_shadow_free(struct simt_global_shadow *shadow) {
    if (shadow != NULL) {
        free_watch(&shadow->alone);
        for (uint32_t n = 0; n < SIMT_MOST_HOST_THREADS; n++) {
            free_watch(&shadow->together[n]);
        }
        simt_undo_free(shadow->undo);
        free(shadow);
    }
}

/* What was touched long ago takes room, too. */
static void begin_watch(struct simt_watch *watch) {
    if (simt_history_is_large(watch->blocks)) {
        simt_history_forget(watch->blocks);
        simt_history_forget(watch->warps);
    }
    simt_history_advance(watch->blocks);
    simt_history_advance(watch->warps);
}

/* @return how many host threads can be watched at the same time; 0 or 1: none but one alone */
static uint32_t make_watches(struct simt_global_shadow *shadow, uint32_t host_threads) {
    uint32_t made = 0;
    while (made < host_threads &&
           create_watch(&shadow->together[made], shadow->memory, SIMT_BLOCKS_APART) == STATUS_OK) {
        made++;
    }
    return made;
}

uint32_t simt_global_shadow_begin(struct simt_global_shadow *shadow, uint32_t host_threads) {
    bool has_undo =
        shadow->undo != NULL || simt_undo_create(&shadow->undo, shadow->memory) == STATUS_OK;
    uint32_t made = host_threads > 1 && has_undo ? make_watches(shadow, host_threads) : 0;
    shadow->host_threads = made > 1 ? made : 1;
    if (shadow->host_threads == 1) {
        begin_watch(&shadow->alone);
        return 1;
    }
    for (uint32_t n = 0; n < shadow->host_threads; n++) {
        begin_watch(&shadow->together[n]);
    }
    return shadow->host_threads;
}

struct simt_watch *simt_global_shadow_watch(struct simt_global_shadow *shadow, uint32_t index) {
    return shadow->host_threads == 1 ? &shadow->alone : &shadow->together[index];
}

struct simt_undo *simt_global_shadow_undo(struct simt_global_shadow *shadow) {
    return shadow->undo;
}

/* The blocks of several host threads got in each other's way. */
static bool has_met(const struct simt_global_shadow *shadow) {
    struct simt_history *histories[SIMT_MOST_HOST_THREADS];
    for (uint32_t n = 0; n < shadow->host_threads; n++) {
        histories[n] = shadow->together[n].blocks;
    }
    return shadow->host_threads > 1 && simt_histories_meet(histories, shadow->host_threads);
}

enum status simt_global_shadow_end(struct simt_global_shadow *shadow, bool take_back, bool *again) {
    *again = has_met(shadow);
    if (shadow->undo == NULL) {
        return take_back ? STATUS_OUT_OF_MEMORY : STATUS_OK;
    }
    if (*again || take_back) {
        return simt_undo_roll_back(shadow->undo);
    }
    simt_undo_commit(shadow->undo);
    return STATUS_OK;
}
