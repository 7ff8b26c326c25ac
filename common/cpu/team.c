#include "common/cpu/team.h"

#include <string.h>
#include <time.h>

enum { FEWER, MORE };

/* Seconds; counts of calls. */
static const double SHORTEST_WAIT = 0.05, LONGEST_WAIT = 2.0;
static const double WINDOW = 0.05;          /* of work that the usual time is a mean of */
static const double TRIAL = 0.004;          /* of work that a trial measures */
static const double WARM_UP = 0.0002;       /* threads that slept start more slowly */
static const double LOST = 0.002;           /* more than this above the expectation ends a trial */
static const double STALL = 0.0005;         /* a call that takes so much longer was interrupted */
static const double TRIALS_IN_TIME = 50.0;  /* a trial is at most one part of so many */
static const double GAIN = 0.95;            /* what a trial must reach to be kept */
enum { TRIAL_CALLS = 4, STEADY_CALLS = 8 }; /* least of a trial; of a mean that can be trusted */

struct team cpu_team_create(int most) {
    return (struct team){.most = most, .now = most, .wait = {SHORTEST_WAIT, SHORTEST_WAIT}};
}

/* Where there are more kinds than places, some lose theirs again and again. */
static struct team_kind *kind_of(struct team *team, uint64_t key) {
    size_t place = 0;
    while (place < TEAM_KINDS && team->kinds[place].key != key && team->kinds[place].calls > 0) {
        place++;
    }
    place = place < TEAM_KINDS ? place : key % TEAM_KINDS;
    if (team->kinds[place].key != key) {
        team->kinds[place] = (struct team_kind){.key = key};
    }
    return &team->kinds[place];
}

/* Seconds that so much work takes with the present number of threads. */
static double usual(const struct team_kind *kind, double work) {
    return kind->seconds / kind->work * work;
}

static int other(const struct team *team, int direction) {
    int more = team->now > team->most / 2 ? team->most : team->now * 2;
    return direction == FEWER ? team->now / 2 : more;
}

static bool possible(const struct team *team, int direction) {
    return direction == FEWER ? team->now > 1 : team->now < team->most;
}

static double longer(double wait) {
    return wait * 2.0 < LONGEST_WAIT ? wait * 2.0 : LONGEST_WAIT;
}

static double larger(double a, double b) {
    return a > b ? a : b;
}

static void begin_trial(struct team *team, double now) {
    for (int direction = FEWER; direction <= MORE; direction++) {
        if (possible(team, direction) && now >= team->next[direction]) {
            team->trial = (struct team_trial){.threads = other(team, direction), .start = now};
            return;
        }
    }
}

/* The trial's number becomes the present one. A change that is soon taken back is tried less and
   less often. */
static void adopt(struct team *team, int direction, double now) {
    int back = direction == FEWER ? MORE : FEWER;
    team->wait[back] = now - team->changed < 1.0 ? longer(team->wait[back]) : SHORTEST_WAIT;
    team->wait[direction] = SHORTEST_WAIT;
    team->now = team->trial.threads;
    team->changed = now;
    memset(team->kinds, 0, sizeof team->kinds);
}

static void end_trial(struct team *team, double now) {
    const struct team_trial *trial = &team->trial;
    int direction = trial->threads < team->now ? FEWER : MORE;
    double took = now - trial->start;
    if (trial->spent < GAIN * trial->expected) {
        adopt(team, direction, now);
    } else {
        team->wait[direction] = longer(team->wait[direction]);
    }
    for (int i = FEWER; i <= MORE; i++) {
        team->next[i] = larger(team->next[i], now + larger(team->wait[i], TRIALS_IN_TIME * took));
    }
    team->trial.threads = 0;
}

/* A trial that meets calls of which the usual time is not known, as the first tokens after a prompt
   are, is given up: it would go on until it has seen enough of the others. */
static void give_up_trial(struct team *team, double now) {
    int direction = team->trial.threads < team->now ? FEWER : MORE;
    team->next[direction] = now + team->wait[direction];
    team->trial.threads = 0;
}

/* Calls that wake the threads add nothing. */
static void add_to_trial(struct team *team, const struct team_kind *kind, double work, double start,
                         double end) {
    struct team_trial *trial = &team->trial;
    if (kind->calls == 0) {
        give_up_trial(team, end);
        return;
    }
    if (start - trial->start >= WARM_UP) {
        trial->spent += end - start;
        trial->expected += usual(kind, work);
        trial->calls++;
    }
    bool enough = trial->calls >= TRIAL_CALLS && trial->expected >= TRIAL;
    if (enough || trial->spent > trial->expected + LOST + trial->expected / 2 ||
        end - trial->start > 1.0) {
        end_trial(team, end);
    }
}

static void add_steady(struct team *team, struct team_kind *kind, double work, double start,
                       double end) {
    double seconds = end - start;
    if (team->next[FEWER] == 0.0) { /* the first call: the weights are still to be paged in */
        team->next[FEWER] = end + SHORTEST_WAIT;
    }
    if (kind->calls >= STEADY_CALLS && seconds > 4.0 * usual(kind, work) + STALL) {
        team->wait[FEWER] = SHORTEST_WAIT;
        if (end - team->changed > SHORTEST_WAIT) {
            team->next[FEWER] = end; /* try fewer at once */
        }
    }
    double kept = kind->calls == 0 ? 0.0 : kind->seconds > WINDOW ? 0.5 : 1.0;
    kind->seconds = kept * kind->seconds + seconds;
    kind->work = kept * kind->work + work;
    kind->calls += kind->calls < STEADY_CALLS;
    if (kind->calls >= STEADY_CALLS) {
        begin_trial(team, end);
    }
}

void cpu_team_add(struct team *team, uint64_t key, double work, double start, double end) {
    if (team->most == 1) {
        return;
    }
    struct team_kind *kind = kind_of(team, key);
    if (team->trial.threads > 0) {
        add_to_trial(team, kind, work, start, end);
    } else {
        add_steady(team, kind, work, start, end);
    }
}

double cpu_team_now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}
