#include "common/cpu/parallel.h"

#include <stdatomic.h>
#include <stdlib.h>

#include "common/testing/testing.h"

enum { ITEMS = 1000 };

struct visits {
    atomic_int items[ITEMS];
    int most_thread;
    size_t most_chunk;
};

static void visit(void *arguments, int thread, size_t begin, size_t end) {
    struct visits *v = arguments;
    EXPECT_TRUE(thread >= 0 && thread <= v->most_thread);
    EXPECT_TRUE(begin < end && end - begin <= v->most_chunk);
    for (size_t i = begin; i < end; i++) {
        v->items[i]++;
    }
}

C_TEST(parallel, every_item_is_visited_once) {
    static const size_t counts[] = {0, 1, 2, 99, ITEMS}, chunks[] = {1, 7, 2000};
    for (int threads = 1; threads <= 4; threads++) {
        for (size_t i = 0; i < 5 * 3; i++) {
            static struct visits v;
            v = (struct visits){.most_thread = threads - 1, .most_chunk = chunks[i % 3]};
            cpu_parallel_for(threads, counts[i / 3], chunks[i % 3], visit, &v);
            for (size_t item = 0; item < ITEMS; item++) {
                EXPECT_INT_EQ(item < counts[i / 3], v.items[item]);
            }
        }
    }
}
