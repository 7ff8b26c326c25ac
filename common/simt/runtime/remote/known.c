#include "common/simt/runtime/remote/known.h"

#include <stdlib.h>
#include <string.h>

/** @return how many ranges begin at a number or below it */
static size_t count_to(const struct known *known, uint64_t number) {
    size_t low = 0, high = known->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (known->ranges[middle].begin <= number) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

static void remove_at(struct known *known, size_t index) {
    struct known_range *at = known->ranges + index;
    known->count--;
    memmove(at, at + 1, (known->count - index) * sizeof *at);
}

static bool overlaps(const struct known_range *range, uint64_t begin, uint64_t bytes) {
    return range->begin < begin + bytes && begin < range->begin + range->bytes;
}

static bool make_room(struct known *known) {
    size_t room = known->room > 0 ? 2 * known->room : 64;
    if (known->count < known->room) {
        return true;
    }
    struct known_range *ranges = realloc(known->ranges, room * sizeof *ranges);
    if (ranges == NULL) {
        return false;
    }
    known->ranges = ranges;
    known->room = room;
    return true;
}

void known_add(struct known *known, uint64_t begin, uint64_t bytes) {
    size_t index = count_to(known, begin);
    if (bytes == 0 || begin + bytes < begin) {
        return;
    }
    if (index > 0 && overlaps(&known->ranges[index - 1], begin, bytes)) {
        remove_at(known, --index);
    }
    while (index < known->count && overlaps(&known->ranges[index], begin, bytes)) {
        remove_at(known, index);
    }
    if (make_room(known)) {
        struct known_range *at = known->ranges + index;
        memmove(at + 1, at, (known->count - index) * sizeof *at);
        *at = (struct known_range){begin, bytes};
        known->count++;
    }
}

bool known_has(const struct known *known, uint64_t begin) {
    size_t index = count_to(known, begin);
    return index > 0 && known->ranges[index - 1].begin == begin;
}

bool known_remove(struct known *known, uint64_t begin) {
    if (!known_has(known, begin)) {
        return false;
    }
    remove_at(known, count_to(known, begin) - 1);
    return true;
}

bool known_holds(const struct known *known, uint64_t begin, uint64_t bytes) {
    size_t index = count_to(known, begin);
    if (index == 0) {
        return false;
    }
    uint64_t offset = begin - known->ranges[index - 1].begin;
    return offset < known->ranges[index - 1].bytes &&
           bytes <= known->ranges[index - 1].bytes - offset;
}

void known_clear(struct known *known) {
    free(known->ranges);
    *known = (struct known){0};
}
