#include "common/base/terminal.h"

#include <stdlib.h>
#include <unistd.h>

bool terminal_has_colour(FILE *stream) {
    const char *off = getenv("NO_COLOR");
    return isatty(fileno(stream)) && (off == NULL || off[0] == '\0');
}

const char *terminal_colour(FILE *stream, enum colour colour) {
    static const char *const sequences[] = {"\033[31m", "\033[32m", "\033[33m", "\033[1m"};
    return terminal_has_colour(stream) ? sequences[colour] : "";
}

const char *terminal_plain(FILE *stream) {
    return terminal_has_colour(stream) ? "\033[0m" : "";
}

static double seconds_since(const struct timespec *start, const struct timespec *now) {
    return (double)(now->tv_sec - start->tv_sec) + 1e-9 * (double)(now->tv_nsec - start->tv_nsec);
}

struct progress progress_create(const char *what, size_t total) {
    struct progress progress = {.what = what, .total = total};
    progress.visible = isatty(STDERR_FILENO);
    clock_gettime(CLOCK_MONOTONIC, &progress.start);
    progress.shown = progress.start;
    return progress;
}

void progress_update(struct progress *progress, size_t done) {
    if (!progress->visible || done == 0) {
        return;
    }
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    double elapsed = seconds_since(&progress->start, &now);
    if (elapsed < 2.0 || seconds_since(&progress->shown, &now) < 0.1) {
        return;
    }
    progress->shown = now;
    double left = elapsed / (double)done * (double)(progress->total - done);
    fprintf(stderr, "\r%s %zu/%zu, %.0f s left \033[K", progress->what, done, progress->total,
            left);
    fflush(stderr);
}

void progress_finish(struct progress *progress) {
    if (progress->visible) {
        fputs("\r\033[K", stderr);
        fflush(stderr);
    }
}

int report_failure(const char *program, const struct error *error, enum status status) {
    fprintf(stderr, "%s: %s\n", program, error_text(error, status));
    return 1;
}
