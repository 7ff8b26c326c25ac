/**
 * @file occurrences.c
 * @brief Counting sort of rows by id, cut into pieces.
 */
#include "common/train/occurrences.h"

#include <string.h>

#include "common/base/checked.h"

size_t train_occurrences_most(size_t count) {
    size_t elements; /* rows, pieces, firsts and ids have at most `count` each, and two ends */
    if (!checked_multiply(count, 4, &elements) || !checked_add(elements, 2, &elements)) {
        return SIZE_MAX;
    }
    return elements;
}

size_t train_occurrences_used(const struct train_occurrences *o) {
    return o->count + (o->piece_count + 1) + (o->id_count + 1) + o->id_count;
}

struct train_occurrences train_occurrences_at(const struct train_occurrences *occurrences,
                                              const void *block) {
    struct train_occurrences moved = *occurrences;
    moved.rows = block;
    moved.pieces = moved.rows + moved.count;
    moved.firsts = moved.pieces + moved.piece_count + 1;
    moved.ids = moved.firsts + moved.id_count + 1;
    return moved;
}

/* Checks the ids and counts each. @param counts (V) */
static enum status count_ids(int32_t *counts, const int32_t *ids, size_t count, size_t V,
                             struct error *error) {
    if (count > INT32_MAX) {
        return error_set(error, STATUS_TOO_LONG, "%zu rows are more than the %d that have a place",
                         count, INT32_MAX);
    }
    if (V > 0) {
        memset(counts, 0, V * sizeof *counts);
    }
    for (size_t row = 0; row < count; row++) {
        if (ids[row] < 0 || (size_t)ids[row] >= V) {
            return error_set(error, STATUS_INVALID_ARGUMENT,
                             "row %zu has id %d, but the table has rows 0 to below %zu", row,
                             ids[row], V);
        }
        counts[ids[row]]++;
    }
    return STATUS_OK;
}

/* Numbers of ids that occur and of their pieces. */
static void count_pieces(struct train_occurrences *o, const int32_t *counts, size_t V) {
    o->id_count = o->piece_count = 0;
    for (size_t id = 0; id < V; id++) {
        o->id_count += counts[id] > 0;
        o->piece_count += ceil_div((size_t)counts[id], TRAIN_PIECE);
    }
}

/* Fills pieces, firsts and ids. counts become where each id's rows begin. */
static void cut(int32_t *pieces, int32_t *firsts, int32_t *ids, int32_t *counts, size_t V) {
    int32_t row = 0, piece = 0;
    for (size_t id = 0; id < V; id++) {
        int32_t count = counts[id], end = row + count;
        counts[id] = row;
        if (count == 0) {
            continue;
        }
        *ids++ = (int32_t)id;
        *firsts++ = piece;
        for (; row < end; piece++) {
            pieces[piece] = row;
            row = end - row < TRAIN_PIECE ? end : row + TRAIN_PIECE;
        }
    }
    *firsts = piece;
    pieces[piece] = row;
}

enum status train_occurrences_build(struct train_occurrences *occurrences, int32_t *block,
                                    int32_t *counts, const int32_t *ids, size_t count, size_t V,
                                    struct error *error) {
    *occurrences = (struct train_occurrences){0};
    TRY(count_ids(counts, ids, count, V, error));
    struct train_occurrences sizes = {.count = count};
    count_pieces(&sizes, counts, V);
    *occurrences = train_occurrences_at(&sizes, block);
    int32_t *pieces = block + count;
    int32_t *firsts = pieces + sizes.piece_count + 1;
    cut(pieces, firsts, firsts + sizes.id_count + 1, counts, V);
    for (size_t row = 0; row < count; row++) {
        block[counts[ids[row]]++] = (int32_t)row;
    }
    return STATUS_OK;
}
