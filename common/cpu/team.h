/**
 * @file team.h
 * @brief How many threads to use, found by measuring: all of them on an idle machine, fewer beside
 *        other work.
 *
 * The threads of a parallel loop wait for the slowest. Where another process runs on one of the
 * cores, that one comes milliseconds late, again and again: two threads were up to 30 times slower
 * than one. The system does not say in advance which cores are free, so the team times its work.
 * At times it tries half or twice the number of threads for a few milliseconds, and keeps what was
 * faster. Trials take at most a fiftieth of the time.
 *
 * The work is the matmuls of a model: calls of one kind take time in proportion to their products.
 */
#ifndef WARPBOOK_COMMON_CPU_TEAM_H_
#define WARPBOOK_COMMON_CPU_TEAM_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    TEAM_KINDS = 16,
    /* Work below which waking threads costs more than they save: products of a matmul, vector
       operations of anything else. */
    TEAM_LEAST_PRODUCTS = 1 << 16,
    TEAM_LEAST_OPERATIONS = 1 << 17
};

/** The last calls of one kind with the present number of threads. */
struct team_kind {
    uint64_t key;
    double seconds, work; /**< sums; older calls count less */
    uint32_t calls;       /**< up to the number that can be trusted; 0: none yet */
};

/** A trial of another number of threads; calls is 0 before the first call. */
struct team_trial {
    int threads; /**< 0: no trial at present */
    double start;
    double spent;    /**< seconds */
    double expected; /**< seconds of the same calls with the present number */
    uint32_t calls;
};

struct team {
    int most; /**< threads to use at most */
    int now;  /**< in use, outside of trials */
    struct team_kind kinds[TEAM_KINDS];
    struct team_trial trial;
    double next[2]; /**< when to try fewer, and when to try more */
    double wait[2]; /**< seconds from one such trial to the next */
    double changed; /**< when `now` changed last */
};

/** @param most at least 1 */
struct team cpu_team_create(int most);

/** @return how many threads the next call is to use. */
static inline int cpu_team_threads(const struct team *team) {
    return team->trial.threads > 0 ? team->trial.threads : team->now;
}

/**
 * @brief Learns from a call that used cpu_team_threads().
 * @param key   of its kind, such as the shape of its weight
 * @param work  its amount of work, above 0
 * @param start when it started and ended, in seconds of any clock that does not go back
 */
void cpu_team_add(struct team *team, uint64_t key, double work, double start, double end);

/** @return the key of a matmul: its weight's shape, and the number of rows up to a factor of two.
 */
static inline uint64_t cpu_team_kind_of(size_t M, size_t N, size_t K) {
    uint64_t bits = M > 0 ? 64 - (uint64_t)__builtin_clzll((unsigned long long)M) : 0;
    return (bits << 58) ^ ((uint64_t)N << 29) ^ (uint64_t)K;
}

/** @return seconds of a clock that does not go back */
double cpu_team_now(void);

#endif
