#include "common/programs/decoder/llama2_place.h"

#include <stdio.h>

#include "common/device/device.h"

enum status llama2_place_open(struct llama2_place *place, struct error *error) {
    struct device_properties properties;
    TRY(device_open(error));
    TRY(device_properties(&properties, error));
    snprintf(place->name, sizeof place->name, "%s", properties.record_name);
    place->modelled = properties.modelled;
    return STATUS_OK;
}
