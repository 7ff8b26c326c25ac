/* Rows and places against a cache that is a plain list of tokens. */
#include "common/models/streaming_cache.h"

#include <string.h>

#include "common/testing/testing.h"

enum { MOST = 12 };

/* The place that the runs give to a row; MOST + 1: none. */
static size_t place_of(const struct streaming_cache *c, size_t row) {
    for (size_t i = 0; i < c->count; i++) {
        const struct streaming_run *r = &c->runs[i];
        if (row >= r->row && row < r->row + r->rows) {
            return r->place + row - r->row;
        }
    }
    return MOST + 1;
}

/* Feeds a text: which token each row holds, and which place it must have by the order of the text.
 */
static void check_text(size_t sinks, size_t recent) {
    size_t token_in[MOST];
    memset(token_in, 0xff, sizeof token_in);
    for (size_t position = 0; position < 5 * (sinks + recent); position++) {
        struct streaming_cache c = streaming_cache_at(sinks, recent, position);
        size_t most = sinks + recent, seen = position + 1 < most ? position + 1 : most;
        EXPECT_INT_EQ(seen, c.seen);
        ASSERT_TRUE(c.row < most);
        token_in[c.row] = position;
        for (size_t row = 0; row < seen; row++) {
            size_t token = token_in[row];
            bool sink = token < sinks, near = position - token < recent;
            EXPECT_TRUE(sink || near);
            EXPECT_INT_EQ(sink ? token : seen - 1 - (position - token), place_of(&c, row));
        }
    }
}

C_TEST(streaming_cache, rows_and_places) {
    for (size_t sinks = 0; sinks < 5; sinks++) {
        for (size_t recent = 1; recent < 8; recent++) {
            check_text(sinks, recent);
        }
    }
}
