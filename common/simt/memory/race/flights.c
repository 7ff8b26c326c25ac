#include "common/simt/memory/race/shadow.h"

#include <stdlib.h>

#include "common/base/grow.h"

enum { WARPGROUP = 128 }; /* threads */

struct simt_flights {
    struct simt_flight *list; /* (count), in the order of their beginnings */
    size_t count, room;
    uint64_t next;
};

void simt_flights_free(struct simt_flights *flights) {
    if (flights != NULL) {
        free(flights->list);
        free(flights);
    }
}

void simt_flights_reset(struct simt_flights *flights) {
    if (flights != NULL) {
        flights->count = 0;
    }
}

uint64_t simt_flights_begin(struct simt_shadow *shadow, const struct simt_flight *flight) {
    if (shadow->flights == NULL) {
        shadow->flights = calloc(1, sizeof *shadow->flights);
    }
    struct simt_flights *f = shadow->flights;
    if (flight->begin >= flight->end || flight->end > shadow->shared_bytes || f == NULL ||
        !array_grow(&f->list, &f->room, f->count + 1, sizeof *f->list)) {
        return 0;
    }
    if (flight->kind == SIMT_FLIGHT_LOAD) {
        simt_shadow_unmark(shadow, flight->begin, flight->end - flight->begin);
    }
    f->list[f->count] = *flight;
    f->list[f->count++].number = ++f->next;
    return f->next;
}

void simt_flights_end(struct simt_shadow *shadow, uint64_t number) {
    struct simt_flights *f = shadow->flights;
    size_t kept = 0;
    for (size_t n = 0; f != NULL && n < f->count; n++) {
        if (f->list[n].number != number) {
            f->list[kept++] = f->list[n];
        }
    }
    if (f != NULL) {
        f->count = kept;
    }
}

void simt_flights_end_products(struct simt_shadow *shadow, const struct simt_block *block,
                               uint32_t warp, uint32_t group) {
    struct simt_flights *f = shadow->flights;
    size_t kept = 0;
    for (size_t n = 0; f != NULL && n < f->count; n++) {
        const struct simt_flight *flight = &f->list[n];
        bool over = flight->kind == SIMT_FLIGHT_PRODUCT && flight->block == block &&
                    flight->thread / WARPGROUP == warp * SIMT_LANES / WARPGROUP &&
                    flight->group <= group;
        if (!over) {
            f->list[kept++] = f->list[n];
        }
    }
    if (f != NULL) {
        f->count = kept;
    }
}

const struct simt_flight *simt_flights_find(const struct simt_shadow *shadow, uint64_t begin,
                                            uint64_t end, bool writes) {
    const struct simt_flights *f = shadow->flights;
    for (size_t n = 0; f != NULL && n < f->count; n++) {
        const struct simt_flight *flight = &f->list[n];
        if (flight->begin < end && begin < flight->end &&
            (writes || flight->kind == SIMT_FLIGHT_LOAD) &&
            (flight->covers == NULL || flight->covers(flight, begin, end))) {
            return flight;
        }
    }
    return NULL;
}
