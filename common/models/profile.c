#include "common/models/profile.h"

#include <string.h>

#include "common/bench/bench.h"
#include "common/models/engine_layer.h"
#include "common/models/engine_operators.h"

const char *profile_operator_name(enum profile_operator op) {
#define NAME_ENTRY(NAME, name, ...) [PROFILE_##NAME] = #name,
    static const char *const names[PROFILE_COUNT] = {[PROFILE_ENCODER] = "encoder",
                                                     [PROFILE_DECODER] = "decoder",
                                                     [PROFILE_COPY] = "copy",
                                                     ENGINE_OPERATORS(NAME_ENTRY)
                                                         ENGINE_FUSED_OPERATORS(NAME_ENTRY)};
    return op < PROFILE_COUNT ? names[op] : "unknown";
}

static double now(const struct profile *profile) {
    return profile->now != NULL ? profile->now() : bench_now();
}

/* Adds the time since start to the operator's; waits for the engine first, so that all of the
   operator's work is counted. */
static enum status add_time(void *context, enum profile_operator op, double start,
                            enum status called) {
    const struct engine *inner = engine_layer_base(context);
    struct profile *profile = engine_layer_own(context);
    enum status status = called != STATUS_OK ? called : inner->synchronize(inner->context);
    double end = now(profile);
    profile->entries[op].calls++;
    profile->entries[op].seconds += end - start;
    if (profile->observe != NULL) {
        profile->observe(profile->observer, op, start, end);
    }
    return status;
}

/* One call of an operator. */
struct call {
    double start;
    enum status status;
};

static void open_call(void *context, enum profile_operator op, const char *entry,
                      struct call *call) {
    struct profile *profile = engine_layer_own(context);
    call->start = now(profile);
    if (profile->recorder.begin != NULL) {
        profile->recorder.begin(profile->recorder.context, op, entry);
    }
}

/* @return whether the entry must be called again */
static bool close_call(void *context, enum profile_operator op, struct call *call) {
    const struct profile_recorder *recorder =
        &((struct profile *)engine_layer_own(context))->recorder;
    return recorder->end != NULL && recorder->end(recorder->context, op, &call->status);
}

/* Calls an entry of the inner engine with the arguments and adds its time to the profile. */
#define PROFILED(op, entry, ...)                                 \
    const struct engine *inner = engine_layer_base(context);     \
    struct call call;                                            \
    do {                                                         \
        open_call(context, op, #entry, &call);                   \
        call.status = inner->entry(inner->context, __VA_ARGS__); \
    } while (close_call(context, op, &call));                    \
    return add_time(context, op, call.start, call.status)

#define PROFILED_ENTRY(NAME, name, parameters, ...)  \
    static enum status profile_##name parameters {   \
        PROFILED(PROFILE_##NAME, name, __VA_ARGS__); \
    }
ENGINE_COPIES(PROFILED_ENTRY)
ENGINE_OPERATORS(PROFILED_ENTRY)
ENGINE_FUSED_OPERATORS(PROFILED_ENTRY)

static enum status profile_encoder_create(void *context, const struct bert_encoder_model *model,
                                          void **encoder) {
    const struct engine *inner = engine_layer_base(context);
    return inner->encoder_create(inner->context, model, encoder);
}

static enum status profile_encoder_run(void *context, void *encoder,
                                       const struct bert_encoder_call *batch) {
    PROFILED(PROFILE_ENCODER, encoder_run, encoder, batch);
}

static void profile_encoder_free(void *context, void *encoder) {
    const struct engine *inner = engine_layer_base(context);
    inner->encoder_free(inner->context, encoder);
}

static enum status profile_decoder_create(void *context, const struct llama2_decoder_model *model,
                                          void **decoder, struct error *error) {
    const struct engine *inner = engine_layer_base(context);
    return inner->decoder_create(inner->context, model, decoder, error);
}

static enum status profile_gpt_neox_decoder_create(void *context,
                                                   const struct gpt_neox_decoder_model *model,
                                                   void **decoder, struct error *error) {
    const struct engine *inner = engine_layer_base(context);
    return inner->gpt_neox_decoder_create(inner->context, model, decoder, error);
}

static enum status profile_decoder_run(void *context, void *decoder,
                                       const struct llama2_decoder_call *tokens) {
    PROFILED(PROFILE_DECODER, decoder_run, decoder, tokens);
}

static void profile_decoder_free(void *context, void *decoder) {
    const struct engine *inner = engine_layer_base(context);
    inner->decoder_free(inner->context, decoder);
}

static enum status profile_decoder_begin(void *context, void *decoder,
                                         const struct llama2_sampling *sampling) {
    const struct engine *inner = engine_layer_base(context);
    return inner->decoder_begin(inner->context, decoder, sampling);
}

static enum status profile_decoder_next(void *context, void *decoder, size_t position,
                                        int32_t *token) {
    PROFILED(PROFILE_DECODER, decoder_next, decoder, position, token);
}

static void profile_decoder(struct engine *engine, const struct engine *inner) {
    if (inner->decoder_create != NULL) {
        engine->decoder_create = profile_decoder_create;
    }
    if (inner->gpt_neox_decoder_create != NULL) {
        engine->gpt_neox_decoder_create = profile_gpt_neox_decoder_create;
    }
    if (inner->decoder_run != NULL) {
        engine->decoder_run = profile_decoder_run;
        engine->decoder_free = profile_decoder_free;
    }
    if (inner->decoder_begin != NULL) {
        engine->decoder_begin = profile_decoder_begin;
        engine->decoder_next = profile_decoder_next;
    }
}

static void profile_encoder(struct engine *engine, const struct engine *inner) {
    if (inner->encoder_create != NULL) {
        engine->encoder_create = profile_encoder_create;
        engine->encoder_run = profile_encoder_run;
        engine->encoder_free = profile_encoder_free;
    }
}

enum status engine_profile_create(struct engine *engine, const struct engine *inner,
                                  struct profile *profile) {
    struct engine base = *inner;
    base.destroy = NULL; /* the caller keeps it */
    *profile = (struct profile){0};
    TRY(engine_layer_create(engine, inner->name, &base, profile, NULL));
#define SET_ENTRY(NAME, name, ...) engine->name = profile_##name;
    ENGINE_COPIES(SET_ENTRY)
    ENGINE_OPERATORS(SET_ENTRY)
#define SET_FUSED(NAME, name, ...) engine->name = inner->name != NULL ? profile_##name : NULL;
    ENGINE_FUSED_OPERATORS(SET_FUSED)
    profile_encoder(engine, inner);
    profile_decoder(engine, inner);
    return STATUS_OK;
}

void profile_reset(struct profile *profile) {
    for (int op = 0; op < PROFILE_COUNT; op++) {
        profile->entries[op] = (struct profile_entry){0};
    }
}

double profile_total(const struct profile *profile) {
    double total = 0.0;
    for (int op = 0; op < PROFILE_COUNT; op++) {
        total += profile->entries[op].seconds;
    }
    return total;
}

/* Width of the longest name among the operators that were called, at least 12. */
static int name_width(const struct profile *profile) {
    int width = 12;
    for (int op = 0; op < PROFILE_COUNT; op++) {
        int length = (int)strlen(profile_operator_name(op));
        width = profile->entries[op].calls > 0 && length > width ? length : width;
    }
    return width;
}

/* @return the slowest operator that was called and is not printed yet; -1: none */
static int slowest_of(const struct profile *profile, const bool printed[PROFILE_COUNT]) {
    int slowest = -1;
    for (int op = 0; op < PROFILE_COUNT; op++) {
        const struct profile_entry *entry = &profile->entries[op];
        if (!printed[op] && entry->calls > 0 &&
            (slowest < 0 || entry->seconds > profile->entries[slowest].seconds)) {
            slowest = op;
        }
    }
    return slowest;
}

void profile_print(const struct profile *profile, FILE *stream) {
    double total = profile_total(profile);
    bool printed[PROFILE_COUNT] = {false};
    int width = name_width(profile), slowest;
    fprintf(stream, "  %-*s %9s %11s %8s\n", width, "operator", "calls", "ms", "share");
    while ((slowest = slowest_of(profile, printed)) >= 0) {
        printed[slowest] = true;
        const struct profile_entry *entry = &profile->entries[slowest];
        fprintf(stream, "  %-*s %9llu %11.3f %7.1f%%\n", width, profile_operator_name(slowest),
                (unsigned long long)entry->calls, 1e3 * entry->seconds,
                total > 0 ? 100.0 * entry->seconds / total : 0.0);
    }
}
