#include "common/programs/interrupt.h"

#include <signal.h>
#include <stddef.h>

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
