/**
 * @file testing.h
 * @brief Short ways to parse PTX in tests.
 */
#ifndef WARPBOOK_COMMON_SIMT_PTX_TESTING_TESTING_H_
#define WARPBOOK_COMMON_SIMT_PTX_TESTING_TESTING_H_

#include "common/simt/ptx/ptx.h"
#include "common/testing/testing.h"

/** What every module begins with: three lines. */
#define PTX_TEST_HEADER ".version 9.0\n.target sm_75\n.address_size 64\n"

/**
 * @brief Parses HEADER + @p text from memory of exactly that size, and checks the result.
 * @return the module, which the caller frees; NULL after a failure of the test was noted
 */
struct ptx_module *ptx_test_parse(const char *text);

/**
 * @brief Parses @p statements as the body of the kernel `k(.param .u64 p0, .param .u32 p1)`.
 *
 * Declared are %p<4>, %rs<4>, %r<8>, %rd<4>, %f<8>, %fd<4> (in this order, so
 * that %r0 is register 8), `.shared .b8 tile[256]`, `.global .u32 counter` and
 * the function `helper`. The first statement stands in line 11 of the text.
 */
struct ptx_module *ptx_test_body(const char *statements);

/** @return instruction @p index of the module's last function; NULL when there are fewer. */
const struct ptx_instruction *ptx_test_instruction(const struct ptx_module *module, size_t index);

/** Notes a failure unless HEADER + @p text is refused with exactly this status and line. */
void ptx_test_refused(const char *text, enum status status, const char *message);

/** The same for statements in the body of `k`. */
void ptx_test_body_refused(const char *statements, enum status status, const char *message);

/** The same two for STATUS_BAD_FORMAT. */
void ptx_test_bad(const char *text, const char *message);
void ptx_test_body_bad(const char *statements, const char *message);

/** A test that sees `module`, which @p parsed gives: ptx_test_parse() or ptx_test_body(). */
#define MODULE_TEST(suite, name, parsed)                                  \
    static void module_##suite##_##name(const struct ptx_module *module); \
    C_TEST(suite, name) {                                                 \
        struct ptx_module *module = parsed;                               \
        ASSERT_TRUE(module != NULL);                                      \
        module_##suite##_##name(module);                                  \
        ptx_free(module);                                                 \
    }                                                                     \
    static void module_##suite##_##name(const struct ptx_module *module)

#endif
