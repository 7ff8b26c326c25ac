#include "common/simt/simt.h"

#include <dlfcn.h>
#include <stddef.h>

bool simt_find(struct simt_api *api) {
    *api = (struct simt_api){.gpu_key = NULL};
    /* POSIX promises that a function's address fits an object pointer; ISO C does not. */
    void *key = dlsym(RTLD_DEFAULT, "simt_gpu_key");
    void *totals = dlsym(RTLD_DEFAULT, "simt_read_totals");
    void *limits = dlsym(RTLD_DEFAULT, "simt_read_limits");
    void *longest = dlsym(RTLD_DEFAULT, "simt_take_longest");
    void *name = dlsym(RTLD_DEFAULT, "simt_name");
    if (key == NULL || totals == NULL || limits == NULL || longest == NULL || name == NULL) {
        return false;
    }
    *(void **)&api->gpu_key = key;
    *(void **)&api->read_totals = totals;
    *(void **)&api->read_limits = limits;
    *(void **)&api->take_longest = longest;
    *(void **)&api->name = name;
    return true;
}

static void subtract(uint64_t *from, const uint64_t *what, size_t count) {
    for (size_t n = 0; n < count; n++) {
        from[n] -= what[n];
    }
}

struct simt_totals simt_totals_between(const struct simt_totals *before,
                                       const struct simt_totals *after) {
    struct simt_totals between = *after;
    /* Counts stand first, all of 64 bits; the time is last. */
    _Static_assert(offsetof(struct simt_totals, nanoseconds) ==
                       sizeof between - sizeof between.nanoseconds,
                   "nothing behind the time");
    subtract((uint64_t *)(void *)&between, (const uint64_t *)(const void *)before,
             offsetof(struct simt_totals, nanoseconds) / sizeof(uint64_t));
    between.nanoseconds = after->nanoseconds - before->nanoseconds;
    return between;
}
