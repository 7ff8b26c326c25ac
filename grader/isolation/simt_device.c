#include "grader/isolation/simt_device.h"

#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/simt/memory/tensor_flops.h"
#include "common/simt/simt.h"

/* Until an answer of the device counts as lost, on however busy a machine. */
#define PATIENCE 120.0

/* From the end of its connection to that of the process. */
#define LAST_SECONDS 5.0

/* Two sockets: the worker's and the grader's, each with the device's end behind it. */
static bool make_sockets(int program[2], int controller[2]) {
    const int type = SOCK_SEQPACKET | SOCK_CLOEXEC;
    if (socketpair(AF_UNIX, type, 0, program) != 0) {
        return false;
    }
    if (socketpair(AF_UNIX, type, 0, controller) != 0) {
        close(program[0]);
        close(program[1]);
        return false;
    }
    for (int n = 0; n < 2; n++) {
        simt_control_widen(program[n]);
        simt_control_widen(controller[n]);
    }
    return true;
}

static enum status start_process(struct simt_device *device, const struct surroundings *s,
                                 const struct sandbox_limits *limits, int program, int controller,
                                 struct error *error) {
    const char *library = device->control.library();
    const char *argv[] = {SIMT_DEVICE_LOADER, library, NULL};
    const struct sandbox_descriptor handed[] = {{program, SIMT_DEVICE_PROGRAM},
                                                {controller, SIMT_DEVICE_CONTROLLER}};
    const struct sandbox_command command = {.argv = argv,
                                            .environment = s->device_environment,
                                            .descriptors = handed,
                                            .descriptor_count = 2,
                                            .loads = library,
                                            .loads_by_name = SIMT_DEVICE_UNPACKS,
                                            .limits = *limits,
                                            .required = SANDBOX_HOLDS_CALLS};
    return sandbox_start(&device->sandbox, &command, error);
}

/* Why a device that was started does not answer; ends it. */
static enum status no_device(struct simt_device *device, const struct sandbox_limits *limits,
                             struct error *error) {
    char why[300] = "did not start";
    struct sandbox_result *result = calloc(1, sizeof *result);
    if (result == NULL) {
        return error_set(error, STATUS_OUT_OF_MEMORY, "out of memory for the emulated GPU");
    }
    simt_device_end(device, result);
    sandbox_describe(result, limits, why, sizeof why);
    free(result);
    return error_set(error, STATUS_INTERRUPTED, "the emulated GPU %s", why);
}

enum status simt_device_start(struct simt_device *device, const struct surroundings *s,
                              const struct sandbox_limits *limits, int *program,
                              struct error *error) {
    int ends[2], controller[2];
    if (!simt_control_find(&device->control) || device->control.library() == NULL ||
        !make_sockets(ends, controller)) {
        return error_set(error, STATUS_IO, "the emulated GPU cannot be started");
    }
    enum status status = start_process(device, s, limits, ends[1], controller[1], error);
    close(ends[1]);
    close(controller[1]);
    device->socket = controller[0];
    *program = ends[0];
    if (status == STATUS_OK && !simt_device_attach(device)) {
        status = no_device(device, limits, error);
    }
    return status;
}

bool simt_device_attach(struct simt_device *device) {
    return device->sandbox != NULL && device->control.attach(device->socket, PATIENCE);
}

bool simt_device_read(struct simt_device *device, struct simt_reading *reading) {
    struct simt_device_state state;
    const struct simt_totals *totals = &state.totals;
    if (!simt_device_attach(device) || !device->control.read_state(&state)) {
        return false;
    }
    *reading = (struct simt_reading){
        .nanoseconds = state.nanoseconds,
        .flops = totals->counters.flops,
        .tensor_flops = simt_short_tensor_flops(&totals->counters),
        .bytes = totals->counters.global_bytes,
        .launched = totals->launches + totals->sets + totals->copies_on_device +
                    totals->copies_to_device + totals->copies_to_host,
        .calls = state.calls,
        .faults = state.faults,
        .sent = state.sent,
        .fetched = state.fetched,
        .unfinished = state.unfinished,
    };
    return true;
}

bool simt_device_calls(const struct simt_device *device, uint64_t *calls) {
    return device->sandbox != NULL && device->control.program_calls(calls);
}

double simt_device_waited(const struct simt_device *device) {
    return device->sandbox != NULL ? sandbox_waited(device->sandbox) : 0.0;
}

void simt_device_end(struct simt_device *device, struct sandbox_result *result) {
    if (device->sandbox == NULL) {
        return;
    }
    device->control.forget(device->socket);
    close(device->socket);
    if (!sandbox_wait(device->sandbox, LAST_SECONDS)) {
        sandbox_stop(device->sandbox);
    }
    sandbox_finish(device->sandbox, result);
    *device = (struct simt_device){.sandbox = NULL};
}
