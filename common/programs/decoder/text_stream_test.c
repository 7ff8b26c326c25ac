#include <stdlib.h>
#include <string.h>

#include "common/programs/decoder/generate_internal.h"
#include "common/testing/testing.h"

/* Prints the pieces into memory and compares. */
static void check(const char *want, const char *const *pieces, size_t count) {
    char *text = NULL;
    size_t size = 0;
    FILE *file = open_memstream(&text, &size);
    ASSERT_TRUE(file != NULL);
    struct text_stream stream = {.out = file};
    for (size_t i = 0; i < count; i++) {
        text_stream_write(&stream, pieces[i], strlen(pieces[i]));
    }
    text_stream_finish(&stream);
    fclose(file);
    EXPECT_STR_EQ(want, text);
    free(text);
}

C_TEST(text_stream, passes_text_through) {
    const char *const pieces[] = {"Once", " upon", "\n\tcaf\xc3\xa9"};
    check("Once upon\n\tcaf\xc3\xa9", pieces, 3);
}

C_TEST(text_stream, joins_the_bytes_of_a_character) {
    const char *const pieces[] = {"a", "\xf0", "\x9f", "\x98", "\x80", "b"};
    check("a\xf0\x9f\x98\x80"
          "b",
          pieces, 6);
}

C_TEST(text_stream, replaces_invalid_bytes) {
    const char *const cut[] = {"\xe2\x82", "x"};
    check("\xef\xbf\xbdx", cut, 2);
    const char *const lone[] = {"\x80", "x"};
    check("\xef\xbf\xbdx", lone, 2);
    const char *const surrogate[] = {"\xed\xa0\x80"};
    check("\xef\xbf\xbd", surrogate, 1);
    const char *const unfinished[] = {"x", "\xf0\x9f"};
    check("x\xef\xbf\xbd", unfinished, 2);
}

C_TEST(text_stream, drops_control_characters) {
    const char *const pieces[] = {"a\033[2Jb", "\x01", "\x7f", "\a"};
    check("a[2Jb", pieces, 4);
}
