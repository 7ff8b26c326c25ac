#include "common/programs/program.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/terminal.h"

const char *program_where(const char *stage, enum nn_dtype dtype,
                          const struct program_device *device, char *text, size_t size) {
    char type[16] = "";
    if (dtype != NN_F32) {
        snprintf(type, sizeof type, " in %s", nn_dtype_name(dtype));
    }
    snprintf(text, size, "stage %s%s on %s%s", stage, type, device->name,
             device->modelled ? " (times are modelled)" : "");
    return text;
}

void stage_list_add(char *list, size_t room, const char *name) {
    size_t used = strlen(list);
    snprintf(list + used, room - used, "%s%s", used > 0 ? ", " : "", name);
}

static const char *stage_name(const void *table, size_t stride, size_t index) {
    return *(const char *const *)((const char *)table + index * stride);
}

/* A name of digits is a number: "1" and "01" mean 01_cpu_matmul only, not 10_llama2_decoder. */
static bool stage_fits(const char *stage, const char *name) {
    size_t length = strlen(name);
    if (length > 0 && strspn(name, "0123456789") == length) {
        return strtoul(stage, NULL, 10) == strtoul(name, NULL, 10);
    }
    return length > 0 && strncmp(stage, name, length) == 0;
}

size_t stage_find(const void *table, size_t count, size_t stride, const char *name) {
    size_t found = count, fitting = 0;
    for (size_t i = 0; i < count; i++) {
        const char *stage = stage_name(table, stride, i);
        if (strcmp(stage, name) == 0) {
            return i;
        }
        if (stage_fits(stage, name)) {
            found = i;
            fitting++;
        }
    }
    return fitting == 1 ? found : count;
}

enum status stage_flag_find(const void *table, size_t count, size_t stride, const char *value,
                            size_t *found, struct error *error) {
    char names[300] = "";
    *found = stage_find(table, count, stride, value);
    if (*found < count) {
        return STATUS_OK;
    }
    for (size_t i = 0; i < count; i++) {
        stage_list_add(names, sizeof names, stage_name(table, stride, i));
    }
    return error_set(error, STATUS_INVALID_ARGUMENT,
                     "--stage '%s': unknown stage; choose one of %s", value, names);
}

/* ---- Interruption ---- */

static const int watched[] = {SIGINT, SIGTERM, SIGHUP};
enum { WATCHED = sizeof watched / sizeof *watched };

static void after_signal(int number) {
    (void)number;
}

/* Needs no flag: interrupt_seen() looks at the handlers. A second signal kills, but for SIGHUP. */
static void on_signal(int number) {
    signal(number, number == SIGHUP ? after_signal : SIG_DFL);
}

/* Whether the signal came, or was not watched yet. */
static bool has_come(const struct sigaction *action) {
    return action->sa_handler == SIG_DFL || action->sa_handler == after_signal;
}

void interrupt_watch(void) {
    for (size_t i = 0; i < WATCHED; i++) {
        struct sigaction before;
        const struct sigaction watch = {.sa_handler = on_signal}; /* read() ends with EINTR */
        if (sigaction(watched[i], NULL, &before) == 0 && has_come(&before)) {
            sigaction(watched[i], &watch, NULL);
        }
    }
    signal(SIGPIPE, SIG_IGN);
}

int interrupt_seen(void) {
    for (size_t i = 0; i < WATCHED; i++) {
        struct sigaction now;
        if (sigaction(watched[i], NULL, &now) == 0 && has_come(&now)) {
            return watched[i];
        }
    }
    return 0;
}

int program_exit_status(const char *program, const struct error *error, enum status status) {
    if (status == STATUS_OK) {
        return 0;
    }
    if (status != STATUS_INTERRUPTED || error->message[0] != '\0') {
        report_failure(program, error, status);
    }
    return status == STATUS_INTERRUPTED ? 128 + interrupt_seen() : 1;
}

/* ---- Output ---- */

enum status program_output_end(struct error *error) {
    return fflush(stdout) == 0 && !ferror(stdout)
               ? STATUS_OK
               : error_set(error, STATUS_IO, "cannot write to standard output: %s",
                           strerror(errno));
}
