#include "grader/harness/secret_weights.h"

#include <stdlib.h>
#include <string.h>

#include "common/device/device.h"

/* Appends what the model sends. */
static enum status note(struct secret_weights *all, const void *from, size_t bytes) {
    if (bytes > all->room - all->count) {
        size_t room = 2 * all->room > all->count + bytes ? 2 * all->room : all->count + bytes;
        unsigned char *larger = realloc(all->bytes, room);
        if (larger == NULL) {
            return STATUS_OUT_OF_MEMORY;
        }
        all->bytes = larger;
        all->room = room;
    }
    memcpy(all->bytes + all->count, from, bytes);
    all->count += bytes;
    return STATUS_OK;
}

static enum status note_weights(void *context, const void *host, size_t bytes,
                                const void **resident) {
    *resident = host;
    return note(context, host, bytes);
}

static enum status note_written(void *context, void *resident, const void *host, size_t bytes) {
    (void)resident;
    return note(context, host, bytes);
}

static enum status alloc(void *context, size_t bytes, void **memory) {
    (void)context;
    *memory = malloc(bytes);
    return *memory != NULL ? STATUS_OK : STATUS_OUT_OF_MEMORY;
}

static void release(void *context, void *memory) {
    (void)context;
    free(memory);
}

static void release_weights(void *context, const void *resident) {
    (void)context;
    (void)resident;
}

static enum status synchronize(void *context) {
    (void)context;
    return STATUS_OK;
}

enum status secret_weights_send(const void *weights, size_t bytes, void **given,
                                struct error *error) {
    TRY(device_alloc(given, bytes, error));
    enum status status = device_write(*given, weights, bytes, NULL, error);
    if (status != STATUS_OK) {
        device_free(*given);
        *given = NULL;
    }
    return status;
}

enum status secret_weights_write(secret_weights_create *create, const void *model, void **given,
                                 struct error *error) {
    struct secret_weights all = {0};
    const struct engine engine = {.name = "what a model sends",
                                  .context = &all,
                                  .alloc = alloc,
                                  .release = release,
                                  .weights = note_weights,
                                  .release_weights = release_weights,
                                  .write = note_written,
                                  .synchronize = synchronize};
    *given = NULL;
    enum status status = create(&engine, model);
    status = status == STATUS_OK ? secret_weights_send(all.bytes, all.count, given, error) : status;
    free(all.bytes);
    return status;
}
