#include "grader/watch/events.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/signalfd.h>
#include <time.h>
#include <unistd.h>

/* Seconds without another save before one counts. */
static const double QUIET = 0.1;

enum {
    CHANGES = IN_CLOSE_WRITE | IN_MOVED_TO, /* editors that rename do not write the file itself */
    BUFFER = 16384
};

double events_now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

bool events_is_source(const char *name) {
    static const char *const ends[] = {".c", ".cu", ".cuh", ".h"};
    const char *end = strrchr(name, '.');
    for (size_t i = 0; end != NULL && name[0] != '.' && i < sizeof ends / sizeof *ends; i++) {
        if (strcmp(end, ends[i]) == 0) {
            return true;
        }
    }
    return false;
}

enum status events_open(struct events *events, bool keys, struct error *error) {
    static const int signals[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGCHLD, SIGWINCH};
    sigset_t set;
    *events = (struct events){.keys = keys};
    sigemptyset(&set);
    for (size_t i = 0; i < sizeof signals / sizeof *signals; i++) {
        sigaddset(&set, signals[i]);
    }
    sigprocmask(SIG_BLOCK, &set, NULL);
    events->signals = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
    events->notify = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
    return events->signals >= 0 && events->notify >= 0
               ? STATUS_OK
               : error_set(error, STATUS_IO, "cannot watch files: %s", strerror(errno));
}

/* Adds a folder, or nothing if it is watched already. */
static bool add_folder(struct events *events, const char *path, size_t lab) {
    int watch = inotify_add_watch(events->notify, path, CHANGES | IN_CREATE | IN_ONLYDIR);
    for (size_t i = 0; i < events->count; i++) {
        if (events->folders[i].watch == watch) {
            return watch >= 0;
        }
    }
    if (watch < 0 || events->count == EVENT_FOLDERS) {
        return false;
    }
    struct events_folder *folder = &events->folders[events->count++];
    *folder = (struct events_folder){.watch = watch, .lab = lab};
    snprintf(folder->path, sizeof folder->path, "%s", path);
    return true;
}

enum status events_watch(struct events *events, const char *workspace, const char *subject,
                         size_t lab, struct error *error) {
    char path[1100], steps[1200];
    snprintf(path, sizeof path, "%.900s/%.20s/%.60s", workspace, subject, lab_at(lab)->name);
    if (!add_folder(events, path, lab)) {
        return error_set(error, STATUS_IO, "%s: cannot be watched: %s", path, strerror(errno));
    }
    snprintf(steps, sizeof steps, "%s/steps", path);
    (void)add_folder(events, steps, lab); /* most labs have none */
    return STATUS_OK;
}

/* One change in a watched folder. */
static void note_change(struct events *events, const struct inotify_event *change) {
    for (size_t i = 0; i < events->count; i++) {
        struct events_folder *folder = &events->folders[i];
        bool here = folder->watch == change->wd && change->len > 0;
        if (here && (change->mask & IN_ISDIR) != 0 && strcmp(change->name, "steps") == 0) {
            char path[1300];
            snprintf(path, sizeof path, "%s/steps", folder->path);
            (void)add_folder(events, path, folder->lab);
        } else if (!here || (change->mask & CHANGES) == 0 || !events_is_source(change->name)) {
            continue;
        }
        events->saved[folder->lab] =
            true; /* a new steps/ may have had files before it was watched */
        events->last_save = events_now();
        return;
    }
}

static void read_changes(struct events *events) {
    _Alignas(struct inotify_event) char buffer[BUFFER];
    ssize_t got = read(events->notify, buffer, sizeof buffer);
    for (ssize_t at = 0; at < got;) {
        struct inotify_event change;
        memcpy(&change, buffer + at, sizeof change);
        note_change(events, (const struct inotify_event *)(const void *)(buffer + at));
        at += (ssize_t)(sizeof change + change.len);
    }
}

/* A character, or an arrow's sequence. */
static void read_key(struct events *events, struct event *event) {
    char bytes[16];
    ssize_t got = read(STDIN_FILENO, bytes, sizeof bytes);
    if (got <= 0) {
        events->keys = got < 0 && errno == EINTR;
        return;
    }
    bool arrow = got >= 3 && bytes[0] == '\033' && (bytes[1] == '[' || bytes[1] == 'O');
    event->kind = EVENT_KEY;
    event->key = !arrow ? bytes[0] : bytes[2] == 'A' ? KEY_UP : bytes[2] == 'B' ? KEY_DOWN : 0;
}

static void read_signal(struct events *events, struct event *event) {
    struct signalfd_siginfo info;
    if (read(events->signals, &info, sizeof info) != (ssize_t)sizeof info) {
        return;
    }
    int number = (int)info.ssi_signo;
    event->kind = number == SIGCHLD ? EVENT_CHILD : number == SIGWINCH ? EVENT_RESIZED : EVENT_QUIT;
    event->signal = number;
}

/* A save that is over. */
static bool take_save(struct events *events, struct event *event) {
    for (size_t i = 0; i < LAB_COUNT; i++) {
        if (events->saved[i] && events_now() - events->last_save >= QUIET) {
            events->saved[i] = false;
            event->kind = EVENT_SAVED;
            event->lab = i;
            return true;
        }
    }
    return false;
}

static bool is_saving(const struct events *events) {
    for (size_t i = 0; i < LAB_COUNT; i++) {
        if (events->saved[i]) {
            return true;
        }
    }
    return false;
}

void events_wait(struct events *events, double seconds, struct event *event) {
    double until = events_now() + seconds;
    *event = (struct event){.kind = EVENT_TIME};
    while (event->kind == EVENT_TIME && !take_save(events, event)) {
        double now = events_now();
        double wake = is_saving(events) ? events->last_save + QUIET : until;
        struct pollfd files[] = {
            {.fd = events->signals, .events = POLLIN},
            {.fd = events->notify, .events = POLLIN},
            {.fd = events->keys ? STDIN_FILENO : -1, .events = POLLIN},
        };
        if (now >= until && wake >= until) {
            return;
        }
        wake = wake < until ? wake : until;
        (void)poll(files, 3, wake > now ? (int)(1e3 * (wake - now)) + 1 : 0);
        if (files[1].revents != 0) {
            read_changes(events);
        }
        if (files[0].revents != 0) {
            read_signal(events, event);
        } else if (files[2].revents != 0) {
            read_key(events, event);
        }
    }
}

void events_close(struct events *events) {
    close(events->notify);
    close(events->signals);
}
