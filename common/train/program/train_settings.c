#include "common/train/program/train_checkpoint.h"

#include <cjson/cJSON.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/json_object.h"

/* The object under construction; `good` is false after a failed allocation. */
struct filling {
    cJSON *object;
    bool good;
};

__attribute__((format(printf, 3, 4))) static void add(struct filling *f, const char *name,
                                                      const char *format, ...) {
    char text[160];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    f->good = f->good && cJSON_AddStringToObject(f->object, name, text) != NULL;
}

/* Adds a number with the fewest digits that identify the fp32 value. */
static void add_number(struct filling *f, const char *name, float value) {
    char text[32];
    for (int digits = 6; digits <= 9; digits++) {
        snprintf(text, sizeof text, "%.*g", digits, (double)value);
        if (strtof(text, NULL) == value) {
            break;
        }
    }
    add(f, name, "%s", text);
}

static void add_flags(struct filling *f, const struct train_options *o) {
    add(f, "--task", "%s", train_task_name(o->task));
    add(f, "--max-length", "%d", o->max_length);
    add(f, "--batch-size", "%d", o->batch_size);
    if (o->gpus > 1) { /* whether --zero is given does not change a bit */
        add(f, "--accumulate", "%d on each of %d GPUs", o->accumulate, o->gpus);
    } else {
        add(f, "--accumulate", "%d", o->accumulate);
    }
    add(f, "--epochs", "%d", o->epochs);
    add(f, "--max-steps", "%" PRIu64, o->max_steps);
    add(f, "--seed", "%" PRIu64, o->seed);
    add_number(f, "--lr", o->rate);
    add_number(f, "--weight-decay", o->decay);
    add_number(f, "--warmup", o->warmup);
    add(f, "--schedule", "%s", train_decay_name(o->schedule));
    add_number(f, "--dropout", o->dropout);
    if (o->task == TRAIN_MLM) {
        add_number(f, "--mlm-probability", o->asked);
    }
    add_number(f, "--clip", o->clip);
    add_number(f, "--beta1", o->beta1);
    add_number(f, "--beta2", o->beta2);
    add_number(f, "--eps", o->eps);
    add(f, "--dtype", "%s", nn_dtype_name(o->dtype));
}

static void add_sizes(struct filling *f, const struct train_config *c) {
    if (c->is_gpt_neox) {
        const struct gpt_neox_config *n = &c->gpt_neox;
        add(f, "sizes of the model",
            "GPT-NeoX, %zu channels, %zu inside, %zu layers, %zu heads, %zu rotated, %zu pieces, "
            "%zu positions%s%s",
            n->C, n->hidden, n->L, n->NH, n->rotary, n->V, n->T, n->parallel ? ", parallel" : "",
            c->tied ? ", tied" : "");
        return;
    }
    if (c->task == TRAIN_LM) {
        const struct llama2_config *l = &c->llama2;
        add(f, "sizes of the model",
            "%zu channels, %zu inside, %zu layers, %zu heads, %zu of keys, %zu pieces, %zu "
            "positions%s",
            l->C, l->hidden, l->L, l->NH, l->KVH, l->V, l->T, c->tied ? ", tied" : "");
        return;
    }
    const struct bert_config *b = &c->bert;
    add(f, "sizes of the model",
        "%zu channels, %zu inside, %zu layers, %zu heads, %zu pieces, %zu positions, %zu labels",
        b->C, b->hidden, b->L, b->NH, b->V, b->T, b->labels);
}

struct cJSON *train_settings(const struct train_options *options, const struct train_config *config,
                             enum train_type type, const struct train_part *part) {
    struct filling f = {.object = cJSON_CreateObject()};
    f.good = f.object != NULL;
    add_flags(&f, options);
    add_sizes(&f, config);
    add(&f, "the weights' type", "%s", type == TRAIN_F64 ? "fp64" : "fp32");
    add(&f, "the training data", "%zu sequences, checksum %016" PRIx64, part->count,
        train_part_checksum(part));
    if (!f.good) {
        cJSON_Delete(f.object);
        return NULL;
    }
    return f.object;
}

enum status train_settings_compare(const struct cJSON *settings, const struct cJSON *saved,
                                   struct error *error) {
    const cJSON *item;
    cJSON_ArrayForEach(item, settings) {
        const char *now = cJSON_GetStringValue(item);
        const char *then =
            cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(saved, item->string));
        if (then == NULL || strcmp(now, then) != 0) {
            then = then != NULL ? then : "nothing";
            return error_set(error, STATUS_MISMATCH,
                             "%s: %s here, %.*s in the run that --resume would continue",
                             item->string, now, json_shown(then), then);
        }
    }
    return STATUS_OK;
}
