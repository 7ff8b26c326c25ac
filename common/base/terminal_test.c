#include "common/base/terminal.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/testing/testing.h"

/* Opens a pseudo terminal to write to; NULL if there is none. It lives until *master is closed. */
static FILE *open_terminal(int *master) {
    *master = posix_openpt(O_RDWR | O_NOCTTY);
    if (*master < 0 || grantpt(*master) != 0 || unlockpt(*master) != 0) {
        return NULL;
    }
    return fopen(ptsname(*master), "w");
}

C_TEST(terminal, a_file_gets_no_colour) {
    FILE *stream = tmpfile();
    ASSERT_TRUE(stream != NULL);
    unsetenv("NO_COLOR");
    EXPECT_TRUE(!terminal_has_colour(stream));
    EXPECT_STR_EQ("", terminal_colour(stream, COLOUR_RED));
    EXPECT_STR_EQ("", terminal_plain(stream));
    fclose(stream);
}

C_TEST(terminal, a_terminal_gets_colour_unless_told_otherwise) {
    int master;
    FILE *stream = open_terminal(&master);
    if (stream == NULL) {
        TEST_SKIP("no pseudo terminals here");
    }
    unsetenv("NO_COLOR");
    EXPECT_STR_EQ("\033[31m", terminal_colour(stream, COLOUR_RED));
    EXPECT_STR_EQ("\033[32m", terminal_colour(stream, COLOUR_GREEN));
    EXPECT_STR_EQ("\033[33m", terminal_colour(stream, COLOUR_YELLOW));
    EXPECT_STR_EQ("\033[1m", terminal_colour(stream, COLOUR_BOLD));
    EXPECT_STR_EQ("\033[0m", terminal_plain(stream));
    setenv("NO_COLOR", "1", 1);
    EXPECT_STR_EQ("", terminal_colour(stream, COLOUR_RED));
    EXPECT_STR_EQ("", terminal_plain(stream));
    setenv("NO_COLOR", "", 1); /* empty counts as not set */
    EXPECT_TRUE(terminal_has_colour(stream));
    unsetenv("NO_COLOR");
    fclose(stream);
    close(master);
}

/* Points stderr at a temporary file; *saved is what it was. */
static FILE *redirect_stderr(int *saved) {
    FILE *stream = tmpfile();
    *saved = dup(STDERR_FILENO);
    if (stream != NULL && *saved >= 0) {
        dup2(fileno(stream), STDERR_FILENO);
    }
    return stream;
}

/* Restores stderr; `text` receives what was written meanwhile. */
static void restore_stderr(FILE *stream, int saved, char *text, size_t size) {
    fflush(stderr);
    dup2(saved, STDERR_FILENO);
    close(saved);
    rewind(stream);
    text[fread(text, 1, size - 1, stream)] = '\0';
    fclose(stream);
}

C_TEST(terminal, progress_is_silent_in_a_file) {
    int saved;
    char text[256];
    FILE *stream = redirect_stderr(&saved);
    ASSERT_TRUE(stream != NULL && saved >= 0);
    struct progress progress = progress_create("reading", 10);
    progress.start.tv_sec -= 60; /* long enough to be worth showing */
    progress.shown = progress.start;
    progress_update(&progress, 5);
    progress_finish(&progress);
    restore_stderr(stream, saved, text, sizeof text);
    EXPECT_STR_EQ("", text);
}

C_TEST(terminal, progress_waits_two_seconds_and_shows_the_time_left) {
    int saved;
    char text[256];
    FILE *stream = redirect_stderr(&saved);
    ASSERT_TRUE(stream != NULL && saved >= 0);
    struct progress progress = progress_create("reading", 10);
    progress.visible = true;
    progress_update(&progress, 1); /* too early */
    progress.start.tv_sec -= 60;
    progress.shown = progress.start;
    progress_update(&progress, 5);
    progress_update(&progress, 6); /* within a tenth of a second */
    restore_stderr(stream, saved, text, sizeof text);
    EXPECT_STR_EQ("\rreading 5/10, 60 s left \033[K", text);
}

C_TEST(terminal, a_failure_is_one_line_and_exit_status_one) {
    int saved;
    char text[256];
    FILE *stream = redirect_stderr(&saved);
    ASSERT_TRUE(stream != NULL && saved >= 0);
    struct error error = {0};
    (void)error_set(&error, STATUS_IO, "a.bin: bad\nline");
    EXPECT_INT_EQ(1, report_failure("demo", &error, STATUS_IO));
    EXPECT_INT_EQ(1, report_failure("demo", NULL, STATUS_OUT_OF_MEMORY));
    restore_stderr(stream, saved, text, sizeof text);
    EXPECT_STR_EQ("demo: a.bin: bad?line\ndemo: out of memory\n", text);
}
