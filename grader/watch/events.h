/**
 * @file events.h
 * @brief What the program waits for: saved files, keys, the end of its child, signals, time.
 */
#ifndef WARPBOOK_GRADER_WATCH_EVENTS_H_
#define WARPBOOK_GRADER_WATCH_EVENTS_H_

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "common/base/status.h"
#include "grader/report/labs.h"

enum event_kind {
    EVENT_TIME,    /**< nothing else within the time */
    EVENT_SAVED,   /**< a source of `lab` was written, and nothing more since a moment */
    EVENT_KEY,     /**< `key` */
    EVENT_CHILD,   /**< a child may have ended */
    EVENT_RESIZED, /**< the terminal has another size */
    EVENT_QUIT     /**< `signal`: SIGINT, SIGTERM, SIGHUP or SIGQUIT */
};

/** Keys that are no characters. */
enum event_key { KEY_UP = 256, KEY_DOWN };

struct event {
    enum event_kind kind;
    size_t lab; /**< index, see lab_at() */
    int key;
    int signal;
};

enum { EVENT_FOLDERS = 2 * LAB_COUNT };

/** Zero-initialised but for descriptors, which events_open() sets. */
struct events {
    int notify, signals;
    bool keys; /**< standard input is read */
    struct events_folder {
        int watch;
        size_t lab;
        char path[1200];
    } folders[EVENT_FOLDERS];
    size_t count;
    bool saved[LAB_COUNT]; /**< since the last EVENT_SAVED of the lab */
    double last_save;      /**< seconds, monotonic */
};

/** @return seconds of a clock that never goes back. */
double events_now(void);

/**
 * @brief Blocks the signals it reports and opens what it waits with.
 * @param keys whether standard input is read; at its end, no more
 */
MUST_CHECK enum status events_open(struct events *events, bool keys, struct error *error);

/** Watches a lab's folder, and steps/ in it if it is there: SUBJECT/NAME of the workspace. */
MUST_CHECK enum status events_watch(struct events *events, const char *workspace,
                                    const char *subject, size_t lab, struct error *error);

/**
 * @brief Waits for the next event. Saves are reported once no other came for 0.1 s, as editors
 *        write a file in several steps.
 * @param seconds at most
 */
void events_wait(struct events *events, double seconds, struct event *event);

/** Closes all; signals stay blocked. */
void events_close(struct events *events);

/** @return whether a file of that name is a lab's source: .c, .cu, .cuh or .h, no editor's copy. */
bool events_is_source(const char *name);

#endif
