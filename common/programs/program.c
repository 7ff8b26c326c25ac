#include "common/programs/program.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>

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

enum status stage_flag_unknown(const char *value, const char *list, struct error *error) {
    return error_set(error, STATUS_INVALID_ARGUMENT,
                     "--stage '%s': unknown stage; choose one of %s", value, list);
}

/* ---- Interruption ---- */

static const int watched[] = {SIGINT, SIGTERM};
enum { WATCHED = sizeof watched / sizeof *watched };

static void on_signal(int number) {
    (void)number;
}

/* Needs no flag: the kernel resets the handler of a signal that came, and interrupt_seen() checks
   for that. */
void interrupt_watch(void) {
    for (size_t i = 0; i < WATCHED; i++) {
        struct sigaction before;
        const struct sigaction once = {.sa_handler = on_signal, .sa_flags = (int)SA_RESETHAND};
        if (sigaction(watched[i], NULL, &before) == 0 && before.sa_handler == SIG_DFL) {
            sigaction(watched[i], &once, NULL);
        }
    }
    signal(SIGPIPE, SIG_IGN);
}

int interrupt_seen(void) {
    for (size_t i = 0; i < WATCHED; i++) {
        struct sigaction now;
        if (sigaction(watched[i], NULL, &now) == 0 && now.sa_handler == SIG_DFL) {
            return watched[i];
        }
    }
    return 0;
}

/* ---- Output ---- */

enum status program_output_end(struct error *error) {
    return fflush(stdout) == 0 && !ferror(stdout)
               ? STATUS_OK
               : error_set(error, STATUS_IO, "cannot write to standard output");
}
