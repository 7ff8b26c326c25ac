#include "common/testing/device_buffer.h"

#include <stdlib.h>
#include <string.h>

/* A buffer is read in pieces that stay in the CPU's caches. */
enum { PIECE_BYTES = 1 << 20 };

static size_t block_bytes(const struct device_buffer *buffer) {
    return buffer->before + buffer->bytes + buffer->after;
}

static enum status create(struct device_buffer *buffer, size_t bytes, bool guarded, size_t skew,
                          uint32_t poison, struct error *error) {
    size_t guard = guarded ? DEVICE_BUFFER_GUARD * sizeof(float) : 0;
    *buffer = (struct device_buffer){.count = bytes / sizeof(float),
                                     .bytes = bytes,
                                     .before = guard + skew,
                                     .after = guard,
                                     .poison = poison};
    size_t all = block_bytes(buffer);
    buffer->expect = malloc(all + 1);
    if (buffer->expect == NULL) {
        return error_set(error, STATUS_OUT_OF_MEMORY, "the grader is out of memory");
    }
    TRY(device_alloc(&buffer->block, all, error));
    if (all == 0) {
        return STATUS_OK;
    }
    buffer->data = (float *)((char *)buffer->block + buffer->before);
    return device_buffer_put(buffer, NULL, error);
}

enum status device_buffer_create(struct device_buffer *buffer, size_t count, bool guarded,
                                 size_t skew, struct error *error) {
    return create(buffer, count * sizeof(float), guarded, skew * sizeof(float), 0x7fc00000, error);
}

enum status device_buffer_create_bytes(struct device_buffer *buffer, size_t bytes, bool guarded,
                                       size_t skew, struct error *error) {
    return create(buffer, bytes, guarded, skew, 0xffffffff, error);
}

/* Writes the poison's bytes; `first` counts them from the block's beginning. */
static void fill_poison(const struct device_buffer *buffer, size_t first, size_t bytes) {
    unsigned char *to = (unsigned char *)buffer->expect + first;
    unsigned char pattern[sizeof buffer->poison];
    for (size_t i = 0; i < sizeof pattern; i++) {
        pattern[i] = (unsigned char)(buffer->poison >> 8 * ((first + i) % sizeof pattern));
    }
    for (size_t done = 0; done < bytes;) { /* what is there already is doubled */
        size_t left = bytes - done;
        const void *from = done < sizeof pattern ? pattern : to;
        size_t most = done < sizeof pattern ? sizeof pattern : done;
        memcpy(to + done, from, left < most ? left : most);
        done += left < most ? left : most;
    }
}

enum status device_buffer_put(struct device_buffer *buffer, const void *values,
                              struct error *error) {
    size_t before = buffer->before, bytes = buffer->bytes, all = block_bytes(buffer);
    fill_poison(buffer, 0, values != NULL ? before : all);
    if (values != NULL) {
        memcpy((char *)buffer->expect + before, values, bytes);
        fill_poison(buffer, before + bytes, buffer->after);
    }
    return all == 0 ? STATUS_OK : device_write(buffer->block, buffer->expect, all, NULL, error);
}

/* Part of a block that was read. */
struct piece {
    size_t first, end; /* bytes from the block's beginning */
    const unsigned char *bytes;
};

/* The piece cut down to what lies in [first, end). */
static struct piece cut(struct piece piece, size_t first, size_t end) {
    size_t from = piece.first > first ? piece.first : first;
    size_t to = piece.end < end ? piece.end : end;
    return to > from ? (struct piece){from, to, piece.bytes + (from - piece.first)}
                     : (struct piece){from, from, piece.bytes};
}

static bool as_expected(const struct device_buffer *buffer, struct piece piece) {
    return memcmp(piece.bytes, (const char *)buffer->expect + piece.first,
                  piece.end - piece.first) == 0;
}

/* Compares a piece with what it must hold, and copies its data. */
static void look_at(const struct device_buffer *buffer, struct piece piece, void *values,
                    bool *intact, bool *changed) {
    const size_t data = buffer->before, end = data + buffer->bytes;
    const struct piece inside = cut(piece, data, end);
    *intact = *intact && as_expected(buffer, cut(piece, 0, data)) &&
              as_expected(buffer, cut(piece, end, block_bytes(buffer)));
    *changed = *changed || !as_expected(buffer, inside);
    if (values != NULL && inside.end > inside.first) {
        memcpy((char *)values + (inside.first - data), inside.bytes, inside.end - inside.first);
    }
}

static enum status get(const struct device_buffer *buffer, unsigned char *room, void *values,
                       bool *intact, bool *changed, struct error *error) {
    const size_t all = block_bytes(buffer);
    *intact = true;
    *changed = false;
    for (size_t at = 0; at < all; at += PIECE_BYTES) {
        const struct piece piece = {at, all - at < PIECE_BYTES ? all : at + PIECE_BYTES, room};
        TRY(device_read(room, (const char *)buffer->block + at, piece.end - at, NULL, error));
        look_at(buffer, piece, values, intact, changed);
    }
    return STATUS_OK;
}

enum status device_buffer_get(const struct device_buffer *buffer, void *values, bool *intact,
                              bool *changed, struct error *error) {
    size_t all = block_bytes(buffer);
    unsigned char *room = malloc(all < PIECE_BYTES ? all + 1 : PIECE_BYTES);
    if (room == NULL) {
        return error_set(error, STATUS_OUT_OF_MEMORY, "the grader is out of memory");
    }
    enum status status = get(buffer, room, values, intact, changed, error);
    free(room);
    return status;
}

void device_buffer_free(struct device_buffer *buffer) {
    device_free(buffer->block);
    free(buffer->expect);
    *buffer = (struct device_buffer){0};
}
