#include "common/programs/program.h"

#include <stdio.h>

#include "common/device/device.h"

enum status program_device_open(struct program_device *device, struct error *error) {
    struct device_properties properties;
    TRY(device_open(error));
    TRY(device_properties(&properties, error));
    snprintf(device->name, sizeof device->name, "%s", properties.record_name);
    device->modelled = properties.modelled;
    return STATUS_OK;
}
