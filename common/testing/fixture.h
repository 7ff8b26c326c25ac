/**
 * @file fixture.h
 * @brief Tests that share what they stand on: made before the test's body, released after it, also
 *        where the body stops early.
 */
#ifndef WARPBOOK_COMMON_TESTING_FIXTURE_H_
#define WARPBOOK_COMMON_TESTING_FIXTURE_H_

#include "common/testing/testing.h"

/**
 * A test whose body sees @p name_of_pointer, the address of a @p type that @p create has filled.
 * @p create is true on success, @p release frees; both may use the pointer. For example:
 *
 *     #define TOY_TEST(name) FIXTURE_TEST(toy, name, struct toy, t, toy_open(t), toy_close(t))
 *     TOY_TEST(turns_on) {
 *         EXPECT_TRUE(toy_is_on(t));
 *     }
 */
#define FIXTURE_TEST(suite, name, type, name_of_pointer, create, release) \
    static void body_##suite##_##name(type *name_of_pointer);             \
    C_TEST(suite, name) {                                                 \
        type fixture;                                                     \
        type *name_of_pointer = &fixture;                                 \
        ASSERT_TRUE(create);                                              \
        body_##suite##_##name(name_of_pointer);                           \
        release;                                                          \
    }                                                                     \
    static void body_##suite##_##name(type *name_of_pointer)

#endif
