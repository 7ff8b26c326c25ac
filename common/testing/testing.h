/**
 * @file testing.h
 * @brief Tests written in C, run by GoogleTest.
 *
 *     #include "common/testing/testing.h"
 *
 *     C_TEST(arena, hands_out_aligned_memory) {
 *         EXPECT_INT_EQ(64, ARENA_ALIGNMENT);
 *     }
 *
 * A cc_test lists the C file in srcs and //common/testing, which has main(), in
 * deps. EXPECT_* notes a failure and continues; ASSERT_* also returns from the
 * function. All GoogleTest flags work (--gtest_filter, ...).
 */
#ifndef WARPBOOK_COMMON_TESTING_TESTING_H_
#define WARPBOOK_COMMON_TESTING_TESTING_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/status.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef void test_function(void);

/** Adds a test; called by C_TEST before main(). The strings must live forever. */
void test_register(const char *suite, const char *name, const char *file, int line,
                   test_function *function);

/** Notes a failure of the running test. */
void test_fail(const char *file, int line, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/** Marks the running test as skipped, with the reason; the test must then return. */
void test_skip(const char *file, int line, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/**
 * @brief Notes a failure that all other tests of the program would have, too: they are not run.
 *
 * For something that all tests need, such as a GPU: the reason is then reported only once, and on
 * standard error, too.
 */
void test_stop(const char *file, int line, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/** @return true when the running test has noted a failure. */
bool test_has_failed(void);

/** Result of a test. */
struct test_outcome {
    const char *suite, *name;
    bool skipped;
    int failures;        /**< number of failures noted */
    const char *message; /**< of the first failure, or why it was skipped; "" if it passed */
    double seconds;
};

/** Called with the result of each test, and with NULL after the last one. */
typedef void test_observer(const struct test_outcome *outcome);

/** Sets the program's observer; to be called before main(), by a constructor. */
void test_observe(test_observer *observer);

/** Sets a function that is called after each test, as part of it; to be called by a constructor. */
void test_clean_up(test_function *function);

/**
 * @brief Finds a real data file in the folder $WARPBOOK_DATA.
 * @param path receives the path, at most @p size bytes
 * @return false if the variable is not set or the file does not exist; the test
 *         should then use TEST_SKIP
 */
bool test_data_path(const char *name, char *path, size_t size);

/**
 * @brief Makes a path in the test's own temporary folder.
 * @return @p path
 */
const char *test_temporary_path(const char *name, char *path, size_t size);

bool test_check_int(const char *file, int line, const char *expression, int64_t want, int64_t got);
bool test_check_string(const char *file, int line, const char *expression, const char *want,
                       const char *got);
bool test_check_part(const char *file, int line, const char *expression, const char *part,
                     const char *got);
bool test_check_near(const char *file, int line, const char *expression, double want, double got,
                     double tolerance);
bool test_check_true(const char *file, int line, const char *expression, bool value);
bool test_check_status(const char *file, int line, const char *expression, enum status want,
                       enum status got);

#define C_TEST(suite, name)                                                      \
    static void test_##suite##_##name(void);                                     \
    __attribute__((constructor)) static void register_##suite##_##name(void) {   \
        test_register(#suite, #name, __FILE__, __LINE__, test_##suite##_##name); \
    }                                                                            \
    static void test_##suite##_##name(void)

#define TEST_SKIP(...)                              \
    do {                                            \
        test_skip(__FILE__, __LINE__, __VA_ARGS__); \
        return;                                     \
    } while (0)
#define TEST_STOP(...)                              \
    do {                                            \
        test_stop(__FILE__, __LINE__, __VA_ARGS__); \
        return;                                     \
    } while (0)
#define TEST_FAIL(...) test_fail(__FILE__, __LINE__, __VA_ARGS__)

#define EXPECT_TRUE(value) ((void)test_check_true(__FILE__, __LINE__, #value, (value)))
#define EXPECT_INT_EQ(want, got) \
    ((void)test_check_int(__FILE__, __LINE__, #got, (int64_t)(want), (int64_t)(got)))
#define EXPECT_STR_EQ(want, got) ((void)test_check_string(__FILE__, __LINE__, #got, (want), (got)))
/** Expects that the text @p got contains @p part. */
#define EXPECT_STR_CONTAINS(part, got) \
    ((void)test_check_part(__FILE__, __LINE__, #got, (part), (got)))
#define EXPECT_NEAR(want, got, tolerance) \
    ((void)test_check_near(__FILE__, __LINE__, #got, (want), (got), (tolerance)))
#define EXPECT_STATUS(want, expression) \
    ((void)test_check_status(__FILE__, __LINE__, #expression, (want), (expression)))
/**
 * Expects the status @p want of a call, and the message that it leaves in `error`, an empty struct
 * error that exists only during the call. For example:
 *
 *     EXPECT_ERROR(STATUS_NOT_FOUND, "a.bin: cannot open", file_view_open(&view, "a.bin", &error));
 */
#define EXPECT_ERROR(want, whole_message, call)      \
    do {                                             \
        struct error error = {0};                    \
        EXPECT_STATUS(want, call);                   \
        EXPECT_STR_EQ(whole_message, error.message); \
    } while (0)
/** As EXPECT_ERROR(), with a part of the message. */
#define EXPECT_ERROR_CONTAINS(want, part, call)   \
    do {                                          \
        struct error error = {0};                 \
        EXPECT_STATUS(want, call);                \
        EXPECT_STR_CONTAINS(part, error.message); \
    } while (0)
#define EXPECT_OK(expression) EXPECT_STATUS(STATUS_OK, expression)

#define ASSERT_TRUE(value)                                           \
    do {                                                             \
        if (!test_check_true(__FILE__, __LINE__, #value, (value))) { \
            return;                                                  \
        }                                                            \
    } while (0)
#define ASSERT_OK(expression)                                                               \
    do {                                                                                    \
        if (!test_check_status(__FILE__, __LINE__, #expression, STATUS_OK, (expression))) { \
            return;                                                                         \
        }                                                                                   \
    } while (0)

#ifdef __cplusplus
}
#endif

#endif
