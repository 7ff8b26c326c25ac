#include "common/simt/ptx/testing/testing.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/simt/ptx/testing/check.h"

#define BODY_BEGIN                                                             \
    ".extern .func (.param .b32 r) helper (.param .b32 a, .param .b32 b);\n"   \
    ".global .u32 counter;\n"                                                  \
    ".visible .entry k(.param .u64 p0, .param .u32 p1)\n"                      \
    "{\n"                                                                      \
    ".reg .pred %p<4>; .reg .b16 %rs<4>; .reg .b32 %r<8>; .reg .b64 %rd<4>;\n" \
    ".reg .f32 %f<8>; .reg .f64 %fd<4>;\n"                                     \
    ".shared .align 16 .b8 tile[256];\n"

/* Text from parts, in memory of exactly its size, so that reading past it is seen. */
static char *join(const char *a, const char *b, const char *c, size_t *size) {
    *size = strlen(a) + strlen(b) + strlen(c);
    char *whole = malloc(*size + 1);
    char *text = malloc(*size);
    if (whole == NULL || text == NULL) {
        abort();
    }
    snprintf(whole, *size + 1, "%s%s%s", a, b, c);
    memcpy(text, whole, *size);
    free(whole);
    return text;
}

static struct ptx_module *parse(const char *begin, const char *middle, const char *end) {
    size_t size;
    char *text = join(begin, middle, end, &size);
    struct error error = {0};
    struct ptx_module *module;
    enum status status = ptx_parse(&module, text, size, &error);
    free(text);
    if (status != STATUS_OK) {
        TEST_FAIL("refused: %s", error_text(&error, status));
        return NULL;
    }
    const char *problem = ptx_check(module);
    if (problem != NULL) {
        TEST_FAIL("the module holds %s", problem);
    }
    return module;
}

static void refused(const char *begin, const char *middle, const char *end, enum status status,
                    const char *message) {
    size_t size;
    char *text = join(begin, middle, end, &size);
    struct error error = {0};
    struct ptx_module *module;
    EXPECT_STATUS(status, ptx_parse(&module, text, size, &error));
    EXPECT_STR_EQ(message, error.message);
    EXPECT_TRUE(module == NULL);
    ptx_free(module);
    free(text);
}

struct ptx_module *ptx_test_parse(const char *text) {
    return parse(PTX_TEST_HEADER, text, "");
}

struct ptx_module *ptx_test_body(const char *statements) {
    return parse(PTX_TEST_HEADER BODY_BEGIN, statements, "\n}\n");
}

const struct ptx_instruction *ptx_test_instruction(const struct ptx_module *module, size_t index) {
    const struct ptx_function *function = &module->functions[module->function_count - 1];
    return index < function->instruction_count ? &function->instructions[index] : NULL;
}

void ptx_test_refused(const char *text, enum status status, const char *message) {
    refused(PTX_TEST_HEADER, text, "", status, message);
}

void ptx_test_body_refused(const char *statements, enum status status, const char *message) {
    refused(PTX_TEST_HEADER BODY_BEGIN, statements, "\n}\n", status, message);
}

void ptx_test_bad(const char *text, const char *message) {
    ptx_test_refused(text, STATUS_BAD_FORMAT, message);
}

void ptx_test_body_bad(const char *statements, const char *message) {
    ptx_test_body_refused(statements, STATUS_BAD_FORMAT, message);
}
