#include "common/simt/core/launch/sample.h"

#include "common/simt/core/draw.h"

enum { WINDOW = 32, LEAST = 8, LAUNCHES = 64 };

bool simt_sample_is_whole(uint64_t seed, uint64_t launch) {
    return simt_draw(seed, launch) % LAUNCHES == 0;
}

bool simt_sample_has(const struct simt_sample *sample, uint64_t gang) {
    uint64_t window = gang / WINDOW, first = window * WINDOW;
    uint64_t left = sample->gangs - first;
    uint64_t size = left > WINDOW ? WINDOW : left > LEAST ? left : LEAST;
    return sample->some && first + simt_draw(sample->seed, window) % size == gang;
}
