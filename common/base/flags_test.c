#include "common/base/flags.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "common/testing/testing.h"

#define MOST_WORDS 16

/* A command line with one flag of each type, and the values that it set. */
struct command {
    bool quick;
    int steps;
    uint64_t seed;
    float rate;
    const char *text;
    char words[256]; /* the command line, cut into words */
    const char *values[MOST_WORDS];
    struct arguments arguments;
    struct error error;
};

static void parse_table(struct command *command, const struct flag *table, size_t count,
                        enum status want, int argc, char **argv) {
    const struct flags flags = {"demo", "FILE", "shows flags", table, count, NULL};
    command->arguments = (struct arguments){.values = command->values};
    EXPECT_STATUS(want, flags_parse(&flags, argc, argv, &command->arguments, &command->error));
}

/* Parses the words of `line`, separated by single spaces; a space at the end makes an empty word.
 */
static struct command *parse_line(struct command *command, enum status want, const char *line) {
    const struct flag table[] = {
        {"quick-run", 'q', FLAG_SWITCH, &command->quick, NULL, "be quick"},
        {"steps", 'n', FLAG_INT, &command->steps, "N", "how many"},
        {"seed", 's', FLAG_U64, &command->seed, "N", "where to start"},
        {"rate", 0, FLAG_FLOAT, &command->rate, "R", "how fast"},
        {"text", 'i', FLAG_STRING, &command->text, "TEXT", "what to say"},
    };
    snprintf(command->words, sizeof command->words, "%s", line);
    char *argv[MOST_WORDS + 1] = {"demo"};
    int argc = 1;
    char *rest = line[0] != '\0' ? command->words : NULL;
    while (argc < MOST_WORDS && rest != NULL) {
        argv[argc++] = strsep(&rest, " ");
    }
    parse_table(command, table, sizeof table / sizeof table[0], want, argc, argv);
    return command;
}

/* A new command with its defaults, after parsing; it lives until the end of the block. */
#define PARSE(want, line) \
    parse_line(&(struct command){.steps = 5, .rate = 0.5f, .text = "old"}, want, line)

C_TEST(flags, nothing_given_keeps_the_defaults) {
    const struct command *command = PARSE(STATUS_OK, "");
    EXPECT_TRUE(!command->quick && !command->arguments.help);
    EXPECT_INT_EQ(5, command->steps);
    EXPECT_NEAR(0.5, (double)command->rate, 0.0);
    EXPECT_STR_EQ("old", command->text);
    EXPECT_INT_EQ(0, command->arguments.count);
}

C_TEST(flags, every_spelling_sets_the_value) {
    EXPECT_INT_EQ(12, PARSE(STATUS_OK, "-n 12")->steps);
    EXPECT_INT_EQ(12, PARSE(STATUS_OK, "--steps 12")->steps);
    EXPECT_INT_EQ(-3, PARSE(STATUS_OK, "--steps=-3")->steps);
    EXPECT_INT_EQ(-3, PARSE(STATUS_OK, "-n -3")->steps);
    EXPECT_TRUE(PARSE(STATUS_OK, "-q")->quick);
    EXPECT_TRUE(PARSE(STATUS_OK, "--quick-run")->quick);
    EXPECT_TRUE(PARSE(STATUS_OK, "--quick_run")->quick);
    EXPECT_TRUE(!PARSE(STATUS_OK, "-q --quick-run=false")->quick);
    EXPECT_TRUE(PARSE(STATUS_OK, "--seed 18446744073709551615")->seed == UINT64_MAX);
    EXPECT_NEAR(1e-3, (double)PARSE(STATUS_OK, "--rate 1e-3")->rate, 1e-9);
    EXPECT_STR_EQ("a=b", PARSE(STATUS_OK, "--text=a=b")->text);
    EXPECT_STR_EQ("--steps", PARSE(STATUS_OK, "-i --steps")->text);
    EXPECT_STR_EQ("", PARSE(STATUS_OK, "-i ")->text);
    EXPECT_INT_EQ(2, PARSE(STATUS_OK, "-n 1 -n 2")->steps);
}

C_TEST(flags, positional_words_are_collected_in_order) {
    const struct command *command = PARSE(STATUS_OK, "one -n 7 - -- -n --help");
    EXPECT_INT_EQ(7, command->steps);
    EXPECT_TRUE(!command->arguments.help);
    EXPECT_INT_EQ(4, command->arguments.count);
    EXPECT_STR_EQ("one", command->values[0]);
    EXPECT_STR_EQ("-", command->values[1]);
    EXPECT_STR_EQ("-n", command->values[2]);
    EXPECT_STR_EQ("--help", command->values[3]);
}

C_TEST(flags, help_is_noticed) {
    EXPECT_TRUE(PARSE(STATUS_OK, "--help")->arguments.help);
    EXPECT_TRUE(PARSE(STATUS_OK, "-n 3 -h")->arguments.help);
}

static void expect_refused(const char *line, const char *message) {
    const struct command *command = PARSE(STATUS_INVALID_ARGUMENT, line);
    EXPECT_STR_EQ(message, command->error.message);
}

C_TEST(flags, unknown_flags_are_named) {
    expect_refused("--speed 3", "unknown flag '--speed'; --help lists them");
    expect_refused("-x", "unknown flag '-x'; --help lists them");
    expect_refused("-nq", "unknown flag '-nq'; --help lists them");
    expect_refused("--step 3", "unknown flag '--step'; --help lists them");
    expect_refused("--stepss 3", "unknown flag '--stepss'; --help lists them");
    expect_refused("--=3", "unknown flag '--=3'; --help lists them");
}

C_TEST(flags, values_are_checked_whole) {
    expect_refused("-n 12x", "--steps wants a whole number, not '12x'");
    expect_refused("-n ", "--steps wants a whole number, not ''");
    expect_refused("-n 2147483648",
                   "--steps wants a whole number from -2147483648 to 2147483647, not '2147483648'");
    expect_refused("-n 1.5", "--steps wants a whole number, not '1.5'");
    expect_refused("-s -1", "--seed wants a whole number, 0 or more, not '-1'");
    expect_refused("-s 18446744073709551616",
                   "--seed wants a whole number, 0 or more, not '18446744073709551616'");
    expect_refused("--rate nan", "--rate wants a number, not 'nan'");
    expect_refused("--rate 1e99", "--rate wants a number, not '1e99'");
    expect_refused("--quick-run=maybe", "--quick-run wants true or false, not 'maybe'");
}

C_TEST(flags, a_missing_value_is_named) {
    expect_refused("-n", "-n wants a value (N)");
    expect_refused("one --text", "--text wants a value (TEXT)");
}

C_TEST(flags, a_refused_value_leaves_the_variable_alone) {
    const struct command *command = PARSE(STATUS_INVALID_ARGUMENT, "-n 9x");
    EXPECT_INT_EQ(5, command->steps);
}

C_TEST(flags, a_program_may_use_h_itself) {
    struct command command = {0};
    int height = 0;
    const struct flag table[] = {{"height", 'h', FLAG_INT, &height, "N", "how high"}};
    char *argv[] = {"demo", "-h", "4", NULL};
    parse_table(&command, table, 1, STATUS_OK, 3, argv);
    EXPECT_TRUE(!command.arguments.help);
    EXPECT_INT_EQ(4, height);
}

C_TEST(flags, a_table_that_has_a_name_twice_is_refused) {
    bool one, two;
    const struct flag letters[] = {{"why", 'w', FLAG_SWITCH, &one, NULL, "say why"},
                                   {"weights", 'w', FLAG_SWITCH, &two, NULL, "which weights"}};
    const struct flag names[] = {{"why", 'w', FLAG_SWITCH, &one, NULL, "say why"},
                                 {"why", 0, FLAG_SWITCH, &two, NULL, "say why"}};
    char *argv[] = {"demo", NULL};
    struct command command = {0};
    parse_table(&command, letters, 2, STATUS_INVALID_ARGUMENT, 1, argv);
    EXPECT_STR_EQ("demo has two flags -w: that is a mistake in it", command.error.message);
    parse_table(&command, names, 2, STATUS_INVALID_ARGUMENT, 1, argv);
    EXPECT_STR_EQ("demo has two flags --why: that is a mistake in it", command.error.message);
}

C_TEST(flags, help_shows_every_flag_with_its_default) {
    int steps = 256;
    bool quick = false;
    const struct flag table[] = {
        {"steps", 'n', FLAG_INT, &steps, "N", "how many"},
        {"quick", 0, FLAG_SWITCH, &quick, NULL, "be quick"},
    };
    const struct flags flags = {"demo", "FILE", "shows flags", table, 2, "example: demo -n 3 x"};
    char *text = NULL;
    size_t size = 0;
    FILE *stream = open_memstream(&text, &size);
    ASSERT_TRUE(stream != NULL);
    flags_help(&flags, stream);
    fclose(stream);
    EXPECT_TRUE(strstr(text, "demo: shows flags\n") == text);
    EXPECT_TRUE(strstr(text, "usage: demo [FLAGS] FILE\n") != NULL);
    EXPECT_TRUE(strstr(text, "-n, --steps N ") != NULL);
    EXPECT_TRUE(strstr(text, "how many (default 256)\n") != NULL);
    EXPECT_TRUE(strstr(text, "--quick ") != NULL);
    EXPECT_TRUE(strstr(text, "be quick\n") != NULL);
    EXPECT_TRUE(strstr(text, "--help") != NULL);
    EXPECT_TRUE(strstr(text, "\nexample: demo -n 3 x\n") != NULL);
    free(text);
}

C_TEST(flags, version_and_completion_are_questions_like_help) {
    const struct command *command = PARSE(STATUS_OK, "--version -n 9x");
    EXPECT_TRUE(command->arguments.help);
    EXPECT_INT_EQ(FLAGS_VERSION, command->arguments.question);
    command = PARSE(STATUS_OK, "--completion zsh");
    EXPECT_TRUE(command->arguments.help);
    EXPECT_INT_EQ(FLAGS_COMPLETION_ZSH, command->arguments.question);
    expect_refused("--completion", "--completion wants bash or zsh");
    expect_refused("--completion fish", "--completion wants bash or zsh");
}

/* The script of a program with one flag of each kind; the caller frees it. */
static char *completion(enum flags_question question) {
    int steps = 256;
    const char *model = NULL, *format = NULL;
    const struct flag table[] = {
        {"steps", 'n', FLAG_INT, &steps, "N", "how many: [all]"},
        {"model", 0, FLAG_STRING, &model, "FILE", "the model's file"},
        {"format", 0, FLAG_STRING, &format, "text|json", "how to print"},
    };
    const struct flags flags = {"demo", "", "completes", table, 3, NULL};
    char *text = NULL;
    size_t size = 0;
    FILE *stream = open_memstream(&text, &size);
    if (stream != NULL) {
        flags_completion(&flags, question, stream);
        fclose(stream);
    }
    return text;
}

static void expect_in(const char *text, const char *part) {
    if (strstr(text, part) == NULL) {
        TEST_FAIL("no '%s' in:\n%s", part, text);
    }
}

C_TEST(flags, completion_comes_from_the_table) {
    char *bash = completion(FLAGS_COMPLETION_BASH), *zsh = completion(FLAGS_COMPLETION_ZSH);
    ASSERT_TRUE(bash != NULL && zsh != NULL);
    expect_in(bash, "--steps|-n) COMPREPLY=() ;;");
    expect_in(bash, "--model) COMPREPLY=($(compgen -f -- \"$word\")) ;;");
    expect_in(bash, "--format) COMPREPLY=($(compgen -W 'text json' -- \"$word\")) ;;");
    expect_in(bash, "complete -o filenames -F _warpbook_demo demo");
    expect_in(zsh, "#compdef demo");
    expect_in(zsh, "'-n[how many\\: \\[all\\]]:N:'");
    expect_in(zsh, "'--model[the model'\\''s file]:FILE:_files'");
    expect_in(zsh, "'--format[how to print]:format:(text json)'");
    free(bash);
    free(zsh);
}
