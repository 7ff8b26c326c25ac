#include "labs/15_many_gpus/given/part_engine.h"

#include <stdlib.h>

#include "labs/10_llama2_decoder/given/engine.h"
#include "labs/15_many_gpus/given/decoder.h"
#include "labs/15_many_gpus/given/load.h"

/* The functions of lab 10's engine know no communicator, so its loading gives it to them. */
struct part {
    struct comm *comm;
    struct many_parts parts;
};

static enum status load(void *context, const struct llama2_decoder_model *whole,
                        struct decoder_model *model, void **loaded, struct error *error) {
    struct part *part = calloc(1, sizeof *part);
    if (part == NULL) {
        return error_set(error, STATUS_OUT_OF_MEMORY, "out of memory for a part of the model");
    }
    part->comm = context;
    enum status status =
        many_parts_load(&part->parts, whole, part->comm->rank, part->comm->ranks, many_cut, error);
    if (status != STATUS_OK) {
        free(part);
        return status;
    }
    *model = part->parts.model;
    *loaded = part;
    return STATUS_OK;
}

static void unload(void *loaded) {
    struct part *part = loaded;
    many_parts_free(&part->parts);
    free(part);
}

static enum status create(void *loaded, struct decoder **decoder, const struct decoder_model *model,
                          const struct decoder_io *io, size_t batch, device_stream stream,
                          struct error *error) {
    struct part *part = loaded;
    size_t count;
    const struct many_step *steps = many_ladder(&count);
    struct many_decoder *made = NULL;
    enum status status =
        many_decoder_create(&made, part->comm, model, io, batch, &steps[count - 1], stream, error);
    *decoder = (struct decoder *)made;
    return status;
}

static enum status prefill(struct decoder *decoder, const int32_t *tokens, size_t count,
                           size_t position, struct error *error) {
    return many_decoder_prefill((struct many_decoder *)decoder, tokens, count, position, error);
}

static enum status step(struct decoder *decoder, size_t position, struct error *error) {
    return many_decoder_step((struct many_decoder *)decoder, position, error);
}

static void free_decoder(struct decoder *decoder) {
    many_decoder_free((struct many_decoder *)decoder);
}

enum status engine_part_create(struct engine *engine, struct comm *comm, struct error *error) {
    const struct decoder_functions functions = {NULL, prefill, step, free_decoder};
    const struct decoder_loading loading = {comm, load, unload, create};
    return engine_decoder_create_loading(engine, &functions, &loading, error);
}
