#include "common/testing/children.h"

#include <errno.h>
#include <sys/wait.h>
#include <time.h>

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

void children_rest(unsigned milliseconds) {
    const struct timespec t = {milliseconds / 1000, (long)(milliseconds % 1000) * 1000000};
    nanosleep(&t, NULL);
}

bool children_all_end(pid_t one, double seconds, int *status) {
    const double until = now() + seconds;
    while (now() < until) {
        int how = 0;
        pid_t ended = waitpid(-1, &how, WNOHANG);
        if (ended < 0 && errno == ECHILD) {
            return true;
        }
        if (ended == one) {
            *status = how;
        }
        if (ended == 0) {
            children_rest(1);
        }
    }
    return false;
}
