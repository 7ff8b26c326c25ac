/* Calls without an answer: what a program collects, what its device takes; and what a program
 * knows. */
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/simt/runtime/remote/known.h"
#include "common/simt/runtime/remote/numbers.h"
#include "common/simt/runtime/remote/posts.h"
#include "common/testing/fixture.h"
#include "common/testing/testing.h"

struct posting {
    struct packet *posts, *call, *got;
    struct posts_inbox *inbox;
    int ends[2];
};

static bool open_posting(struct posting *p) {
    p->posts = calloc(1, sizeof *p->posts);
    p->call = calloc(1, sizeof *p->call);
    p->got = calloc(1, sizeof *p->got);
    p->inbox = calloc(1, sizeof *p->inbox);
    if (p->posts == NULL || p->call == NULL || p->got == NULL || p->inbox == NULL ||
        socketpair(AF_UNIX, SOCK_SEQPACKET, 0, p->ends) != 0) {
        return false;
    }
    packet_begin(p->posts, PACKET_POSTS);
    packet_begin(p->call, PACKET_CALL);
    return true;
}

static void close_posting(struct posting *p) {
    close(p->ends[0]);
    close(p->ends[1]);
    free(p->posts);
    free(p->call);
    free(p->got);
    free(p->inbox);
}

#define POSTS_TEST(name) \
    FIXTURE_TEST(posts, name, struct posting, p, open_posting(p), close_posting(p))

/* Makes the packet a call of a kind that needs no answer, with a number in its data. */
static void make(struct packet *call, uint32_t number, uint64_t argument) {
    packet_begin(call, PACKET_CALL);
    call->call = number;
    (void)packet_put(call, &argument, sizeof argument);
}

static enum status send_all(struct posting *p) {
    enum status status = packet_send_behind(p->ends[0], p->posts, p->call, NULL);
    return status == STATUS_OK ? posts_receive(p->ends[1], p->inbox, p->got) : status;
}

POSTS_TEST(come_in_order_before_the_call) {
    static const char attached[] = "thirteen long";
    for (uint64_t i = 0; i < 5; i++) {
        make(p->call, CALL_cudaFree, i);
        p->call->extra = (uint32_t)(i * 3);
        memcpy(p->call->data + p->call->size, attached, p->call->extra);
        ASSERT_TRUE(posts_add(p->posts, p->call));
    }
    make(p->call, CALL_cudaGetDevice, 77);
    ASSERT_OK(send_all(p));
    EXPECT_INT_EQ(CALL_cudaGetDevice, p->got->call);
    for (uint64_t i = 0; i < 5; i++) {
        uint64_t argument = 99;
        size_t at = 0;
        ASSERT_OK(posts_next(p->inbox, p->got));
        EXPECT_INT_EQ(CALL_cudaFree, p->got->call);
        EXPECT_TRUE(packet_take(p->got, &at, &argument, sizeof argument));
        EXPECT_INT_EQ(i, argument);
        EXPECT_INT_EQ(3 * i, p->got->extra);
        EXPECT_INT_EQ(0, memcmp(p->got->data + p->got->size, attached, p->got->extra));
    }
    EXPECT_INT_EQ(STATUS_NOT_FOUND, posts_next(p->inbox, p->got));
}

POSTS_TEST(are_none_before_most_calls) {
    make(p->call, CALL_cudaGetDevice, 77);
    ASSERT_OK(packet_send(p->ends[0], p->call, NULL));
    ASSERT_OK(posts_receive(p->ends[1], p->inbox, p->got));
    EXPECT_INT_EQ(CALL_cudaGetDevice, p->got->call);
    EXPECT_INT_EQ(STATUS_NOT_FOUND, posts_next(p->inbox, p->got));
}

POSTS_TEST(end_where_there_is_no_room) {
    size_t added = 0;
    make(p->call, CALL_cudaMemcpy, 0);
    p->call->extra = PACKET_ATTACHED / 4;
    while (posts_add(p->posts, p->call)) {
        added++;
    }
    EXPECT_TRUE(added >= POSTS_BYTES / (PACKET_ATTACHED / 4) - 1);
    EXPECT_TRUE(p->posts->size <= POSTS_BYTES);
    p->call->extra = 0;
    ASSERT_OK(send_all(p));
    while (added > 0 && posts_next(p->inbox, p->got) == STATUS_OK) {
        added--;
    }
    EXPECT_INT_EQ(0, added);
}

POSTS_TEST(are_of_few_kinds) {
    make(p->call, CALL_cudaMalloc, 0);
    ASSERT_TRUE(posts_add(p->posts, p->call));
    ASSERT_OK(send_all(p));
    EXPECT_INT_EQ(STATUS_BAD_FORMAT, posts_next(p->inbox, p->got));
}

POSTS_TEST(with_wrong_sizes_are_refused) {
    make(p->call, CALL_cudaFree, 0);
    ASSERT_TRUE(posts_add(p->posts, p->call));
    ((struct packet *)(void *)p->posts->data)->size = 4000; /* more than there is */
    ASSERT_OK(send_all(p));
    EXPECT_INT_EQ(STATUS_BAD_FORMAT, posts_next(p->inbox, p->got));
    p->posts->size = 12; /* less than a head */
    EXPECT_INT_EQ(STATUS_BAD_FORMAT, send_all(p));
    p->posts->size = 16;
    ASSERT_OK(send_all(p));
    EXPECT_INT_EQ(STATUS_BAD_FORMAT, posts_next(p->inbox, p->got));
    p->posts->size = 0; /* and nothing behind them */
    ASSERT_OK(packet_send(p->ends[0], p->posts, NULL));
    EXPECT_INT_EQ(STATUS_BAD_FORMAT, posts_receive(p->ends[1], p->inbox, p->got));
}

/* Ranges beside a table of what is in them. */
enum { NUMBERS = 64, STEPS = 4000 };

static void expect_known(const struct known *known, const int *owner) {
    for (int n = 0; n < NUMBERS; n++) {
        int bytes = 1;
        while (owner[n] != 0 && n + bytes < NUMBERS && owner[n + bytes] == owner[n]) {
            bytes++;
        }
        EXPECT_TRUE(known_holds(known, (uint64_t)n, (uint64_t)bytes) == (owner[n] != 0));
        EXPECT_TRUE(!known_holds(known, (uint64_t)n, (uint64_t)bytes + 1));
        EXPECT_TRUE(known_has(known, (uint64_t)n) ==
                    (owner[n] != 0 && (n == 0 || owner[n - 1] != owner[n])));
    }
}

/* Takes a range out of the table, whole, with all that belongs to it. */
static void forget(int *owner, int which) {
    for (int n = 0; n < NUMBERS; n++) {
        owner[n] = owner[n] == which ? 0 : owner[n];
    }
}

C_TEST(known, holds_what_was_added_last) {
    struct known known = {0};
    int owner[NUMBERS] = {0};
    unsigned state = 1;
    for (int step = 1; step <= STEPS; step++) {
        state = state * 1664525u + 1013904223u;
        int begin = (int)(state >> 8) % NUMBERS;
        int bytes = 1 + (int)(state >> 16) % 9;
        if (state >> 29 < 3) {
            int which = owner[begin];
            bool begins = which != 0 && (begin == 0 || owner[begin - 1] != which);
            EXPECT_TRUE(known_remove(&known, (uint64_t)begin) == begins);
            forget(owner, begins ? which : -1);
        } else if (begin + bytes <= NUMBERS) {
            known_add(&known, (uint64_t)begin, (uint64_t)bytes);
            for (int n = begin; n < begin + bytes; n++) {
                forget(owner, owner[n] != 0 ? owner[n] : -1);
                owner[n] = step;
            }
        }
        expect_known(&known, owner);
    }
    known_clear(&known);
    EXPECT_TRUE(!known_holds(&known, 0, 1));
}

C_TEST(known, takes_no_range_that_wraps) {
    struct known known = {0};
    known_add(&known, UINT64_MAX - 3, 8);
    known_add(&known, 5, 0);
    EXPECT_INT_EQ(0, known.count);
    known_clear(&known);
}
