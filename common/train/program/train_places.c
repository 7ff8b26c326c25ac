#include "common/train/program/train_program.h"

#include <stdio.h>
#include <string.h>

enum status train_place_cpu(struct train_engine *engine, enum nn_dtype dtype,
                            struct train_where *where, struct error *error) {
    if (dtype != NN_F32) {
        return error_set(error, STATUS_INVALID_ARGUMENT,
                         "--dtype %s: the CPU reference computes in double only; leave out --dtype",
                         nn_dtype_name(dtype));
    }
    snprintf(where->name, sizeof where->name, "the CPU reference, in double");
    enum status status = train_reference_create(engine);
    return status == STATUS_OK ? STATUS_OK : error_set(error, status, "%s", status_message(status));
}

static enum status refuse(const struct train_places *places, const char *name,
                          struct error *error) {
    char list[160] = "'auto'";
    for (size_t i = 0; i < places->count; i++) {
        size_t used = strlen(list);
        snprintf(list + used, sizeof list - used, "%s'%s'", i + 1 == places->count ? " or " : ", ",
                 places->table[i].name);
    }
    return error_set(error, STATUS_INVALID_ARGUMENT, "--device is %s, not '%s'", list, name);
}

enum status train_places_create(const struct train_places *places, const char *name,
                                enum nn_dtype dtype, struct train_engine *engine,
                                struct train_where *where, struct error *error) {
    bool automatic = strcmp(name, "auto") == 0;
    for (size_t i = 0; i < places->count; i++) {
        const struct train_place *place = &places->table[i];
        if (!automatic && strcmp(name, place->name) != 0) {
            continue;
        }
        *engine = (struct train_engine){0};
        *where = (struct train_where){.modelled = false};
        enum status status = place->create(engine, dtype, where, error);
        bool next = automatic && status == STATUS_NO_DEVICE && i + 1 < places->count;
        if (!next) {
            return status;
        }
    }
    return refuse(places, name, error);
}
