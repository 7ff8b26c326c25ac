#include <stdlib.h>
#include <string.h>

#include "common/simt/runtime/settings.h"
#include "common/testing/testing.h"

static enum status read_with(const char *name, const char *value, struct simt_settings *settings,
                             struct error *error) {
    static const char *const NAMES[] = {"SIMT_CHECK", "SIMT_THREADS", "SIMT_INSTRUCTION_LIMIT",
                                        "SIMT_GPU",   "SIMT_REPORT",  "SIMT_SEED"};
    for (size_t i = 0; i < sizeof NAMES / sizeof *NAMES; i++) {
        unsetenv(NAMES[i]);
    }
    if (name != NULL) {
        setenv(name, value, 1);
    }
    *error = (struct error){0};
    return simt_settings_read(settings, error);
}

C_TEST(settings, have_defaults) {
    struct simt_settings settings;
    struct error error;
    ASSERT_OK(read_with(NULL, NULL, &settings, &error));
    EXPECT_INT_EQ(SIMT_CHECK_FULL, settings.check);
    EXPECT_INT_EQ(SIMT_REPORT_NONE, settings.report);
    EXPECT_STR_EQ("h200", settings.gpu->key);
    EXPECT_TRUE(settings.threads >= 1);
    EXPECT_TRUE(settings.instruction_limit > 0);
    ASSERT_OK(read_with("SIMT_CHECK", "", &settings, &error)); /* empty is not set */
    EXPECT_INT_EQ(SIMT_CHECK_FULL, settings.check);
}

C_TEST(settings, are_what_the_environment_says) {
    struct simt_settings settings;
    struct error error;
    ASSERT_OK(read_with("SIMT_CHECK", "bounds", &settings, &error));
    EXPECT_INT_EQ(SIMT_CHECK_BOUNDS, settings.check);
    ASSERT_OK(read_with("SIMT_CHECK", "races", &settings, &error));
    EXPECT_INT_EQ(SIMT_CHECK_BOUNDS | SIMT_CHECK_RACES, settings.check);
    ASSERT_OK(read_with("SIMT_CHECK", "uninitialised,shuffles,bounds", &settings, &error));
    EXPECT_INT_EQ(SIMT_CHECK_BOUNDS | SIMT_CHECK_UNINITIALISED | SIMT_CHECK_SHUFFLES,
                  settings.check);
    ASSERT_OK(read_with("SIMT_CHECK", "full,-leaks,-copies", &settings, &error));
    EXPECT_INT_EQ(SIMT_CHECK_FULL & ~(SIMT_CHECK_LEAKS | SIMT_CHECK_COPIES), settings.check);
    ASSERT_OK(read_with("SIMT_CHECK", "sampled", &settings, &error));
    EXPECT_INT_EQ(SIMT_CHECK_BOUNDS | SIMT_CHECK_SAMPLED, settings.check);
    ASSERT_OK(read_with("SIMT_CHECK", "off", &settings, &error));
    EXPECT_INT_EQ(SIMT_CHECK_OFF, settings.check);
    ASSERT_OK(read_with("SIMT_THREADS", "7", &settings, &error));
    EXPECT_INT_EQ(7, settings.threads);
    ASSERT_OK(read_with("SIMT_INSTRUCTION_LIMIT", "0", &settings, &error));
    EXPECT_INT_EQ(0, settings.instruction_limit);
    ASSERT_OK(read_with("SIMT_SEED", "18446744073709551615", &settings, &error));
    EXPECT_TRUE(settings.seed == UINT64_MAX);
    ASSERT_OK(read_with("SIMT_GPU", "rtx4090", &settings, &error));
    EXPECT_INT_EQ(128, settings.gpu->multiprocessors);
    ASSERT_OK(read_with("SIMT_REPORT", "json", &settings, &error));
    EXPECT_INT_EQ(SIMT_REPORT_JSON, settings.report);
}

C_TEST(settings, name_what_is_wrong) {
    static const char *const WRONG[][2] = {
        {"SIMT_CHECK", "Full"},       {"SIMT_CHECK", "2"},
        {"SIMT_CHECK", "races,"},     {"SIMT_CHECK", "off,races"},
        {"SIMT_CHECK", "full,-off"},  {"SIMT_CHECK", "full,-bounds"},
        {"SIMT_THREADS", "-1"},       {"SIMT_THREADS", "2x"},
        {"SIMT_THREADS", " 2"},       {"SIMT_THREADS", "99999999999999999999"},
        {"SIMT_GPU", "H200"},         {"SIMT_INSTRUCTION_LIMIT", "1e6"},
        {"SIMT_REPORT", "text,json"}, {"SIMT_SEED", "0x1"},
    };
    for (size_t i = 0; i < sizeof WRONG / sizeof *WRONG; i++) {
        struct simt_settings settings;
        struct error error;
        EXPECT_STATUS(STATUS_INVALID_ARGUMENT,
                      read_with(WRONG[i][0], WRONG[i][1], &settings, &error));
        EXPECT_TRUE(strstr(error.message, WRONG[i][0]) != NULL);
        EXPECT_TRUE(strstr(error.message, WRONG[i][1]) != NULL);
    }
}

C_TEST(settings, of_the_exit_status) {
    static const char *const WRONG[] = {"-1", "256", "1x", "yes"};
    struct error error = {0};
    int code = -1;
    unsetenv("SIMT_ERROR_EXITCODE");
    EXPECT_OK(simt_error_exitcode(&code, &error));
    EXPECT_INT_EQ(0, code);
    setenv("SIMT_ERROR_EXITCODE", "255", 1);
    EXPECT_OK(simt_error_exitcode(&code, &error));
    EXPECT_INT_EQ(255, code);
    for (size_t i = 0; i < sizeof WRONG / sizeof *WRONG; i++) {
        setenv("SIMT_ERROR_EXITCODE", WRONG[i], 1);
        EXPECT_STATUS(STATUS_INVALID_ARGUMENT, simt_error_exitcode(&code, &error));
        EXPECT_TRUE(strstr(error.message, "SIMT_ERROR_EXITCODE") != NULL);
    }
}
