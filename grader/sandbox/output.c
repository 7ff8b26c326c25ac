#include "grader/sandbox/output.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* The beginning fills the first half; the second half is a ring of what came after. */
enum { HALF = SANDBOX_KEPT / 2 };

void output_add(struct sandbox_output *output, const char *bytes, size_t count) {
    while (count > 0) {
        size_t at = output->total < HALF ? (size_t)output->total : HALF + (output->total % HALF);
        size_t room = (at < HALF ? HALF : SANDBOX_KEPT) - at;
        size_t part = count < room ? count : room;
        memcpy(output->text + at, bytes, part);
        output->total += part;
        bytes += part;
        count -= part;
    }
}

void output_end(struct sandbox_output *output) {
    if (output->total <= SANDBOX_KEPT) {
        output->size = (size_t)output->total;
        output->text[output->size] = '\0';
        return;
    }
    char ring[HALF];
    memcpy(ring, output->text + HALF, HALF);
    size_t oldest = output->total % HALF;
    output->missed = output->total - SANDBOX_KEPT;
    char *next = output->text + HALF;
    next += sprintf(next, "\n[%" PRIu64 " bytes left out]\n", output->missed);
    memcpy(next, ring + oldest, HALF - oldest);
    memcpy(next + HALF - oldest, ring, oldest);
    next[HALF] = '\0';
    output->size = (size_t)(next + HALF - output->text);
}
