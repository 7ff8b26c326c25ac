#include "grader/isolation/plain_text.h"

#include <stdio.h>

#include "common/testing/testing.h"

C_TEST(plain_text, shows_what_people_read) {
    static const char *const texts[] = {"", "got 1.5, want 2\n\tin row 3", "d\xc3\xa9j\xc3\xa0 vu",
                                        "\xe4\xbd\xa0\xe5\xa5\xbd", "\xf0\x9f\x98\x80 o\xcc\x88"};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        char text[64];
        snprintf(text, sizeof text, "%s", texts[i]);
        plain_text(text);
        EXPECT_STR_EQ(texts[i], text);
    }
}

C_TEST(plain_text, replaces_what_a_terminal_obeys) {
    static const char *const texts[][2] = {
        {"\x1b[2J", "?[2J"},
        {"a\r\x07\x08z", "a???z"},
        {"\x7f", "?"},
        {"\xc2\x9b\x33\x31m", "?31m"},        /* U+009B, CSI */
        {"raw \x9b 32m", "raw ? 32m"},        /* no UTF-8 */
        {"\xe2\x80\xae bidi", "? bidi"},      /* U+202E */
        {"\xe2\x81\xa6x\xe2\x81\xa9", "?x?"}, /* U+2066, U+2069 */
        {"\xd8\x9c", "?"},                    /* U+061C */
        {"\xe2\x80\x8bzero width", "?zero width"},
        {"\xe2\x80\xa8line", "?line"}, /* U+2028 */
        {"\xee\x80\x80", "?"},         /* private */
        {"\xed\xa0\x80", "???"},       /* a surrogate is no UTF-8 */
        {"\xc0\xaf", "??"},            /* overlong */
        {"cut off \xe2\x82", "cut off ??"},
        {"\xf3\xa0\x81\x81", "?"}, /* a tag character */
    };
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        char text[64];
        snprintf(text, sizeof text, "%s", texts[i][0]);
        plain_text(text);
        EXPECT_STR_EQ(texts[i][1], text);
    }
}
