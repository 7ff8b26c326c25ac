/**
 * @file csv_reader_test.c
 * @brief Rows and fields as RFC 4180 has them, and every way to break a quote.
 */
#include "common/texts/csv_reader.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/testing/testing.h"

enum { MOST = 4 };

/* Writes the rows as "[a|b][c]" into out, or the message of the first failure. */
static void rows_of(const char *data, size_t size, bool tabs, char *out, size_t room) {
    /* Memory of exact size, so that sanitizers see reads past its end. */
    char *copy = malloc(size + (size == 0));
    memcpy(copy, data, size);
    struct csv_reader reader;
    struct csv_field fields[MOST];
    struct error error = {0};
    size_t count;
    bool found = true;
    out[0] = '\0';
    ASSERT_OK(csv_reader_create(&reader, copy, size, tabs));
    while (found) {
        enum status status = csv_reader_next(&reader, fields, MOST, &count, &found, &error);
        if (status != STATUS_OK) {
            EXPECT_STATUS(STATUS_BAD_FORMAT, status);
            snprintf(out, room, "%s", error.message);
            break;
        }
        for (size_t i = 0; found && i < count; i++) {
            size_t used = strlen(out);
            EXPECT_INT_EQ(strlen(fields[i].text), fields[i].length);
            snprintf(out + used, room - used, "%s%s%s", i == 0 ? "[" : "|", fields[i].text,
                     i + 1 == count ? "]" : "");
        }
    }
    csv_reader_free(&reader);
    free(copy);
}

C_TEST(csv_reader, reads_rows) {
    static const struct {
        const char *data, *want;
    } cases[] = {
        {"", ""},
        {"\n\r\n", ""},
        {"a", "[a]"},
        {"a,b\n", "[a|b]"},
        {"a,b\r\nc,d\r\n", "[a|b][c|d]"},
        {"a,\n,b\n,\n", "[a|][|b][|]"},
        {"a,", "[a|]"},
        {",", "[|]"},
        {"\"\"", "[]"},
        {"\"a\",\"b\"\n", "[a|b]"},
        {"\"a,b\",c\n", "[a,b|c]"},
        {"\"say \"\"hi\"\"\"\n", "[say \"hi\"]"},
        {"\"\"\"\"\n", "[\"]"},
        {"\"two\nlines\",x\ny", "[two\nlines|x][y]"},
        {"\"two\r\nlines\"\r\n", "[two\r\nlines]"},
        {"\xef\xbb\xbf"
         "a,b",
         "[a|b]"},
        {"a\rb,c\r", "[a\rb|c\r]"},
        {"a\n\n\nb", "[a][b]"},
        {"back\\slash,\"in\\side\"", "[back\\slash|in\\side]"},
        {"1,2,3,4\n", "[1|2|3|4]"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char out[600];
        rows_of(cases[i].data, strlen(cases[i].data), false, out, sizeof out);
        EXPECT_STR_EQ(cases[i].want, out);
    }
}

C_TEST(csv_reader, takes_quotes_between_tabs_as_they_are) {
    char out[600];
    const char data[] = "a\tb,c\r\n\"d\t\"e\"\"\n\n\t\n1\t2\t3\t4\t5";
    rows_of(data, strlen(data), true, out, sizeof out);
    EXPECT_STR_EQ("line 5: more than 4 fields", out);
    rows_of(data, strlen(data) - 2, true, out, sizeof out);
    EXPECT_STR_EQ("[a|b,c][\"d|\"e\"\"][|][1|2|3|4]", out);
}

C_TEST(csv_reader, names_the_line_of_a_broken_quote) {
    static const struct {
        const char *data, *want;
    } cases[] = {
        {"\"", "line 1: the quote that opens here is never closed"},
        {"\"abc", "line 1: the quote that opens here is never closed"},
        {"\"abc\"\"", "line 1: the quote that opens here is never closed"},
        {"a,b\n\n\"c\nd\ne,f\n", "line 3: the quote that opens here is never closed"},
        {"a\n\"b\"c\n",
         "line 2: broken quotes: text after the closing quote of a field that began in line 2"},
        {"\"3\",\"a\nb\"3\",\"c\"\n",
         "line 2: broken quotes: text after the closing quote of a field that began in line 1"},
        {"a\nb,c\"d\n",
         "line 2: broken quotes: a quote inside a field that does not begin with one"},
        {" \"a\"", "line 1: broken quotes: a quote inside a field that does not begin with one"},
        {"\"a\" ,b",
         "line 1: broken quotes: text after the closing quote of a field that began in line 1"},
        {"\"a\"\rb",
         "line 1: broken quotes: text after the closing quote of a field that began in line 1"},
        {"x\n1,2,3,4,5\n", "line 2: more than 4 fields"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char out[600];
        rows_of(cases[i].data, strlen(cases[i].data), false, out, sizeof out);
        EXPECT_STR_EQ(cases[i].want, out);
    }
}

C_TEST(csv_reader, keeps_bytes_that_are_nul) {
    struct csv_reader reader;
    struct csv_field fields[MOST];
    size_t count;
    bool found;
    ASSERT_OK(csv_reader_create(&reader, "\"a\0b\",c", 7, false));
    ASSERT_OK(csv_reader_next(&reader, fields, MOST, &count, &found, NULL));
    EXPECT_INT_EQ(2, count);
    EXPECT_INT_EQ(3, fields[0].length);
    EXPECT_TRUE(memcmp(fields[0].text, "a\0b", 4) == 0);
    csv_reader_free(&reader);
}
