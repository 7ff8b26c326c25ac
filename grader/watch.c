#include "grader/watch.h"

#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

struct signal_name {
    int number;
    const char *text;
};

static const struct signal_name signals[] = {
    {SIGSEGV, "crashed (SIGSEGV: it touched memory that is not there)"},
    {SIGBUS, "crashed (SIGBUS: it touched memory that is not there)"},
    {SIGFPE, "crashed (SIGFPE: a division of integers by zero)"},
    {SIGILL, "crashed (SIGILL: an instruction that this CPU does not have)"},
    {SIGABRT, "was stopped (SIGABRT: the line above says why, often damaged heap memory)"},
    {SIGALRM, "did not come to an end"},
};
enum { SIGNALS = sizeof signals / sizeof *signals };

/*
 * The one thing here that is neither constant nor handed in: a signal handler
 * gets no context of ours.
 */
static struct {
    char what[256];
    struct sigaction before[SIGNALS]; /* a sanitizer's handlers, or the system's */
    bool installed;
} watch;

/* May run at any point of the program: only write() and what is as harmless. */
static void say(const char *text) {
    if (write(STDOUT_FILENO, text, strlen(text)) < 0) {
        return; /* nobody to tell */
    }
}

/* Says what happened, then leaves it to whoever handled the signal before. */
static void on_signal(int number, siginfo_t *info, void *context) {
    (void)context;
    for (int i = 0; i < SIGNALS; i++) {
        if (signals[i].number == number) {
            say("Your code ");
            say(signals[i].text);
            say(" in: ");
            say(watch.what);
            say("\n");
            sigaction(number, &watch.before[i], NULL);
        }
    }
    /* A faulting instruction faults again; a signal that was sent is sent again. */
    if (info->si_code <= 0 || number == SIGALRM) {
        raise(number);
    }
}

static void install(void) {
    for (int i = 0; i < SIGNALS; i++) {
        struct sigaction action = {.sa_sigaction = on_signal, .sa_flags = SA_SIGINFO | SA_ONSTACK};
        sigemptyset(&action.sa_mask);
        sigaction(signals[i].number, &action, &watch.before[i]);
    }
    watch.installed = true;
}

void grader_watch(const char *what, unsigned seconds) {
    alarm(0);
    fflush(stdout); /* the line must come last */
    snprintf(watch.what, sizeof watch.what, "%.200s", what);
    if (!watch.installed) {
        install();
    }
    alarm(seconds);
}
