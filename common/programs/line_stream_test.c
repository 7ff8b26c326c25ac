/**
 * @file line_stream_test.c
 * @brief Lines come out of a pipe as soon as they are whole, however they were written.
 */
#include "common/programs/line_stream.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/testing/testing.h"

/* A pipe that is written to and read. */
struct ends {
    int in;
    struct line_stream stream;
    char out[200]; /* "a|b|" of lines */
};

static bool ends_open(struct ends *e) {
    int pair[2] = {-1, -1};
    *e = (struct ends){.in = -1};
    EXPECT_INT_EQ(0, pipe(pair));
    e->in = pair[1];
    e->stream.descriptor = pair[0];
    return pair[0] >= 0;
}

/* Writes, waits once, and takes all lines there are. */
static const char *send(struct ends *e, const char *text) {
    const char *line;
    size_t length, used = 0;
    e->out[0] = '\0';
    EXPECT_INT_EQ(strlen(text), write(e->in, text, strlen(text)));
    EXPECT_OK(line_stream_wait(&e->stream, NULL));
    while (line_stream_take(&e->stream, &line, &length)) {
        used += (size_t)snprintf(e->out + used, sizeof e->out - used, "%.*s|", (int)length, line);
    }
    return e->out;
}

static void ends_close(struct ends *e) {
    close(e->stream.descriptor);
    line_stream_free(&e->stream);
    line_stream_free(&e->stream);
}

C_TEST(line_stream, gives_lines_as_they_arrive) {
    struct ends e;
    const char *line;
    size_t length;
    ASSERT_TRUE(ends_open(&e));
    EXPECT_TRUE(!line_stream_take(&e.stream, &line, &length));
    EXPECT_STR_EQ("one|", send(&e, "one\n"));
    EXPECT_STR_EQ("two||three|", send(&e, "two\r\n\nthree\nfo"));
    EXPECT_STR_EQ("", send(&e, "u"));
    EXPECT_STR_EQ("four|", send(&e, "r\nlast"));
    EXPECT_TRUE(!e.stream.ended);
    close(e.in);
    EXPECT_OK(line_stream_wait(&e.stream, NULL));
    EXPECT_TRUE(e.stream.ended);
    ASSERT_TRUE(line_stream_take(&e.stream, &line, &length));
    EXPECT_TRUE(length == 4 && memcmp(line, "last", 4) == 0);
    EXPECT_TRUE(!line_stream_take(&e.stream, &line, &length));
    ends_close(&e);
}

C_TEST(line_stream, ends_without_a_line) {
    struct ends e;
    const char *line;
    size_t length;
    ASSERT_TRUE(ends_open(&e));
    close(e.in);
    EXPECT_OK(line_stream_wait(&e.stream, NULL));
    EXPECT_TRUE(e.stream.ended && !line_stream_take(&e.stream, &line, &length));
    ends_close(&e);
}

C_TEST(line_stream, refuses_a_line_without_end) {
    struct line_stream stream = {.descriptor = -1, .capacity = LINE_STREAM_MOST + 1};
    stream.buffer = malloc(stream.capacity);
    ASSERT_TRUE(stream.buffer != NULL);
    stream.end = LINE_STREAM_MOST + 1;
    EXPECT_ERROR(STATUS_TOO_LONG, "a line of more than 16777216 bytes",
                 line_stream_wait(&stream, &error));
    stream.end = 1;
    EXPECT_ERROR(STATUS_IO, "cannot read: Bad file descriptor", line_stream_wait(&stream, &error));
    line_stream_free(&stream);
}
