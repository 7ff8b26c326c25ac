#include "common/models/streaming_cache.h"

static void add_run(struct streaming_cache *c, size_t row, size_t rows, size_t place) {
    if (rows > 0) {
        c->runs[c->count++] = (struct streaming_run){row, rows, place};
    }
}

struct streaming_cache streaming_cache_at(size_t sinks, size_t recent, size_t position) {
    struct streaming_cache c = {.seen = position + 1, .row = position};
    if (position < sinks + recent) {
        add_run(&c, 0, c.seen, 0);
        return c;
    }
    size_t newest = (position - sinks) % recent, oldest = (newest + 1) % recent;
    c.seen = sinks + recent;
    c.row = sinks + newest;
    add_run(&c, 0, sinks, 0);
    add_run(&c, sinks + oldest, recent - oldest, sinks);
    add_run(&c, sinks, oldest, sinks + recent - oldest);
    return c;
}
