/**
 * @file team_attention.cu
 * @brief Launches the attention of steps v3 and v4.
 */
#include <stdint.h>

#include "common/base/checked.h"
#include "solutions/14_endless_text/steps/ladder.h"
#include "solutions/14_endless_text/steps/team_attention.cuh"

enum { GROUP = 4 /* query heads of a block */ };

static int lanes_of(size_t HS) {
    int lanes = 1;
    while ((size_t)lanes * CHANNELS < HS) {
        lanes *= 2;
    }
    return lanes;
}

/* As many splits as run at a time, have enough places, and fit the workspace. */
static int splits_of(const struct endless_attention *a, int bundles) {
    size_t rows = a->sinks + a->window;
    size_t room = (ENDLESS_WORKSPACE_BYTES - COUNTER_BYTES) / sizeof(float) / (a->NH * (a->HS + 2));
    size_t splits = ceil_div((size_t)SPLIT_BLOCKS, (size_t)bundles);
    splits = splits < rows / SPLIT_PLACES ? splits : rows / SPLIT_PLACES;
    splits = splits < room ? splits : room;
    splits = splits < MOST_SPLITS ? splits : MOST_SPLITS;
    return splits > 1 ? (int)splits : 1;
}

template <typename E>
static void launch_team(const struct endless_attention &a, const struct team_plan &plan,
                        bool vector, bool several, device_stream stream) {
    dim3 blocks((unsigned)(plan.bundles * plan.splits)), threads(TEAM_THREADS);
    if (several) {
        launch_dependent<team_kernel<E, true, GROUP>>(blocks, threads, 0, stream, a, plan);
    } else if (vector) {
        launch_dependent<team_kernel<E, true, 1>>(blocks, threads, 0, stream, a, plan);
    } else {
        launch_dependent<team_kernel<E, false, 1>>(blocks, threads, 0, stream, a, plan);
    }
}

enum status endless_team_attention(const struct endless_attention *attention, void *workspace,
                                   bool split, device_stream stream, struct error *error) {
    TRY(endless_attention_check(attention, error));
    const struct endless_attention &a = *attention;
    size_t group = a.NH / a.KVH;
    bool vector = a.HS % CHANNELS == 0 && (uintptr_t)a.k % 16 == 0 && (uintptr_t)a.v % 16 == 0;
    bool several = vector && group > 1;
    struct team_plan plan = {};
    plan.lanes = lanes_of(a.HS);
    plan.bundles = (int)(a.KVH * ceil_div(group, several ? GROUP : 1));
    plan.splits = split ? splits_of(&a, plan.bundles) : 1;
    plan.counters = (unsigned *)workspace;
    plan.partials = (float *)((char *)workspace + COUNTER_BYTES);
    FOR_ELEMENT_TYPE(a.dtype, (launch_team<E>(a, plan, vector, several, stream)));
    return device_launched("attention", error);
}
